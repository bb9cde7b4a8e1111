"""Fixed-width text, XML, several files of one archive, Avro and ORC as a step of `prepare`."""

import csv
import io
import json
import tarfile
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from odfbuild.errors import IngestError
from odfbuild.ingest.convert import fixed_width, xml_records
from odfbuild.ingest.prepare import check_pipe, prepare
from odfbuild.odf.model import PrepStepPipe
from tests.ingest.contexts import at
from tests.ingest.workbooks import zipped


def step(*words: str) -> PrepStepPipe:
    return PrepStepPipe(command=("odfbuild", "convert", *words))


def converted(folder: Path, data: bytes, *words: str, **settings: Any) -> bytes:
    (folder / "data").write_bytes(data)
    (folder / "scratch").mkdir(exist_ok=True)
    found, _ = prepare(
        [step(*words)], folder / "data", "x.dat", folder / "scratch", folder,
        at(folder, pipes=(), **settings).settings,
    )  # fmt: skip
    return found.read_bytes()


def rows(folder: Path, data: bytes, *words: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(converted(folder, data, *words).decode())))


def error_of(folder: Path, data: bytes, *words: str, **settings: Any) -> IngestError:
    with pytest.raises(IngestError) as caught:
        converted(folder, data, *words, **settings)
    assert caught.value.help
    assert "'x.dat'" in caught.value.message
    return caught.value


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fixed-width"], "it names no columns"),
        (["fixed-width", "--column", "id"], "names no column"),
        (["fixed-width", "--column", "id=0-5"], "'0-5' is no place"),
        (["fixed-width", "--column", "id=5-1"], "'5-1' is no place"),
        (["fixed-width", "--column", "a=1", "--column", "A=2"], "is there twice"),
        (["fixed-width", "--column", "a=1", "--skip", "x"], "no number of lines"),
        (["fixed-width", "--column", "a=1", "--encoding", "x"], "no encoding 'x'"),
        (["xml", "--column", "a=b"], "which elements are records"),
        (["xml", "--record", "r", "--column", "a=b//c"], "'b//c' is no path"),
        (["xml", "--record", "r", "--column", "a=@b/c"], "'@b/c' is no path"),
        (["avro", "--sheet", "x"], "'--sheet' is no option"),
    ],
)
def test_wrong_words_are_found_before_anything_is_fetched(words: list[str], said: str) -> None:
    with pytest.raises(IngestError) as caught:
        check_pipe(step(*words))
    assert caught.value.code == "E0474"
    assert said in caught.value.message


# --- fixed width ---

COLUMNS = ("--column", "id=1-4", "--column", "name=5-10", "--column", "note=11-")


def test_columns_of_fixed_width_are_cut_by_characters(tmp_path: Path) -> None:
    text = 'HEAD\n0001Zoë   a, "b"\n\n  2 Bob\n0003Ann   x\r\n'
    found = rows(tmp_path, text.encode(), "fixed-width", *COLUMNS, "--skip", "1")
    assert found == [
        {"id": "0001", "name": "Zoë", "note": 'a, "b"'},
        {"id": "2", "name": "Bob", "note": ""},
        {"id": "0003", "name": "Ann", "note": "x"},
    ]
    found = rows(tmp_path, text.encode("cp1252"), "fixed-width", *COLUMNS, "--encoding", "cp1252",
                 "--skip=1")  # fmt: skip
    assert found[0]["name"] == "Zoë"
    assert rows(tmp_path, b"", "fixed-width", *COLUMNS) == []


def test_other_encodings_and_endless_lines_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = error_of(tmp_path, b"0001a\n0002\xff\n", "fixed-width", *COLUMNS)
    assert error.code == "E0475"
    assert "--encoding" in error.help
    error = error_of(tmp_path, b"x" * (fixed_width._LONGEST_LINE + 1), "fixed-width", *COLUMNS)
    assert error.code == "E0479"


# --- XML ---

XML = """<?xml version="1.0" encoding="UTF-8"?>
<o:orders xmlns:o="urn:orders" count="2">
  <o:order id="1" o:state="new"><customer><name>Zoë &amp; Co</name></customer>
    <price currency="EUR">1.50</price><note><![CDATA[a <b>
c]]></note></o:order>
  <o:order id="2"><price/>text</o:order>
</o:orders>
""".encode()
XML_COLUMNS = [
    word
    for each in (
        "id=@id",
        "state=@state",
        "name=customer/name",
        "price=price",
        "currency=price/@currency",
        "note=note",
        "text=.",
    )
    for word in ("--column", each)
]


@pytest.mark.parametrize("record", ["order", "orders/order"])
def test_records_of_xml_have_values_of_elements_and_attributes(tmp_path: Path, record: str) -> None:
    assert rows(tmp_path, XML, "xml", "--record", record, *XML_COLUMNS) == [
        {"id": "1", "state": "new", "name": "Zoë & Co", "price": "1.50", "currency": "EUR",
         "note": "a <b>\nc", "text": ""},
        {"id": "2", "state": "", "name": "", "price": "", "currency": "", "note": "",
         "text": "text"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "code", "said"),
    [
        (b"<a><r><x>1</x><x>2</x></r></a>", "E0477", "several values of 'x': '1' and '2'"),
        (b"<a><q/></a>", "E0476", "no element 'r'"),
        (b"<a><r><x>1</x></r>", "E0475", "not well-formed"),
        (b"", "E0475", "not well-formed"),
        (b"<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><a><r><x>&e;</x></r></a>",
         "E0475", "document type"),
        (b"<r>" + b"<x>" * 2000, "E0479", "nested too deeply"),
    ],
)  # fmt: skip
def test_documents_that_are_wrong_are_told(
    tmp_path: Path, data: bytes, code: str, said: str
) -> None:
    error = error_of(tmp_path, data, "xml", "--record", "r", "--column", "x=x")
    assert error.code == code
    assert said in error.message


