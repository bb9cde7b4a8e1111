"""Which objects of a dataset are due to be withdrawn, and what still needs them. Pure.

Records are as old as the block that has them. What is withdrawn is always the beginning of a
history, so that one block says all of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta

from odfbuild.errors import OdfbuildError, PersonalDataError
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.chain.step import Link
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import (
    AddData,
    DatasetKind,
    DataSlice,
    ExecuteTransform,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.sql.forecast import expected_mode
from odfbuild.sql.mode import Mode
from odfbuild.values import Value
from odfbuild.wording import count


class DueWithdrawal(Value, kw_only=True):
    """Objects of `dataset` that are older than it keeps them.

    They are those of the block `through`, which has that number, and of all before it: so many
    `objects`, `records` and `bytes`, none of a block later than `until`. They are withdrawn if that
    is `allowed` and nothing refuses it.
    """

    dataset: str
    why: str
    through: Multihash
    number: int
    until: Timestamp
    objects: int
    records: int
    bytes: int
    allowed: bool = False
    refusal: OdfbuildError | None = None

    @property
    def happens(self) -> bool:
        """Whether apply withdraws them."""
        return self.allowed and self.refusal is None


class Old(Value):
    """The slices of a chain that are due, oldest first, and the last block that has one of them."""

    through: Multihash
    number: int
    until: Timestamp
    slices: tuple[DataSlice, ...]


def old_slices(links: Iterable[Link], before: Timestamp, ends: Collection[Multihash]) -> Old | None:
    """What blocks of earlier than `before` added; `links` are newest first.

    `ends` are the blocks up to which all was withdrawn: nothing behind the first of them is read.
    """
    last: tuple[Multihash, int, Timestamp] | None = None
    slices: list[DataSlice] = []
    for hash, block in links:
        if hash in ends:
            break
        event = block.event
        if not isinstance(event, AddData | ExecuteTransform) or event.new_data is None:
            continue
        if last is None and block.system_time < before:
            last = (hash, block.sequence_number, block.system_time)
        if last is not None:
            slices.append(event.new_data)
    return None if last is None else Old(*last, tuple(reversed(slices)))


def age_in_words(keep: timedelta) -> str:
    """Such as `400 days` or `36 hours`."""
    for unit, seconds in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        number, rest = divmod(int(keep.total_seconds()), seconds)
        if not rest:
            return count(number, unit)
    return count(int(keep.total_seconds()), "second")


def own_need(name: str, state: Projection) -> OdfbuildError | None:
    """Why the dataset itself needs its old records; `None`: new ones can come without them."""
    if state.kind is DatasetKind.Root:
        sources = [state.polling_source, *state.push_sources.values()]
        merges = {each.merge for each in sources if each is not None}
        if not all(each.KEEPS_ALL for each in merges):
            wrong = sorted({each.KIND for each in merges})
            why = f"its merge strategy {' and '.join(wrong)} compares new records with all so far"
            return _needed(name, why, "withdraw records of datasets that append only")
        return None
    if state.transform is None or expected_mode(state.transform.transform).mode is Mode.CHANGELOG:
        why = "its query is kept as a changelog, which is compared with all records so far"
        return _needed(name, why, "withdraw the records of its inputs, or rebuild it without them")
    return None


class Reader(Value):
    """A dataset that reads another one; `offset` is the last record that it read (`None`: none)."""

    name: str
    state: Projection | None
    offset: int | None


def readers_of(
    name: str,
    dataset_id: DatasetId,
    states: Mapping[str, Projection],
    inputs: Mapping[str, Sequence[str]],
) -> Iterator[Reader]:
    """All that read a dataset by their chains, or by their definitions (`inputs`, by name)."""
    for other, state in states.items():
        for each in state.inputs:
            if each.dataset_id == dataset_id:
                new, old = each.new_offset, each.prev_offset
                yield Reader(other, state, old if new is None else new)
                break
        else:
            if name in inputs.get(other, ()):
                yield Reader(other, state, None)
    for other in inputs.keys() - states.keys():
        if name in inputs[other]:
            yield Reader(other, None, None)


def need_of(reader: Reader, name: str, last: int, is_closed: bool | None) -> OdfbuildError | None:
    """Why a reader still needs records of `name` up to offset `last`; `None`: it does not.

    `is_closed` says whether all its windows over them are closed; `None`: nobody could tell.
    """
    if reader.offset is None or reader.offset < last:
        why = f"'{reader.name}' has not read all of them yet"
        return _needed(name, why, f"run `odfbuild apply -s {reader.name}` first")
    state = reader.state
    assert state is not None
    mode = None if state.transform is None else expected_mode(state.transform.transform).mode
    if mode in (Mode.MAP, Mode.CHECKPOINT):
        return None
    if mode is Mode.STREAM and is_closed:
        return None
    if mode is Mode.STREAM and is_closed is False:
        why = f"'{reader.name}' has windows over them that are still open"
        return _needed(name, why, "wait until the watermark has passed them")
    why = (
        f"'{reader.name}' computes over the whole history of its inputs"
        if mode is not Mode.STREAM
        else f"'{reader.name}' may join them with new records"
    )
    help = f"group by windows of time in '{reader.name}', or read '{name}' record by record"
    return _needed(name, why, help)


def _needed(name: str, why: str, help: str) -> PersonalDataError:
    return PersonalDataError(
        f"old records of '{name}' cannot be withdrawn: {why}",
        code="E1631",
        dataset=name,
        help=help,
    )
