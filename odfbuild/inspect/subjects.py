"""Find the records of subjects, and the steps that cannot be recomputed once their keys are gone.

The column that names the subject is not encrypted, so no key is needed for that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from odfbuild.odf.model import AddData, ExecuteTransform
from odfbuild.sql.forecast import expected_mode
from odfbuild.sql.mode import Mode
from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.odf.chain.projection import Projection
    from odfbuild.odf.multihash import Multihash
    from odfbuild.store.dataset import DatasetStore
    from odfbuild.store.workspace import Workspace


class SubjectRecords(Value, kw_only=True):
    """What a dataset has of subjects: records by subject, and the numbers of their blocks."""

    dataset: str
    records: Mapping[str, int]
    numbers: tuple[int, ...]


def records_of_subjects(
    store: DatasetStore, head: Multihash, columns: Collection[str], subjects: Collection[str]
) -> SubjectRecords:
    """The records of which one of `columns` names one of these subjects.

    Reads these columns of all slices; those that were withdrawn have no records any more.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    wanted = pa.array(sorted(subjects), pa.string())
    found: Counter[str] = Counter()
    numbers = []
    withdrawn = store.withdrawn()
    for _, block in store.walk(head):
        event = block.event
        if not isinstance(event, AddData | ExecuteTransform) or event.new_data is None:
            continue
        if ("data", event.new_data.physical_hash) in withdrawn:
            continue
        with pq.ParquetFile(store.bring("data", event.new_data.physical_hash)) as file:
            names = [each for each in columns if each in file.schema_arrow.names]
            if not names:
                continue
            table = file.read(names)
        before = found.total()
        for name in names:
            texts = table[name].cast(pa.string())
            for each in pc.value_counts(texts.filter(pc.is_in(texts, wanted))).to_pylist():
                found[each["values"]] += each["counts"]
        if found.total() > before:
            numbers.append(block.sequence_number)
    return SubjectRecords(dataset=store.name, records=dict(found), numbers=tuple(sorted(numbers)))


def steps_that_read(
    workspace: Workspace, states: Mapping[str, Projection], found: Iterable[SubjectRecords]
) -> dict[str, int]:
    """How many steps of derivatives read these records, by name; they may give something else now.

    A query that looks at more than the new records reads all earlier ones in each step.
    """
    numbers = {states[each.dataset].dataset_id: each for each in found if each.numbers}
    steps: dict[str, int] = {}
    for name, state in states.items():
        if state.transform is None or not any(i.dataset_id in numbers for i in state.inputs):
            continue
        alone = expected_mode(state.transform.transform).mode is Mode.MAP
        for _, block in workspace.dataset(name).walk(state.head):
            event = block.event
            if not isinstance(event, ExecuteTransform):
                continue
            for each in event.query_inputs:
                read = numbers.get(each.dataset_id)
                if read is None:
                    continue
                store = workspace.dataset(read.dataset)
                first = _number(store, each.prev_block_hash) + 1 if alone else 0
                last = _number(store, each.new_block_hash or each.prev_block_hash)
                if _any_within(read.numbers, first, last):
                    steps[name] = steps.get(name, 0) + 1
                    break
    return steps


def _number(store: DatasetStore, block: Multihash | None) -> int:
    return -1 if block is None else store.read_block(block).sequence_number


def _any_within(numbers: Sequence[int], first: int, last: int) -> bool:
    return any(first <= each <= last for each in numbers)