def test_a_record_that_does_not_end_is_bounded(tmp_path: Path) -> None:
    data = b"<a><r><x>" + b"x" * (xml_records._MOST_CHARACTERS + 1) + b"</x></r></a>"
    assert error_of(tmp_path, data, "xml", "--record", "r", "--column", "x=x").code == "E0479"


# --- archives ---

FILES = {
    "b/2.csv": b"id,x\n3,c",
    "a/1.csv": b"id,x\n1,a\n2,b\n",
    "notes.txt": b"no",
    "__MACOSX/a/1.csv": b"no",
}


def tarred(entries: dict[str, bytes], mode: Any) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:
        for name, data in entries.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        link = tarfile.TarInfo("c.csv")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return file.getvalue()


@pytest.mark.parametrize("mode", ["zip", "w:", "w:gz", "w:bz2", "w:xz"])
def test_files_of_an_archive_come_one_after_the_other(tmp_path: Path, mode: str) -> None:
    data = zipped(FILES) if mode == "zip" else tarred(FILES, mode)
    words = ("archive", "--match", "*.csv")
    assert converted(tmp_path, data, *words, "--same-header") == b"id,x\n1,a\n2,b\n3,c\n"
    assert converted(tmp_path, data, *words) == b"id,x\n1,a\n2,b\nid,x\n3,c\n"


def test_archives_that_are_wrong_are_told(tmp_path: Path) -> None:
    error = error_of(tmp_path, zipped(FILES), "archive", "--match", "*.json")
    assert error.code == "E0476"
    assert "a/1.csv" in error.notes[0]
    other = zipped(FILES | {"c.csv": b"id,y\n"})
    error = error_of(tmp_path, other, "archive", "--match", "*.csv", "--same-header")
    assert error.code == "E0477"
    assert "'c.csv'" in error.message
    for data in (b"", b"no archive", zipped(FILES)[:60], tarred(FILES, "w:gz")[:60]):
        assert error_of(tmp_path, data, "archive").code == "E0475"
    bomb = zipped({"a": bytes(20_000_000)})
    assert error_of(tmp_path, bomb, "archive", max_unpacked_bytes=1_000_000).code == "E0479"


# --- Avro ---


def avro(records: list[dict[str, Any]], *fields: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    schema = {"type": "record", "name": "r", "fields": list(fields)}
    fastavro.writer(file, fastavro.parse_schema(schema), records, codec="deflate")
    return file.getvalue()


def test_records_of_avro_keep_their_values(tmp_path: Path) -> None:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}
    moment = {"type": "long", "logicalType": "timestamp-micros"}
    record = {
        "id": 2**62, "amount": Decimal("123456789012345678.90"), "note": None, "raw": b"\x00\xff",
        "day": date(2026, 1, 31), "at": datetime(2026, 1, 31, 1, 2, 3, 4, UTC), "ok": True,
        "tags": ["a", "ü"],
    }  # fmt: skip
    data = avro(
        [record],
        {"name": "id", "type": "long"}, {"name": "amount", "type": decimal},
        {"name": "note", "type": ["null", "string"]}, {"name": "raw", "type": "bytes"},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": moment}, {"name": "ok", "type": "boolean"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    )  # fmt: skip
    line = converted(tmp_path, data, "avro").decode()
    assert '"amount":123456789012345678.90,' in line
    assert json.loads(line) == record | {
        "amount": 123456789012345678.90, "raw": "AP8=", "day": "2026-01-31",
        "at": "2026-01-31T01:02:03.000004+00:00",
    }  # fmt: skip


def test_avro_files_that_are_wrong_are_told(tmp_path: Path) -> None:
    whole = avro([{"x": 1.5}] * 1000, {"name": "x", "type": "double"})
    for data in (b"", b"no", whole[:-10], whole[:30]):
        assert error_of(tmp_path, data, "avro").code == "E0475"
    data = avro([{"x": 1.5}, {"x": float("nan")}], {"name": "x", "type": "double"})
    error = error_of(tmp_path, data, "avro")
    assert error.code == "E0478"
    assert "record 2" in error.message


# --- ORC ---


def orc_of(table: pa.Table) -> bytes:
    file = io.BytesIO()
    orc.write_table(table, file)
    return file.getvalue()


def test_rows_of_orc_keep_their_types(tmp_path: Path) -> None:
    table = pa.table(
        {
            "id": pa.array([1, None], pa.int64()),
            "amount": pa.array([Decimal("1.50"), None], pa.decimal128(10, 2)),
            "day": pa.array([date(2026, 1, 31), None], pa.date32()),
            "at": pa.array([datetime(2026, 1, 31, 1, 2, 3, 4), None], pa.timestamp("us")),
            "note": ["ü", None],
        }
    )
    found = pq.read_table(io.BytesIO(converted(tmp_path, orc_of(table), "orc")))
    at = found.schema.field("at").type
    assert at == pa.timestamp("us", "UTC")
    assert found.drop_columns("at").equals(table.drop_columns("at"))
    assert found["at"].cast(pa.timestamp("us")).equals(table["at"])


def test_orc_files_that_are_wrong_are_told(tmp_path: Path) -> None:
    times = pa.table({"at": pa.array([1], pa.timestamp("ns"))})
    assert error_of(tmp_path, orc_of(times), "orc").code == "E0478"
    for data in (b"", b"no", orc_of(times)[:-20]):
        assert error_of(tmp_path, data, "orc").code == "E0475"
