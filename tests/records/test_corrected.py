"""Which columns corrections change is told to the bit, and not at all where that is not certain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfbuild.odf.multihash import Multihash
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.records.corrected import corrected_columns
from odfbuild.store.corrections import (
    KEPT,
    Corrected,
    Corrections,
    changes_of,
    keep_corrections,
    kept_corrections,
)

NAN = float("nan")
KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "id": (pa.int64(), st.sampled_from([None, 0, 1])),
    "x": (pa.float64(), st.sampled_from([None, 0.0, -0.0, NAN, 1.5])),
    "a.b": (pa.string(), st.sampled_from([None, "", "a"])),
    "tags": (pa.list_(pa.string()), st.sampled_from([None, [], ["a"], [None]])),
    "price": (pa.decimal128(9, 2), st.just(None)),
}
ROWS = st.tuples(*(values for _, values in KINDS.values()))


def written(folder: Path, ops: list[int], rows: list[tuple[Any, ...]]) -> Path:
    columns = [
        pa.array([row[at] for row in rows], kind) for at, (kind, _) in enumerate(KINDS.values())
    ]
    count = len(rows)
    system = [pa.array(range(count), pa.int64()), pa.array(ops, pa.int32())]
    names = ["offset", "op", "system_time", *KINDS]
    file = folder / "slice.parquet"
    pq.write_table(pa.table([*system, pa.array(range(count)), *columns], names=names), file)
    return file


@given(st.lists(st.tuples(ROWS, ROWS), min_size=1, max_size=4), st.lists(ROWS, max_size=2))
def test_a_column_is_told_that_differs_in_any_correction(
    tmp_path_factory: pytest.TempPathFactory,
    pairs: list[tuple[tuple[Any, ...], tuple[Any, ...]]],
    others: list[tuple[Any, ...]],
) -> None:
    rows = [row for pair in pairs for row in pair] + others
    file = written(tmp_path_factory.mktemp("a"), [2, 3] * len(pairs) + [0] * len(others), rows)
    found = corrected_columns(file, Vocabulary())
    assert found is not None
    differ = {
        name for at, name in enumerate(KINDS) if any(repr(a[at]) != repr(b[at]) for a, b in pairs)
    }
    # Of what is no number, nobody knows whether it is the same one.
    nan = {"x"} if any(repr(NAN) in repr(pair) for pair in pairs) else set()
    assert differ - nan <= set(found.columns) <= differ | nan
    assert found.alone == (not others)


@pytest.mark.parametrize("ops", [[0, 0], [1, 0], [2, 0], [3, 2], [2, 2], [0, 3]])
def test_what_is_no_whole_correction_is_not_told_of(tmp_path: Path, ops: list[int]) -> None:
    row = (1, 1.5, "a", None, None)
    assert corrected_columns(written(tmp_path, ops, [row, row]), Vocabulary()) is None


def test_numbers_in_nested_values_count_as_changed(tmp_path: Path) -> None:
    table = pa.table(
        [pa.array([0, 1]), pa.array([2, 3], pa.int32()), pa.array([[1.0], [1.0]])],
        names=["offset", "op", "list"],
    )
    pq.write_table(table, tmp_path / "slice.parquet")
    assert corrected_columns(tmp_path / "slice.parquet", Vocabulary()) == Corrected(("list",), True)


def test_slices_that_bring_more_than_corrections_may_change_everything() -> None:
    vocab = Vocabulary()
    head = Multihash.sha3_256(b"head")
    slices = {"a": Corrected(("x",), alone=True), "b": Corrected(("y",), alone=False)}
    kept = Corrections(head, slices=slices)
    assert changes_of(kept, ["a"], vocab) == {"x", "offset", "op", "system_time"}
    assert changes_of(kept, [], vocab) == frozenset()
    for files in (["a", "b"], ["a", "c"]):
        assert changes_of(kept, files, vocab) is None
    assert changes_of(None, ["a"], vocab) is None


def test_the_newest_slices_are_kept(tmp_path: Path) -> None:
    head = Multihash.sha3_256(b"head")
    for number in range(KEPT + 2):
        keep_corrections(tmp_path, head, {str(number): Corrected((), alone=True)})
    kept = kept_corrections(tmp_path)
    assert kept is not None
    assert [*kept.slices] == [str(number) for number in range(2, KEPT + 2)]
    assert kept_corrections(tmp_path / "elsewhere") is None
