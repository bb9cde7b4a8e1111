"""What may happen to datasets, by patterns of their names: `policies` of odfbuild.yaml."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated, Literal

from odfbuild.declared_settings import Fits, setting
from odfbuild.project.settings.by_name import Patterns, matching
from odfbuild.values import Value

Ruling = Annotated[Literal["allow", "refuse"], Fits(default="allow")]
OnQueryChange = Literal["forward", "correct", "rebuild"]
Incremental = Literal["required", "preferred"]
_UNITS = {"kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
Bytes = Annotated[
    int,
    Fits(
        plain=str,
        made=lambda text: int(text[:-2]) * _UNITS[text[-2:]],
        pattern=r"^[1-9][0-9]{0,6}(kB|MB|GB|TB)$",
        examples=["10GB"],
    ),
]
"""A size as text, such as 10GB, and how many bytes that is."""


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
    incremental: Annotated[Incremental, Fits(default="preferred")] | None = setting(
        None,
        "`required` refuses a step that is computed over all of 500,000 or more records although "
        "few of them are new",
    )
    max_records: Annotated[int, Fits(minimum=1)] | None = setting(
        None, "How many records of its inputs or source a step may read"
    )
    max_read: Bytes | None = setting(
        None, "How many bytes of its inputs or source a step may read, such as 10GB"
    )


class Limits(Value):
    """What a step of a dataset may read; each limit with the number of its entry."""

    incremental: int | None = None
    max_records: tuple[int, int] | None = None
    max_read: tuple[int, int] | None = None

    def __bool__(self) -> bool:
        return any(each is not None for each in (self.incremental, self.max_records, self.max_read))


def limits_of(policies: Sequence[Policy], name: str) -> Limits:
    """The limits of a dataset; of several entries that match, the last one wins."""
    found = Limits()
    for number, policy in enumerate(policies):
        if matching(policy, name) is None:
            continue
        if policy.incremental is not None:
            required = policy.incremental == "required"
            found = replace(found, incremental=number if required else None)
        if policy.max_records is not None:
            found = replace(found, max_records=(policy.max_records, number))
        if policy.max_read is not None:
            found = replace(found, max_read=(policy.max_read, number))
    return found


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
