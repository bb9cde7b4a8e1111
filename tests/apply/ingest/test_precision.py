"""Times with more digits than milliseconds are kept or refused, never cut in silence."""

from __future__ import annotations

from datetime import UTC, datetime, time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.odf.model import AddData, ExecuteTransform
from tests.apply.in_process import Program
from tests.apply.tiny import Tiny

pytestmark = pytest.mark.spark

MICROS = pa.timestamp("us", "UTC")
SEEN = [
    "2024-01-01T00:00:00.123456Z",
    "1969-12-31T23:59:59.999999Z",
    "2024-01-01T00:00:00.123457Z",
]


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def define(tiny: Tiny, columns: str, merge: str = "kind: Append", read: str = "Csv") -> None:
    """A root with these columns behind its event time; none are declared where none are given."""
    file = tiny.root / "datasets" / "root.yaml"
    head = file.read_text().partition("      read:\n")[0].replace("*.csv", f"*.{read.lower()}")
    listed = "".join(f"          - {each}\n" for each in columns.split(", ") if each)
    declared = f"        schema:\n          - event_time TIMESTAMP\n{listed}" if columns else ""
    header = "        header: true\n" if read == "Csv" else ""
    step = f"      read:\n        kind: {read}\n{header}{declared}"
    file.write_text(f"{head}{step}      merge:\n        {merge}\n")


def add(tiny: Tiny, name: str, *rows: str) -> None:
    text = "\n".join(["event_time,seen,id", *rows, ""])
    (tiny.root / "data" / f"{name}.csv").write_text(text)


def schema_of_last(tiny: Tiny, name: str) -> pa.Schema:
    """The schema of the newest data file."""
    event = next(
        each
        for each in reversed(tiny.events(name))
        if isinstance(each, AddData | ExecuteTransform) and each.new_data is not None
    )
    store = tiny.workspace().dataset(name)
    return pq.read_schema(store.object_path("data", event.new_data.physical_hash))


def values(tiny: Tiny, name: str, column: str) -> list[Any]:
    return [each[column] for each in tiny.records(name)]


def test_microseconds_go_from_a_source_through_queries_of_every_mode(odfbuild: Program) -> None:
    tiny = Tiny(odfbuild.root)
    define(tiny, "seen TIMESTAMP(6), id BIGINT")
    add(tiny, "1", *(f"2024-01-0{n + 1} 00:00:00,{each},{n}" for n, each in enumerate(SEEN)))
    tiny.derive("derived", "SELECT event_time, id, seen FROM source")
    tiny.derive(
        "latest",
        "SELECT min(event_time) AS event_time, id % 2 AS odd, max(seen) AS seen, "
        "max(seen) + INTERVAL 1 MICROSECOND AS next FROM source GROUP BY id % 2",
    )
    odfbuild.apply()
    for name in ("root", "derived"):
        assert schema_of_last(tiny, name).field("seen").type == MICROS
        assert schema_of_last(tiny, name).field("event_time").type == pa.timestamp("ms", "UTC")
        assert values(tiny, name, "seen") == [moment(each) for each in SEEN]
    assert sorted(values(tiny, "latest", "seen")) == [moment(SEEN[1]), moment(SEEN[2])]
    assert moment("2024-01-01T00:00:00.123458Z") in values(tiny, "latest", "next")
    assert "2024-01-01T00:00:00.123456Z" in odfbuild.ok("tail", "derived").out
    asked = odfbuild.ok("sql", "SELECT max(seen) AS seen FROM root", "--json").data
    assert asked == [{"seen": "2024-01-01T00:00:00.123457Z"}]
    # What is compared with what was committed has the same digits: one group changes.
    add(tiny, "2", "2024-01-09 00:00:00,2024-01-01 00:00:00.123458,4")
    odfbuild.apply()
    assert [each["op"] for each in tiny.records("latest")[2:]] == [2, 3]
    assert odfbuild("verify").code == 0
    assert odfbuild.ok("provenance", "latest", "3").out.count("+A") == 3
    assert odfbuild("plan", "--detailed-exitcode").code == 0


@pytest.mark.parametrize("merge", ["Ledger", "Snapshot", "UpsertStream"])
def test_keys_that_differ_in_microseconds_are_two_keys(odfbuild: Program, merge: str) -> None:
    tiny = Tiny(odfbuild.root)
    define(tiny, "seen TIMESTAMP(6), id BIGINT", f"kind: {merge}\n        primaryKey: [seen]")
    add(tiny, "1", f"2024-01-01 00:00:00,{SEEN[0]},1", f"2024-01-01 00:00:00,{SEEN[2]},2")
    (tiny.root / "datasets" / "derived.yaml").unlink()
    odfbuild.apply()
    assert tiny.ids("root") == [1, 2]
    add(tiny, "2", f"2024-01-01 00:00:00,{SEEN[0]},1", f"2024-01-01 00:00:00,{SEEN[2]},2")
    odfbuild.apply()
    assert tiny.ids("root") == [1, 2]
    add(
        tiny,
        "3",
        *(
            f"2024-01-01 00:00:00,{each},{n}"
            for n, each in [(1, SEEN[0]), (2, SEEN[2]), (3, "2024-01-01T00:00:00.123458Z")]
        ),
    )
    odfbuild.apply()
    assert tiny.ids("root") == [1, 2, 3]


