"""What cannot be checked any more because the owner of a dataset says why: signed statements.

Objects that were withdrawn need not be there, and steps that read them, or wrote them, cannot be
recomputed. A step that read records of an erased subject may give something else now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from odfbuild.inspect.verify.replay import Replay
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.stewardship import Statement, Withdrawal
from odfbuild.odf.timestamp import Timestamp
from odfbuild.sql.forecast import expected_mode
from odfbuild.sql.mode import Mode
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.stewardship import erasures, withdrawals
from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.engine.request import StepInput


class Excuse(Value, kw_only=True):
    """A statement about the dataset `of`, and what of `dataset` cannot be checked because of it.

    That are so many `steps` that were not recomputed, or so many `objects` with `records` that are
    not there. `kind` is `Withdrawal` or `Erasure`, `by` who made it, `why` its reason, if any.
    """

    dataset: str
    of: str
    kind: str
    time: Timestamp
    by: str
    why: str = ""
    steps: int = 0
    objects: int = 0
    records: int = 0


Grounds = tuple[str, Statement]
"""The dataset that a statement is about, and the statement."""


def withdrawn_from(store: DatasetStore) -> Iterator[Excuse]:
    """What of a dataset was withdrawn, by statement, the oldest first."""
    by = list(store.withdrawn().values())
    for each in withdrawals(store.statements()):
        if objects := by.count(each):
            yield _excuse(store.name, (store.name, each), objects=objects, records=each.records)


def grounds_before(store: DatasetStore, replay: Replay) -> Grounds | None:
    """Why a step of a dataset cannot be recomputed; `None`: it can be tried."""
    data = replay.recorded.new_data
    own = store.withdrawn()
    if data is not None and (found := own.get(("data", data.physical_hash))) is not None:
        return store.name, found
    return next((why for each in replay.inputs if (why := _lacking(each, replay))), None)


def _lacking(each: StepInput, replay: Replay) -> Grounds | None:
    withdrawn = each.store.withdrawn()
    if not withdrawn:
        return None
    for data, _ in each.step.promised_slices:
        if (found := withdrawn.get(("data", data.physical_hash))) is not None:
            return each.store.name, found
    if expected_mode(replay.transform.transform).mode is Mode.MAP:
        return None
    # It may have read records of before, which were there then.
    later = (w for w in withdrawals(each.store.statements()) if w.time >= replay.system_time)
    return next(((each.store.name, w) for w in later), None)


def grounds_behind(store: DatasetStore, replay: Replay) -> Grounds | None:
    """Why a step of a dataset may give other records now; `None`: nothing says that it may."""
    for said in erasures(store.statements()):
        if replay.sequence_number in said.numbers:
            return store.name, said
    alone = expected_mode(replay.transform.transform).mode is Mode.MAP
    for each in replay.inputs:
        step = each.step
        for said in erasures(each.store.statements()):
            first = _number(each, step.prev_block) + 1 if alone else 0
            last = _number(each, step.new_block or step.prev_block)
            if any(first <= number <= last for number in said.numbers):
                return each.store.name, said
    return None


def _number(each: StepInput, block: Multihash | None) -> int:
    return -1 if block is None else each.store.read_block(block).sequence_number


def counted(steps: Iterable[tuple[str, Grounds]]) -> tuple[Excuse, ...]:
    """Steps of datasets that were not recomputed, as one excuse for each statement."""
    found: dict[tuple[str, str, str], tuple[Grounds, int]] = {}
    for dataset, grounds in steps:
        key = (dataset, grounds[0], str(grounds[1].time))
        found[key] = (grounds, found.get(key, (grounds, 0))[1] + 1)
    return tuple(
        _excuse(dataset, grounds, steps=number)
        for (dataset, _, _), (grounds, number) in sorted(found.items(), key=lambda e: e[0])
    )


def _excuse(
    dataset: str, grounds: Grounds, steps: int = 0, objects: int = 0, records: int = 0
) -> Excuse:
    of, said = grounds
    return Excuse(
        dataset=dataset,
        of=of,
        kind=said.KIND,
        time=said.time,
        by=said.by,
        why=said.why if isinstance(said, Withdrawal) else "",
        steps=steps,
        objects=objects,
        records=records,
    )
