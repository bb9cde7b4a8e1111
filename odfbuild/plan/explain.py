"""Why a dataset is stale or not: its reasons and those of what it reads, down to root causes.

Reads a plan and makes no decisions. Reads no files; places and numbers of blocks that it names are
looked up by whoever shows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from odfbuild.errors import Location, OdfbuildError
from odfbuild.odf.chain.projection import Projection
from odfbuild.plan.changes.diff import reason_of
from odfbuild.plan.inputs import States
from odfbuild.plan.model import (
    Action,
    DatasetPlan,
    Pending,
    PinnedDataset,
    Plan,
    Reason,
    ReasonCode,
)
from odfbuild.project.git.notes import CommitInfo
from odfbuild.values import Value
from odfbuild.wording import count


class DatasetStatus(Enum):
    """The status of a dataset in a plan."""

    NEW = "new: will be created"
    STALE = "stale: will run"
    MAYBE_STALE = "may be stale: apply checks its source for new data"
    CHANGED = "changed: events will be appended, nothing runs"
    QUERY_WAITS = "has results of an earlier query: the changed query waits for new input"
    UP_TO_DATE = "up to date: nothing will happen"
    REFUSED = "refused: it is not changed"
    ORPHANED = "orphaned: its definition was removed; its chain stays"
    EXTERNAL = "external: a dataset of others; only `odfbuild pull` brings its news"
    NOT_PULLED = "external: a dataset of others that nobody pulled yet"


class BlockPosition(Value, kw_only=True):
    """The number of a block in its chain, and the commit of Git that it belongs to, if known."""

    sequence_number: int
    commit: CommitInfo | None = None


class Cause(Value, kw_only=True):
    """A reason; its `children` are the causes of the dataset that it names.

    `place` is where the definition says what changed. `start` and `end` are the blocks of the
    reason, `commit` the one that brought the change; they are looked up by `apply.receipts`.
    `repeated` causes of that dataset are told elsewhere in the tree.
    """

    reason: Reason
    place: Location | None = None
    start: BlockPosition | None = None
    end: BlockPosition | None = None
    commit: CommitInfo | None = None
    children: tuple[Cause, ...] = ()
    repeated: bool = False


class Evidence(Value, kw_only=True):
    """What is not a reason, with the evidence: how far an input or the definition is committed."""

    what: str
    because: str


class Explanation(Value, kw_only=True):
    """Why one dataset will run or not.

    `last_failure` says how its last run failed, if it did; it is looked up by `apply.receipts`.
    `pending` is what the run will read, and how it is computed.
    """

    name: str
    status: DatasetStatus
    causes: tuple[Cause, ...]
    settled: tuple[Evidence, ...]
    refusal: OdfbuildError | None = None
    last_failure: str | None = None
    pending: Pending | None = None


_STATUS = {
    Action.CREATE: DatasetStatus.NEW,
    Action.REFUSE: DatasetStatus.REFUSED,
    Action.FORGET: DatasetStatus.ORPHANED,
    Action.RUN: DatasetStatus.STALE,
    Action.POLL: DatasetStatus.MAYBE_STALE,
    Action.RENAME: DatasetStatus.CHANGED,
    Action.APPEND: DatasetStatus.CHANGED,
}
"""In order of precedence."""


def explain(plan: Plan, name: str, projections: Mapping[str, Projection]) -> Explanation:
    """The explanation of the dataset `name` of a plan; `projections` are all chains by alias."""
    external = {each.name: each for each in plan.external}
    if name in external:
        return _of_others(external[name])
    datasets = {dataset.name: dataset for dataset in plan.datasets}
    dataset = datasets[name]
    status = next(
        (found for action, found in _STATUS.items() if action in dataset.actions),
        DatasetStatus.QUERY_WAITS if dataset.query_waits else DatasetStatus.UP_TO_DATE,
    )
    folded = States(projections)
    return Explanation(
        name=name,
        status=status,
        causes=_Tree(datasets).causes(dataset),
        settled=() if dataset.refusal else tuple(_settled(dataset, folded)),
        refusal=dataset.refusal,
        pending=dataset.pending,
    )


def _of_others(pinned: PinnedDataset) -> Explanation:
    if pinned.head is None:
        status = DatasetStatus.NOT_PULLED
        code, message = ReasonCode.NOT_PULLED, f"`odfbuild pull {pinned.name}` brings its chain"
    else:
        status = DatasetStatus.EXTERNAL
        records = count(pinned.records, "record")
        code, message = ReasonCode.PINNED, f"{records} of {pinned.reference} are pinned"
    reason = Reason(code=code, message=message, input=pinned.name, to_block=pinned.head)
    return Explanation(name=pinned.name, status=status, causes=(Cause(reason=reason),), settled=())


class _Tree:
    """Causes of datasets; those of each dataset are told once."""

    def __init__(self, datasets: Mapping[str, DatasetPlan]) -> None:
        self._datasets = datasets
        self._told: set[str] = set()

    def causes(self, dataset: DatasetPlan) -> tuple[Cause, ...]:
        self._told.add(dataset.name)
        return tuple(
            self._cause(dataset, reason)
            for reason in dataset.reasons
            if reason.code is not ReasonCode.UP_TO_DATE
        )

    def _cause(self, dataset: DatasetPlan, reason: Reason) -> Cause:
        upstream = self._datasets.get(reason.input or "")
        if reason.code is ReasonCode.UPSTREAM_PLANNED and upstream is not None:
            if upstream.name in self._told:
                return Cause(reason=reason, repeated=True)
            return Cause(reason=reason, children=self.causes(upstream))
        children = tuple(Cause(reason=each) for each in reason.children)
        return Cause(reason=reason, place=_place(dataset, reason.code), children=children)


def _place(dataset: DatasetPlan, code: ReasonCode) -> Location | None:
    if code in (ReasonCode.NEW, ReasonCode.RENAMED, ReasonCode.COSMETIC):
        return dataset.location
    if not code.value.startswith("definition_changed"):
        return None
    for change in dataset.changes:
        if reason_of(change.after)[0] is code:
            return change.location or dataset.location
    return dataset.location


def _settled(dataset: DatasetPlan, projections: Mapping[str, Projection]) -> list[Evidence]:
    state = projections.get(dataset.name.lower())
    found = []
    if state is not None and not dataset.changes and Action.FORGET not in dataset.actions:
        because = f"the same as in the chain, head {state.head.short}"
        found.append(Evidence(what="the definition", because=because))
    blamed = {reason.input for reason in dataset.reasons}
    consumed = {each.dataset_id: each for each in state.inputs} if state else {}
    for name in dict.fromkeys(dataset.inputs):
        upstream = projections.get(name.lower())
        last = consumed.get(upstream.dataset_id) if upstream else None
        if name in blamed or upstream is None or last is None:
            continue
        offset = "no record" if last.new_offset is None else f"offset {last.new_offset}"
        block = last.new_block_hash.short if last.new_block_hash else "-"
        found.append(Evidence(what=name, because=f"consumed up to {offset}, block {block}"))
    return found
