"""A plan as JSON: the machine-readable form of what apply would do, and the form of its file."""

from __future__ import annotations

from typing import Any

from odfbuild.odf.timestamp import Timestamp
from odfbuild.plan.document import digest_of, news_data, plan_document
from odfbuild.plan.model import Plan
from odfbuild.plan.refusal import as_data
from odfbuild.plan.saved import SavedPlan
from odfbuild.version import __version__


def stamp(
    plan: Plan,
    *,
    git: dict[str, Any] | None = None,
    created_at: Timestamp | None = None,
    tool_version: str = __version__,
) -> SavedPlan:
    """A plan with its digest and where it came from; `created_at` defaults to now."""
    return SavedPlan(
        plan=plan,
        digest=digest_of(plan_document(plan)),
        created_at=str(created_at or Timestamp.now()),
        tool_version=tool_version,
        git=git,
    )


def plan_to_data(saved: SavedPlan) -> dict[str, Any]:
    """The plan as plain values, ready for `json.dumps`; `schemas/plan.schema.json` describes it.

    `plan_digest` covers everything but itself, `git`, `created_at`, `tool_version`, `windows`,
    `news` and `tables`.
    """
    document = plan_document(saved.plan)
    return {
        "format_version": document.pop("format_version"),
        "tool_version": saved.tool_version,
        "applyable": document.pop("applyable"),
        "complete": document.pop("complete"),
        "errored": document.pop("errored"),
        "plan_digest": saved.digest,
        "git": saved.git,
        "env": document.pop("env"),
        "created_at": saved.created_at,
        **document,
        "windows": [each.to_data() for each in saved.plan.windows],
        "news": news_data(saved.plan),
        **({"tables": as_data(saved.plan.tables)} if saved.plan.tables else {}),
    }
