"""UUIDs: a type of columns, 16 bytes in files, text in queries."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.odf.model import SetDataSchema
from tests.apply.in_process import Program
from tests.apply.ingest.test_precision import add, define, schema_of_last, values
from tests.apply.tiny import Tiny

pytestmark = pytest.mark.spark

A, B, C = (f"{n}81d4fae-7dec-11d0-a765-00a0c91e6bf6" for n in "f0a")


def file_of(tiny: Tiny, name: str) -> Any:
    """The newest data file of a dataset."""
    store = tiny.workspace().dataset(name)
    event = [each for each in tiny.events(name) if getattr(each, "new_data", None)][-1]
    return pq.ParquetFile(store.object_path("data", event.new_data.physical_hash))


def physical(tiny: Tiny, name: str, column: str) -> tuple[str, int, str]:
    """How a column lies in the newest data file: type, length, logical type."""
    schema = file_of(tiny, name).schema
    found = schema.column(schema.names.index(column))
    return found.physical_type, found.length, str(found.logical_type)


def test_uuids_go_from_text_through_queries_of_every_mode(odfbuild: Program) -> None:
    tiny = Tiny(odfbuild.root)
    define(tiny, "seen UUID, id BIGINT")
    add(tiny, "1", f"2024-01-01 00:00:00,{A.upper()},1", f"2024-01-02 00:00:00,{B},2")
    add(tiny, "2", "2024-01-03 00:00:00,,3")
    tiny.derive("derived", "SELECT event_time, id, seen AS key, upper(seen) AS text FROM source")
    tiny.derive(
        "counted",
        "SELECT min(event_time) AS event_time, seen, count(*) AS n FROM source GROUP BY seen",
    )
    tiny.derive(
        "daily",
        "SELECT window.start AS event_time, seen FROM source "
        "GROUP BY window(event_time, '1 day'), seen",
    )
    odfbuild.apply()
    for name, column in (
        ("root", "seen"),
        ("derived", "key"),
        ("counted", "seen"),
        ("daily", "seen"),
    ):
        assert physical(tiny, name, column) == ("FIXED_LEN_BYTE_ARRAY", 16, "UUID"), name
    assert values(tiny, "root", "seen") == [UUID(A), UUID(B), None]
    assert values(tiny, "derived", "key") == [UUID(A), UUID(B), None]
    assert values(tiny, "derived", "text") == [A.upper(), B.upper(), None]
    assert set(values(tiny, "counted", "seen")) == {UUID(A), UUID(B), None}
    # The schema says it as Arrow does, and other readers find 16 bytes.
    schema = next(each for each in tiny.events("root") if isinstance(each, SetDataSchema))
    assert b"arrow.uuid" in (schema.raw_arrow_schema or b"")
    # More of them: keys are compared as text, and corrections find theirs.
    add(tiny, "3", f"2024-01-04 00:00:00,{B},4", f"2024-01-05 00:00:00,{C},5")
    odfbuild.apply()
    assert [(each["op"], each["seen"], each["n"]) for each in tiny.records("counted")[3:]] == [
        (2, UUID(B), 1),
        (3, UUID(B), 2),
        (0, UUID(C), 1),
    ]
    assert A in odfbuild.ok("tail", "derived").out
    assert odfbuild.ok("tail", "root", "--json").data[0]["seen"] == A
    asked = odfbuild.ok("sql", f"SELECT id FROM root WHERE seen = '{C}'", "--json").data
    assert asked == [{"id": 5}]
    assert odfbuild("verify").code == 0
    assert odfbuild.ok("provenance", "counted", "5").out
    assert odfbuild("plan", "--detailed-exitcode").code == 0
    # A query that makes something else of the column says what it should be.
    tiny.derive(
        "derived", "SELECT event_time, id, 'x' || seen AS key, upper(seen) AS text FROM source"
    )
    add(tiny, "4", f"2024-01-06 00:00:00,{A},6")
    said = odfbuild("apply", "-y")
    assert said.code in (1, 4)
    assert "error[E0489]" in said.err
    assert f"column 'key' holds UUIDs, and a new record has 'x{A[:30]}" in said.err


@pytest.mark.parametrize("merge", ["Ledger", "Snapshot", "UpsertStream"])
def test_uuids_are_keys_of_every_merge(odfbuild: Program, merge: str) -> None:
    tiny = Tiny(odfbuild.root)
    define(tiny, "seen UUID, id BIGINT", f"kind: {merge}\n        primaryKey: [seen]")
    (tiny.root / "datasets" / "derived.yaml").unlink()
    add(tiny, "1", f"2024-01-01 00:00:00,{A},1", f"2024-01-01 00:00:00,{B},2")
    odfbuild.apply()
    add(
        tiny,
        "2",
        f"2024-01-01 00:00:00,{A.upper()},1",
        f"2024-01-01 00:00:00,{B},2",
        f"2024-01-01 00:00:00,{C},3",
    )
    odfbuild.apply()
    assert sorted(tiny.ids("root")) == [1, 2, 3]
    assert schema_of_last(tiny, "root").field("seen").type == pa.uuid()
    # Keys are looked up in an index: the history is not read for them.
    index = list((tiny.root / ".odfbuild" / "side-cars" / "root").glob("by-*/*.arrow"))
    assert bool(index) == (merge != "Snapshot")


def test_uuids_of_parquet_are_uuids_and_text_that_is_none_is_a_bad_record(
    odfbuild: Program,
) -> None:
    tiny = Tiny(odfbuild.root)
    (tiny.root / "datasets" / "derived.yaml").unlink()
    define(tiny, "", read="Parquet")
    day = pa.array([0, 0], pa.int64()).cast(pa.timestamp("ms", "UTC"))
    bytes_of = pa.array([UUID(A).bytes, None], pa.binary(16))
    as_uuid = pa.ExtensionArray.from_storage(pa.uuid(), bytes_of)
    data = tiny.root / "data"
    pq.write_table(pa.table({"event_time": day, "seen": as_uuid}), data / "1.parquet")
    odfbuild.apply()
    assert physical(tiny, "root", "seen") == ("FIXED_LEN_BYTE_ARRAY", 16, "UUID")
    # Declared, also text and 16 bytes without a name are.
    define(tiny, "seen UUID", read="Parquet")
    pq.write_table(pa.table({"event_time": day, "seen": bytes_of}), data / "2.parquet")
    pq.write_table(pa.table({"event_time": day, "seen": [B.upper(), None]}), data / "3.parquet")
    odfbuild.apply()
    assert [each for each in values(tiny, "root", "seen") if each] == [UUID(A), UUID(A), UUID(B)]
    pq.write_table(pa.table({"event_time": day, "seen": ["no", A]}), data / "4.parquet")
    said = odfbuild("apply", "-y")
    assert said.code == 1
    assert "'no' in column 'seen' is not UUID" in said.err, said.err


def test_a_cell_that_is_no_uuid_has_its_place(odfbuild: Program) -> None:
    tiny = Tiny(odfbuild.root)
    (tiny.root / "datasets" / "derived.yaml").unlink()
    define(tiny, "seen UUID, id BIGINT")
    add(tiny, "1", f"2024-01-01 00:00:00,{A},1", f"2024-01-01 00:00:00,{B}0,2")
    said = odfbuild("apply", "-y")
    assert said.code == 1
    assert "data/1.csv:3" in said.err
    assert f"'{B}0' in column 'seen' is not UUID" in said.err


def test_a_column_of_text_does_not_become_one_of_uuids(odfbuild: Program) -> None:
    tiny = Tiny(odfbuild.root)
    define(tiny, "seen STRING, id BIGINT")
    tiny.derive("derived", "SELECT event_time, id, seen FROM source")
    add(tiny, "1", f"2024-01-01 00:00:00,{A},1")
    odfbuild.apply()
    define(tiny, "seen UUID, id BIGINT")
    said = odfbuild("plan")
    assert "error[E0314]" in said.out + said.err
    assert "column 'seen'" in said.out + said.err
