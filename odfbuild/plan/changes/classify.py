"""What kind of change a definition brings to its dataset.

Told from the plan of the dataset alone: its events, what they do to columns, and refusals. Reads
no files, runs no queries.
"""

from __future__ import annotations

from enum import StrEnum

from odfbuild.odf.model import AddPushSource, SetPollingSource, SetTransform
from odfbuild.plan.model import Action, ColumnEffect, DatasetPlan, EventChange, ReasonCode


class Category(StrEnum):
    """Kinds of change, from the harmless to what is refused; part of the output format.

    `METADATA` is appended and runs nothing. `COSMETIC` appends nothing. `ADDITIVE` brings new
    columns and leaves all others as they are computed. `FORWARD_ONLY` makes new records in another
    way than those that stay. `REBUILD` drops the history and recomputes it. `BREAKING` is refused.
    """

    NEW = "new"
    METADATA = "metadata"
    COSMETIC = "cosmetic"
    ADDITIVE = "additive"
    FORWARD_ONLY = "forward-only"
    REBUILD = "rebuild"
    BREAKING = "breaking"


def category(dataset: DatasetPlan) -> Category | None:
    """The kind of change; `None` when the definition brings none, or another thing is refused."""
    if dataset.refusal is not None:
        return next(filter(None, (_REFUSED.get(reason.code) for reason in dataset.reasons)), None)
    if Action.CREATE in dataset.actions:
        return Category.NEW
    if Action.REBUILD in dataset.actions:
        return Category.REBUILD
    if any(_makes_records(change) for change in dataset.changes):
        if _only_adds(dataset.columns):
            return Category.ADDITIVE
        return Category.METADATA if _only_describes(dataset) else Category.FORWARD_ONLY
    if dataset.changes or dataset.renamed_from is not None:
        return Category.METADATA
    if any(reason.code is ReasonCode.COSMETIC for reason in dataset.reasons):
        return Category.COSMETIC
    return None


_REFUSED = {
    ReasonCode.BREAKING: Category.BREAKING,
    ReasonCode.POLICY_ADDITIVE: Category.ADDITIVE,
    ReasonCode.POLICY_FORWARD_ONLY: Category.FORWARD_ONLY,
}


def _makes_records(change: EventChange) -> bool:
    """Whether later records are made by what changed; a further push source changes no others."""
    match change.after:
        case SetTransform() | SetPollingSource():
            return True
        case AddPushSource():
            return change.before is not None
    return False


def _only_describes(dataset: DatasetPlan) -> bool:
    """Whether a source says something else about columns that it gives as before."""
    effect = dataset.columns
    return (
        effect is not None
        and effect.known
        and not (effect.added or effect.changed or effect.records)
        and not any(isinstance(change.after, SetTransform) for change in dataset.changes)
    )


def _only_adds(effect: ColumnEffect | None) -> bool:
    return (
        effect is not None
        and effect.known
        and bool(effect.added)
        and not effect.changed
        and not effect.records
    )
