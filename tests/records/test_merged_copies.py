"""Merged copies change nothing but time: what is read through them is what the slices hold."""

from __future__ import annotations

import math
import os
import random
import shutil
import time
import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.engine.contract import Engine
from odfbuild.inspect.ask import asked_of, understand
from odfbuild.records import merge_slices
from odfbuild.records.duckdb_views import connect
from odfbuild.records.merge_slices import keep_merged
from odfbuild.records.retracted import retracted
from odfbuild.records.stored import Stored
from odfbuild.report.records.answer import read_answer
from odfbuild.store.committed import Committed, files_of
from odfbuild.store.side_cars import SideCarFolder
from tests.records.chains import Chain, workspace

COLUMNS = (
    pa.field("id", pa.int64(), metadata={"odf.note": "kept"}),
    pa.field("text", pa.string()),
    pa.field("price", pa.decimal128(12, 3)),
    pa.field("measure", pa.float64()),
    pa.field("fine", pa.timestamp("us", "UTC")),
    pa.field("key", pa.uuid()),
    pa.field("both", pa.struct([pa.field("a", pa.int32()), pa.field("b", pa.string())])),
)


def row(number: int) -> tuple[Any, ...]:
    return (
        number * 1000,
        number,
        None if number % 3 == 0 else f"t{number}",
        Decimal(number) / 8,
        math.nan if number % 5 == 0 else -0.0 if number % 5 == 1 else number / 3,
        None if number % 4 == 0 else number * 1_000_001,
        uuid.UUID(int=number).bytes,
        None if number % 7 == 0 else {"a": number, "b": None if number % 2 else "x"},
    )


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies are made of a few slices."""
    monkeypatch.setattr(merge_slices, "MANY", 4)


def chain(root: Path, name: str = "d", **options: Any) -> Chain:
    return Chain(workspace(root), name, *COLUMNS, **options)


def grow(made: Chain, slices: int, rows: int = 3, ops: list[int] | None = None) -> None:
    for _ in range(slices):
        made.add([row(made.next + n) for n in range(rows)], ops)


def committed(made: Chain) -> Committed:
    return made.space.committed(made.name, made.space.projection(made.name))


def folder(made: Chain) -> Path:
    side_cars = committed(made).side_cars
    assert side_cars is not None
    return side_cars / "merged"


def copies_of(made: Chain) -> list[Path]:
    return [each.file for each in committed(made).copies().copies]


def table_of(files: tuple[Path, ...], schema: pa.Schema) -> pa.Table:
    """All records of files, in the columns of `schema`; text also where values have no equal."""
    tables = [pq.ParquetFile(file).read() for file in files]
    return pa.concat_tables([schema.empty_table(), *tables], promote_options="permissive")


def shown(table: pa.Table) -> tuple[str, str]:
    return repr(table.to_pylist()), table.schema.to_string(show_field_metadata=True)


@pytest.mark.parametrize("seed", range(4))
def test_any_range_of_a_chain_reads_the_same_through_copies(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch, eager: None
) -> None:
    monkeypatch.setattr(merge_slices, "SMALL", 4200)
    monkeypatch.setattr(merge_slices, "LARGEST", 60_000)
    chance = random.Random(seed)
    made = chain(tmp_path)
    fewer = 0
    for turn in range(40):
        if turn == 20:  # a column that older slices lack
            made.schema = made.schema.append(pa.field("more", pa.int32()))
        count = chance.choice([1, 2, 5, 60])
        rows = [row(made.next + n) for n in range(count)]
        made.add([(*each, 1) if turn >= 20 else each for each in rows])
        if chance.random() < 0.3:
            keep_merged(committed(made))
    store, head = made.store, made.store.head()
    assert head is not None
    blocks = [block for block, _ in store.walk(head)]
    copies = committed(made).copies()
    assert copies.copies
    for _ in range(40):
        upto, after = sorted(chance.sample(range(len(blocks)), 2))
        slices = Committed(store, blocks[upto]).slices(blocks[after])
        plain, merged = files_of(slices), files_of(slices, copies)
        fewer += len(plain) - len(merged)
        assert shown(table_of(merged, made.schema)) == shown(table_of(plain, made.schema))
        for file in merged:
            assert pq.read_schema(file).metadata == pq.read_schema(plain[0]).metadata
    assert fewer > 50


def test_a_chain_says_whether_it_is_short_by_its_newest_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = chain(tmp_path)
    assert committed(made).is_short(0, 1_000)
    grow(made, 4, rows=3)
    known = committed(made)
    assert known.is_short(12, 1_000)
    assert not known.is_short(11, 1_000)
    assert not known.is_short(12, 4)
    reads: list[object] = []
    read = type(made.store).read_block
    monkeypatch.setattr(
        type(made.store), "read_block", lambda *given: (reads.append(given[1]), read(*given))[1]
    )
    assert known.is_short(12, 1_000)
    assert len(reads) == 1


def test_few_files_are_left_of_many_slices_and_each_record_was_written_a_few_times(
    tmp_path: Path, eager: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    describe = SideCarFolder.describe

    def counted(self: SideCarFolder, name: str, records: int, notes: Any = None) -> Any:
        written.append(records)
        return describe(self, name, records, notes)

    monkeypatch.setattr(SideCarFolder, "describe", counted)
    made = chain(tmp_path)
    for _ in range(128):
        grow(made, 1, rows=1)
        keep_merged(committed(made))
    assert len(committed(made).files()) <= 4 + math.log2(128)
    assert sum(written) <= 128 * math.log2(128)


def test_large_slices_are_left_alone(tmp_path: Path, eager: None) -> None:
    made = chain(tmp_path)
    for _ in range(6):
        made.add([(0, n, f"{random.random()}", None, 0.0, 0, None, None) for n in range(30_000)])
    keep_merged(committed(made))
    assert not copies_of(made)
    grow(made, 6)
    keep_merged(committed(made))
    assert len(copies_of(made)) == 1 and len(committed(made).files()) == 7


def test_a_missing_slice_is_not_fetched_for_a_copy(tmp_path: Path, eager: None) -> None:
    made = chain(tmp_path)
    grow(made, 9)
    committed(made).slices()[4].file.unlink()
    keep_merged(committed(made))
    assert len(copies_of(made)) == 2


@pytest.mark.parametrize("harm", ["flip", "cut", "delete", "manifest", "replace"])
def test_a_damaged_copy_is_not_read(tmp_path: Path, harm: str, eager: None) -> None:
    made = chain(tmp_path)
    grow(made, 9)
    plain = committed(made).files()
    keep_merged(committed(made))
    [copy] = copies_of(made)
    data = bytearray(copy.read_bytes())
    if harm == "flip":
        data[len(data) // 2] ^= 1
        copy.write_bytes(data)
    elif harm == "cut":
        copy.write_bytes(data[:-9])
    elif harm == "delete":
        copy.unlink()
    elif harm == "manifest":
        (folder(made) / "manifest.bin").write_bytes(b"odfbuild")
    else:
        copy.write_bytes(plain[0].read_bytes())
    assert committed(made).files() == plain
    grow(made, 4)
    keep_merged(committed(made))
    assert len(committed(made).files()) == 1, "it is made again"


def test_another_history_is_not_read_from_copies_of_the_former_one(
    tmp_path: Path, eager: None
) -> None:
    made = chain(tmp_path)
    grow(made, 3)
    base = made.store.head()
    grow(made, 6)
    keep_merged(committed(made))
    made.store.swap_head(made.store.head(), base)
    made.next = 9
    grow(made, 2, rows=4)
    found = committed(made).files()
    assert found == files_of(committed(made).slices())
    keep_merged(committed(made))
    assert len(committed(made).files()) == 1
    assert table_of(committed(made).files(), made.schema)["offset"].to_pylist() == list(range(17))


class Killed(BaseException):
    """As if the process had ended here."""


STEPS: dict[str, Any] = {
    "prepare_cache_folder": merge_slices,
    "pieces": merge_slices,
    "describe": SideCarFolder,
    "save": SideCarFolder,
    "_write": SideCarFolder,
    "utime": os,
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("after", [False, True])
def test_a_kill_while_copies_are_written_is_harmless(
    tmp_path: Path, step: str, *, after: bool, eager: None
) -> None:
    made = chain(tmp_path)
    grow(made, 5)
    keep_merged(committed(made))
    grow(made, 5)
    real: Callable[..., Any] = getattr(STEPS[step], step)

    def killed(*args: Any, **options: Any) -> Any:
        if after:
            real(*args, **options)
        raise Killed

    with pytest.MonkeyPatch.context() as fault:
        fault.setattr(STEPS[step], step, killed)
        with pytest.raises(Killed):
            keep_merged(committed(made))
    expected = shown(table_of(files_of(committed(made).slices()), made.schema))
    assert shown(table_of(committed(made).files(), made.schema)) == expected
    grow(made, 9)
    keep_merged(committed(made))
    assert len(committed(made).files()) == 1


def test_a_copy_that_was_replaced_stays_for_a_day_for_those_who_read_it(
    tmp_path: Path, eager: None
) -> None:
    made = chain(tmp_path)
    grow(made, 5)
    keep_merged(committed(made))
    reading = committed(made).files()
    before = time.time() - 2 * 24 * 3600
    os.utime(reading[0], (before, before))
    grow(made, 5)
    keep_merged(committed(made))
    assert committed(made).files() != reading and reading[0].exists()
    os.utime(reading[0], (before, before))
    grow(made, 5)
    keep_merged(committed(made))
    assert not reading[0].exists()


def test_views_that_outlive_a_command_name_slices(tmp_path: Path, eager: None) -> None:
    made = chain(tmp_path)
    grow(made, 9)
    keep_merged(committed(made))
    records = made.records(view="history")
    with connect() as connection:
        records.duckdb_view(connection, "short")
        records.duckdb_view(connection, "long", lasting=True)
        texts = dict(
            connection.sql(
                "SELECT view_name, sql FROM duckdb_views() WHERE NOT internal"
            ).fetchall()
        )
        assert str(folder(made)) in texts["short"]
        assert str(folder(made)) not in texts["long"]
        rows = [connection.sql(f"FROM {name}").fetchall() for name in ("short", "long")]
    assert repr(rows[0]) == repr(rows[1])


@pytest.mark.spark
@pytest.mark.parametrize("history", [True, False])
def test_spark_and_duckdb_see_the_same_types_and_records(
    tmp_path: Path, spark_engine: Engine, *, history: bool, eager: None
) -> None:
    made = chain(tmp_path)
    grow(made, 20, ops=[0, 0, 1])
    question = understand("SELECT * FROM d", ["d"])

    def answers() -> list[tuple[list[str], str]]:
        with asked_of(lambda: spark_engine, made.space, question, history=history) as answer:
            table = read_answer(answer.parts, answer.schema)
        found = made.records(view="history" if history else "current")
        assert isinstance(found.stored, Stored)
        with connect() as connection:
            found.duckdb_view(connection, "v")
            native = connection.sql("FROM v").to_arrow_table()
        return [
            (sorted(map(repr, each.to_pylist())), each.schema.to_string(show_field_metadata=True))
            for each in (table, native)
        ]

    plain = answers()
    keep_merged(committed(made))
    assert len(committed(made).files()) == 1
    assert answers() == plain


def test_whether_a_chain_only_appends_is_found_once_for_each_head(tmp_path: Path) -> None:
    made = chain(tmp_path, appends=True)
    grow(made, 2)
    stored = made.records().stored
    assert retracted(stored).count == 0
    shutil.rmtree(made.store.path / "blocks")
    assert retracted(stored).count == 0
