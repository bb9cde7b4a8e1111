"""What may happen to datasets, by patterns of their names: `policies` of odfbuild.yaml."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from odfbuild.declared_settings import Fits, setting
from odfbuild.project.settings.by_name import Patterns, matching
from odfbuild.values import Value

Ruling = Annotated[Literal["allow", "refuse"], Fits(default="allow")]
OnQueryChange = Literal["forward", "correct", "rebuild"]


class Policy(Value):
    """What may happen to datasets whose name matches; nothing is said of what is `None`.

    Breaking changes are always refused.
    """

    match: Patterns = setting()
    additive: Ruling | None = setting(None, "New columns, all others as before")
    forward_only: Ruling | None = setting(
        None,
        "Other logic or another source: only new records change",
        key="forward-only",
    )
    rebuild: Ruling | None = setting(
        None, "Dropping the history to rebuild it; `refuse` protects the dataset"
    )
    on_query_change: Annotated[OnQueryChange, Fits(default="forward")] | None = setting(
        None,
        "What a changed query does to existing records: nothing (`forward`), `correct` them where "
        "the result is kept as a changelog, or `rebuild` the dataset and all that read it",
    )


def refusing(policies: Iterable[Policy], name: str, kind: str) -> str | None:
    """The pattern by which a kind of change is refused for a dataset; `None`: it is allowed."""
    pattern: str | None = None
    for policy in policies:
        ruling = getattr(policy, kind.replace("-", "_"))
        matched = matching(policy, name)
        if matched is not None and ruling is not None:
            pattern = matched if ruling == "refuse" else None
    return pattern


def on_query_change(policies: Sequence[Policy], name: str) -> tuple[OnQueryChange, int] | None:
    """What a changed query does to the records of a dataset, and the number of the entry.

    `None`: nothing is said, so it holds for new records (`forward`).
    """
    for number in range(len(policies) - 1, -1, -1):
        found = policies[number].on_query_change
        if found is not None and matching(policies[number], name) is not None:
            return found, number
    return None
