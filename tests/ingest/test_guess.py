"""What files that nobody described yet are taken for."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfbuild.errors import IngestError
from odfbuild.ingest.guess import Column, event_time_of, guess
from odfbuild.ingest.sample import Form, form_of, look_at
from odfbuild.odf.schema.ddl import parse_ddl


def of_text(*values: str) -> str:
    """The type of a column of CSV with these values."""
    return guess([[{"c": value} for value in values]], is_text=True).columns[0].type


def of_json(*values: object) -> str:
    """The type of a member of JSON objects with these values."""
    return guess([[{"c": value} for value in values]], is_text=False).columns[0].type


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (("1", "-2", "0"), "BIGINT"),
        (("1", "2.5"), "DOUBLE"),
        (("1e3",), "DOUBLE"),
        (("007", "008"), "STRING"),
        (("12345678901234567890",), "DOUBLE"),
        (("true", "false"), "BOOLEAN"),
        (("true", "1"), "STRING"),
        (("yes",), "STRING"),
        (("2026-01-31",), "DATE"),
        (("2026-02-31",), "STRING"),
        (("2026-01-31T08:00:00Z", "2026-01-31 08:00:00"), "TIMESTAMP"),
        (("2026-01-31T08:00:00+02:00",), "TIMESTAMP"),
        (("2026-01-31", "2026-01-31T08:00:00Z"), "STRING"),
        (("10:00",), "STRING"),
        (("", "1"), "BIGINT"),
        (("",), "STRING"),
    ],
)
def test_text_is_taken_for_what_the_reader_reads(values: tuple[str, ...], kind: str) -> None:
    assert of_text(*values) == kind


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ((1, 2), "BIGINT"),
        ((1, 2.5, None), "DOUBLE"),
        ((2**63,), "DOUBLE"),
        (("1",), "STRING"),
        (("2026-01-31T08:00:00Z",), "TIMESTAMP"),
        ((True, 1), "STRING"),
        (([1, 2], []), "ARRAY<BIGINT>"),
        (([{"a": 1}],), "STRING"),
        (({"a": 1}, {"b c": "2026-01-31"}), "STRUCT<a: BIGINT, `b c`: STRING>"),
        (({},), "STRING"),
        ((None,), "STRING"),
    ],
)
def test_a_json_value_has_its_own_type(values: tuple[object, ...], kind: str) -> None:
    assert of_json(*values) == kind


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("x", ("19.50", "7.25"), "DECIMAL(18, 2)"),
        ("x", ("19.5000", "-7.2500"), "DECIMAL(18, 4)"),
        ("x", ("19.5", "7.2"), "DOUBLE"),
        ("x", ("19.50", "7"), "DOUBLE"),
        ("x", ("19.50", "7.250"), "DOUBLE"),
        ("price", ("19.5", "7"), "DECIMAL(18, 2)"),
        ("unitPrice", ("19.125", "7"), "DECIMAL(18, 3)"),
        ("TOTAL_COST_EUR", ("0.1",), "DECIMAL(18, 2)"),
        ("amount", ("12345678901234567.10",), "DECIMAL(23, 2)"),
        ("amount", ("1" * 35 + ".10",), "DOUBLE"),
        ("amount", ("1.5e3", "2.0"), "DOUBLE"),
        ("amount", ("0.1234567",), "DOUBLE"),
        ("amount", ("5", "7"), "BIGINT"),
        ("pricey", ("19.5", "7"), "DOUBLE"),
    ],
)
def test_money_is_decimal(name: str, values: tuple[str, ...], kind: str) -> None:
    columns = guess([[{name: value} for value in values]], is_text=True).columns
    assert columns == (Column(name, kind),)
    assert parse_ddl([columns[0].ddl])


def test_money_of_json_is_known_by_its_name() -> None:
    records: list[dict[str, Any]] = [
        {"price": 19.5, "x": 19.25, "of": {"fee": 1.5}},
        {"price": 7, "x": 7.25},
    ]
    columns = guess([records], is_text=False).columns
    assert [each.type for each in columns] == [
        "DECIMAL(18, 2)", "DOUBLE", "STRUCT<fee: DECIMAL(18, 2)>"
    ]  # fmt: skip


def customers(month: int, *more: str) -> list[dict[str, str]]:
    """The full extract of a month, in which one customer has moved."""
    towns = ["Oslo", "Bergen", "Oslo", f"Town {month}", *more]
    return [{"id": str(n), "town": town, "class": "A"} for n, town in enumerate(towns)]


def test_files_that_are_the_whole_state_have_its_key() -> None:
    found = guess([customers(1), customers(2), customers(3, "Voss")], is_text=True)
    assert (found.key, found.state_key) == ((), ("id",))


@pytest.mark.parametrize(
    "files",
    [
        [customers(1)],
        [customers(1), customers(2)[:1]],
        # Figures that are all new: of each month, and no state.
        [
            [{"product": name, "sold": str(n * month)} for n, name in enumerate("abc", 1)]
            for month in (1, 2)
        ],
        # Some records twice, because files overlap.
        [
            customers(1),
            [*customers(1)[3:], *({"id": str(n), "town": "", "class": ""} for n in range(9, 20))],
        ],
        # A key twice in a file.
        [customers(1), [*customers(2), customers(2)[0]]],
    ],
)
def test_files_that_are_no_state_have_no_key_of_one(files: list[list[dict[str, str]]]) -> None:
    assert guess(files, is_text=True).state_key == ()


def test_keys_of_events_and_states_are_told_apart() -> None:
    days = [
        [{"event_time": f"2026-01-0{day}", "city": city} for city in ("Oslo", "Lisbon")]
        for day in (1, 2)
    ]
    found = guess(days, is_text=True)
    assert (found.key, found.state_key) == (("event_time", "city"), ())


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(min_size=1), inner),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.text(min_size=1), _JSON, min_size=1), max_size=5))
def test_whatever_is_proposed_is_ddl(records: list[dict[str, object]]) -> None:
    for is_text in (False, True):
        columns = guess([records], is_text=is_text).columns
        names = [column.name.lower() for column in columns]
        kept = [c for c in columns if names.count(c.name.lower()) == 1]
        assert parse_ddl([c.ddl for c in kept]).names == [c.name for c in kept] if kept else True


def test_the_word_for_missing_values_is_found() -> None:
    rows = [{"a": "1", "b": "x"}, {"a": "NA", "b": "NA"}]
    found = guess([rows], is_text=True)
    assert (found.null, found.columns[0].type) == ("NA", "BIGINT")
    # Where nothing is gained by it, it may as well be text: a country, say.
    assert guess([[{"b": "NA"}, {"b": "NO"}]], is_text=True).null is None


@pytest.mark.parametrize(
    ("rows", "key"),
    [
        ([{"value": "5", "id": "1"}, {"value": "6", "id": "2"}], ("id",)),
        ([{"value": "5"}, {"value": "6"}], ()),
        ([{"Kunden Nr.": "5", "Name": "a"}, {"Kunden Nr.": "6", "Name": "b"}], ("Kunden Nr.",)),
        ([{"Order ID": "5"}, {"Order ID": "6"}], ("Order ID",)),
        ([{"casino": "5"}, {"casino": "6"}], ()),
        ([{"name": "a", "n": "1"}, {"name": "b", "n": "1"}], ("name",)),
        ([{"id": "1"}], ()),
        ([{"id": "1"}, {"id": "1"}], ()),
        ([{"id": "1"}, {"id": ""}], ()),
        (
            [
                {"event_time": f"2026-01-0{day}", "city": city}
                for day in (1, 2)
                for city in ("Oslo", "Lisbon")
            ],
            ("event_time", "city"),
        ),
    ],
)
def test_a_key_is_proposed_where_names_and_values_speak_for_it(
    rows: list[dict[str, str]], key: tuple[str, ...]
) -> None:
    assert guess([rows], is_text=True).key == key


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ("a TIMESTAMP, event_time DATE", "event_time"),
        ("a TIMESTAMP, b DATE", "a"),
        ("a TIMESTAMP, b TIMESTAMP", None),
        ("a DATE", "a"),
        ("a BIGINT", None),
    ],
)
def test_the_event_time_is_the_only_time(columns: str, found: str | None) -> None:
    listed = [Column(*each.split(" ")) for each in columns.split(", ")]
    assert event_time_of(listed) == found


def test_files_of_all_forms_are_looked_at(tmp_path: Path) -> None:
    rows = [{"id": n, "name": f"n{n}"} for n in range(3)]
    text = "id;name\n" + "".join(f"{row['id']};{row['name']}\n" for row in rows)
    (tmp_path / "semi.csv").write_text(text, encoding="utf-8-sig")
    (tmp_path / "tabs.tsv").write_text(text.replace(";", "\t"))
    (tmp_path / "bare.csv").write_text("1,a\n2,b\n")
    with gzip.open(tmp_path / "lines.ndjson.gz", "wt") as packed:
        packed.write("\n".join(map(json.dumps, rows)))
    with zipfile.ZipFile(tmp_path / "array.json.zip", "w") as archive:
        archive.writestr("array.json", json.dumps(rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    seen = {}
    for file in tmp_path.iterdir():
        form = form_of(file.name)
        assert form is not None
        found = look_at([file], form)
        columns = " ".join(column.ddl for column in found.guess.columns)
        seen[file.name] = (found.form, columns, found.guess.key, found.header)
    both = "id BIGINT name STRING"
    assert seen == {
        "semi.csv": (Form("Csv", ";"), both, ("id",), True),
        "tabs.tsv": (Form("Csv", "\t"), both, ("id",), True),
        "bare.csv": (Form("Csv"), "c1 BIGINT c2 STRING", (), False),
        "lines.ndjson.gz": (Form("NdJson", packed="Gzip"), both, ("id",), True),
        "array.json.zip": (Form("Json", packed="Zip"), both, ("id",), True),
        "t.parquet": (Form("Parquet"), both, ("id",), True),
    }


def test_line_breaks_in_quotes_are_seen(tmp_path: Path) -> None:
    def look(*texts: str) -> tuple[bool, list[str], int]:
        files = []
        for number, text in enumerate(texts):
            file = tmp_path / f"{number}.csv"
            file.write_bytes(text.encode())
            files.append(file)
        found = look_at(files, Form("Csv"))
        names = [each.name for each in found.guess.columns]
        return found.line_breaks, names, found.guess.records

    assert look('a,b\n1,"x\r\ny"\n', "a,b\n2,z\n") == (True, ["a", "b"], 2)
    assert look("a,b\n2,z\n", 'a,b\n1,"x\n"\n') == (True, ["a", "b"], 2)
    assert look('"a\n(m)","b"\n1,2\n') == (True, ["a (m)", "b"], 1)
    assert look('a,b\n1,"x"\n') == (False, ["a", "b"], 1)
    with pytest.raises(IngestError, match="this is not CSV: unexpected end of data"):
        look('a,b\n1,"x\n2,y\n')


def test_a_long_file_does_not_hide_the_others(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("id,x\n" + "".join(f"{n},1\n" for n in range(20_000)))
    (tmp_path / "2.csv").write_text("id,x\n" + "".join(f"{n},y\n" for n in range(20_000)))
    found = look_at([tmp_path / "1.csv", tmp_path / "2.csv"], Form("Csv"))
    assert (found.guess.records, found.guess.columns[1].type) == (10_000, "STRING")


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("a.csv", b"", "its first line is empty"),
        ("a.csv", b"a,b,A\n", "its header has the name 'A' twice"),
        ("a.csv", b"a,,b\n", "column 2 of its header has no name"),
        ("a.csv", b"a,b\nx,\xff\n", "not UTF-8"),
        ("a.csv.gz", b"no", "Not a gzipped file"),
        ("a.csv.zip", b"no", "not a zip file"),
        ("a.ndjson", b"[1]\n", "no JSON object"),
        ("a.ndjson", b'{"a": 1}\n{"a":\n', "this is not JSON"),
        ("a.json", b'{"a": 1}', "no array of objects"),
        ("a.parquet", b"no", "this is not Parquet"),
    ],
)
def test_a_file_that_is_not_understood_is_named(
    tmp_path: Path, name: str, data: bytes, says: str
) -> None:
    file = tmp_path / name
    file.write_bytes(data)
    form = form_of(name)
    assert form is not None
    with pytest.raises(IngestError, match=says) as caught:
        look_at([file], form)
    assert caught.value.code == "E0436"
