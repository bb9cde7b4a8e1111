"""A plan as JSON: the machine-readable form of what apply would do."""

from __future__ import annotations

from typing import Any

from odfbuild import __version__
from odfbuild.odf.timestamp import Timestamp
from odfbuild.plan.document import digest_of, plan_document
from odfbuild.plan.model import Plan


def plan_to_data(
    plan: Plan,
    *,
    git: dict[str, Any] | None = None,
    created_at: Timestamp | None = None,
    tool_version: str = __version__,
) -> dict[str, Any]:
    """The plan as plain values, ready for `json.dumps`.

    `git` is `{"commit": …, "dirty": …}` where known, `created_at` defaults to now. `plan_digest`
    covers everything but itself, `git`, `created_at` and `tool_version`.
    """
    document = plan_document(plan)
    digest = digest_of(document)
    return {
        "format_version": document.pop("format_version"),
        "tool_version": tool_version,
        "applyable": document.pop("applyable"),
        "complete": document.pop("complete"),
        "errored": document.pop("errored"),
        "plan_digest": digest,
        "git": git,
        "env": document.pop("env"),
        "created_at": str(created_at or Timestamp.now()),
        **document,
    }
