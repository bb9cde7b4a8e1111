"""Slices that hold few bytes and far more in memory are shown in parts, or refused with a code."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from odfbuild.errors import IntegrityError, RecordsError
from odfbuild.records import bounds, claimed
from odfbuild.records.records import newest_records, records_of
from tests.records.chains import MILLIS, Chain, workspace

ROWS = 4_000
MIB = 1 << 20
TEXT = pa.field("text", pa.string())
KILOBYTES = 400 * 1024


@pytest.fixture(autouse=True)
def frugal() -> Iterator[None]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < KILOBYTES


def _committed(root: Path, *columns: pa.Field, values: list[pa.Array]) -> Chain:
    chain = Chain(workspace(root), "a", *columns)
    count = len(values[0])
    zeros = pa.array([0] * count)
    system = [pa.array(range(count)), zeros.cast(pa.int32()), *[zeros.cast(MILLIS)] * 2]
    table = pa.table([*system, *values], names=chain.schema.names)
    chain.add_table(table)
    return chain


def _repeated(size: int, rows: int = ROWS) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), ["x" * size])


def test_the_newest_record_of_a_value_that_is_repeated_takes_the_memory_of_one(
    tmp_path: Path,
) -> None:
    chain = _committed(tmp_path, TEXT, values=[_repeated(8 * MIB)])
    [file] = (chain.store.path / "data").iterdir()
    assert file.stat().st_size < MIB
    state = chain.space.projection("a")
    found = newest_records(chain.space, "a", state, 1)
    assert found is not None
    assert found.schema.field("text").type == pa.string()
    assert [len(text) for text in found["text"].to_pylist()] == [8 * MIB]
    assert found["offset"].to_pylist() == [ROWS - 1]


def test_more_than_can_be_shown_is_refused_before_it_is_in_memory(tmp_path: Path) -> None:
    chain = _committed(tmp_path, TEXT, values=[_repeated(8 * MIB)])
    with pytest.raises(RecordsError) as told:
        newest_records(chain.space, "a", chain.space.projection("a"), ROWS)
    assert told.value.code == "E1210"
    assert "31.3 GiB" in told.value.message
    assert "sql --engine duckdb" in (told.value.help or "")


def test_all_records_come_in_batches_of_a_bounded_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = _committed(tmp_path, TEXT, values=[_repeated(MIB // 4)])
    monkeypatch.setattr(claimed, "_WRITTEN_OUT", 4 * MIB)
    total = 0
    for batch in records_of(chain.space, "a").batches():
        assert batch.nbytes < 5 * MIB
        total += batch.num_rows
    assert total == ROWS


def test_a_condition_reads_so_few_records_at_once_as_their_text_may_take(tmp_path: Path) -> None:
    chain = _committed(tmp_path, TEXT, values=[_repeated(4 * MIB, 100)])
    filter = pc.field("offset") > 97
    found = records_of(chain.space, "a").last(1, ["text"], filter)
    assert [len(text) for text in found["text"].to_pylist()] == [4 * MIB]


def test_repeated_text_in_lists_and_structures_is_written_out_in_parts(tmp_path: Path) -> None:
    inner = pa.field("text", pa.string())
    columns = (
        pa.field("list", pa.list_(pa.string())),
        pa.field("group", pa.struct([inner])),
    )
    offsets = pa.array(range(0, 2 * ROWS + 2, 2), pa.int32())
    text = "x" * MIB
    chain = _committed(
        tmp_path,
        *columns,
        values=[
            pa.ListArray.from_arrays(offsets, _repeated(MIB, 2 * ROWS)),
            pa.StructArray.from_arrays([_repeated(MIB)], ["text"]),
        ],
    )
    found = newest_records(chain.space, "a", chain.space.projection("a"), 2)
    assert found is not None
    assert found.schema.field("list").type == pa.list_(pa.string())
    assert found["list"].to_pylist() == [[text, text]] * 2
    assert found["group"].to_pylist() == [{"text": text}] * 2


def test_long_values_without_a_dictionary_are_read_a_few_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = Chain(workspace(tmp_path), "a", TEXT)
    chain.add([(0, "x" * MIB)] * 40)
    [file] = (chain.store.path / "data").iterdir()
    table = pq.read_table(file, columns=["offset"])
    assert table.num_rows == 40
    monkeypatch.setattr(claimed, "AT_ONCE", 8 * MIB)
    found = newest_records(chain.space, "a", chain.space.projection("a"), 1)
    assert found is not None
    assert found.num_rows == 1
    assert found["offset"].to_pylist() == [39]


def test_a_page_that_claims_far_more_than_it_has_is_refused_by_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = Chain(workspace(tmp_path), "a", TEXT)
    chain.add([(0, "0" * (4 * MIB))])
    monkeypatch.setattr(bounds, "_PAGE", MIB)
    monkeypatch.setattr(bounds, "_RATIO", 1)
    for read in (
        lambda: newest_records(chain.space, "a", chain.space.projection("a"), 1),
        lambda: records_of(chain.space, "a").last(1, None, pc.field("offset") >= 0),
        lambda: list(records_of(chain.space, "a").batches()),
    ):
        with pytest.raises(IntegrityError) as told:
            read()
        assert told.value.code == "E0831"


def test_a_slice_whose_pages_are_damaged_is_an_error_with_a_code(tmp_path: Path) -> None:
    chain = Chain(workspace(tmp_path), "a", TEXT)
    chain.add([(0, "text")] * 10)
    [file] = (chain.store.path / "data").iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[:4] + b"\xff" * 40 + whole[44:])
    with pytest.raises(IntegrityError) as told:
        newest_records(chain.space, "a", chain.space.projection("a"), 1)
    assert told.value.code in ("E0815", "E0831")