def write_parquet(tiny: Tiny, name: str, kind: pa.DataType, *nanos: int) -> Path:
    file = tiny.root / "data" / f"{name}.parquet"
    day = pa.array([0] * len(nanos), pa.int64()).cast(pa.timestamp("ms", "UTC"))
    seen = pa.array(nanos, pa.int64()).cast(pa.timestamp("ns", "UTC")).cast(kind)
    pq.write_table(pa.table({"event_time": day, "seen": seen}), file)
    return file


def test_a_file_without_declared_columns_keeps_its_digits_or_is_refused(odfbuild: Program) -> None:
    tiny = Tiny(odfbuild.root)
    (tiny.root / "datasets" / "derived.yaml").unlink()
    define(tiny, "", read="Parquet")
    write_parquet(tiny, "1", MICROS, 1_000, -1_000)
    odfbuild.apply()
    assert schema_of_last(tiny, "root").field("seen").type == MICROS
    # Nanoseconds without digits of their own are microseconds.
    nanos = pa.timestamp("ns", "UTC")
    write_parquet(tiny, "2", nanos, 2_000)
    odfbuild.apply()
    assert [each.microsecond for each in values(tiny, "root", "seen")] == [1, 999_999, 2]
    write_parquet(tiny, "3", nanos, 3_001)
    said = odfbuild("apply", "-y")
    assert said.code == 1
    assert "error[E0488]" in said.err
    assert "times with nanoseconds in column 'seen'" in said.err
    assert len(tiny.records("root")) == 3
    # Who declares fewer digits gets them.
    define(tiny, "seen TIMESTAMP(6)", read="Parquet")
    odfbuild.apply()
    assert values(tiny, "root", "seen")[3].microsecond == 3


def test_a_time_of_day_has_as_many_digits_as_are_declared(odfbuild: Program) -> None:
    tiny = Tiny(odfbuild.root)
    (tiny.root / "datasets" / "derived.yaml").unlink()
    define(tiny, "seen TIME(3), id BIGINT")
    add(tiny, "1", "2024-01-01 00:00:00,10:00:00.123456,1")
    odfbuild.apply()
    assert values(tiny, "root", "seen") == [time(10, 0, 0, 123_000)]
    define(tiny, "seen TIME(9), id BIGINT")
    assert "error[E0670]" in odfbuild("validate").err


def test_a_chain_in_milliseconds_stays_so_and_says_it(odfbuild: Program) -> None:
    tiny = Tiny(odfbuild.root)
    (tiny.root / "datasets" / "derived.yaml").unlink()
    define(tiny, "seen TIMESTAMP(3), id BIGINT")
    add(tiny, "1", f"2024-01-01 00:00:00,{SEEN[1]},1")
    odfbuild.apply()
    assert values(tiny, "root", "seen") == [moment("1969-12-31T23:59:59.999Z")]
    define(tiny, "seen TIMESTAMP(6), id BIGINT")
    said = odfbuild("plan")
    assert "error[E0314]" in said.out + said.err
    assert "TIMESTAMP(6)" in said.out + said.err


def test_a_chain_of_an_earlier_release_goes_on_in_milliseconds_and_says_so(
    odfbuild: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = Tiny(odfbuild.root)
    (tiny.root / "datasets" / "derived.yaml").unlink()
    define(tiny, "seen TIMESTAMP(6), id BIGINT")
    add(tiny, "1", f"2024-01-01 00:00:00,{SEEN[0]},1")
    with monkeypatch.context() as earlier:
        for module in ("precision", "slice"):
            earlier.setattr(f"odfbuild.engine.{module}.has_micros", lambda kind: False)
        odfbuild.apply()
    add(tiny, "2", f"2024-01-01 00:00:00,{SEEN[2]},2")
    said = odfbuild.apply()
    assert "milliseconds are kept for seen, as in its first records" in said.out
    assert values(tiny, "root", "seen") == [moment("2024-01-01T00:00:00.123Z")] * 2


def test_digits_that_no_dataset_keeps_are_refused_with_their_place(odfbuild: Program) -> None:
    file = odfbuild.root / "datasets" / "root.yaml"
    text = file.read_text().replace("value BIGINT", "value TIMESTAMP(9)")
    file.write_text(text.replace("event_time TIMESTAMP", "event_time TIMESTAMP(6)"))
    said = odfbuild("validate")
    assert said.code == 1
    assert "error[E0670]: column 'value' has times with nanoseconds" in said.err
    assert "datasets/root.yaml:18:13" in said.err
    assert "error[E0671]: event times are kept to the millisecond" in said.err
    assert "datasets/root.yaml:16:13" in said.err
