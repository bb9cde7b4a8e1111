"""Sources that are wrong in one way each, with the edit that corrects them."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import shapefile

LIMIT = 1 << 20
"""Bytes that a prepare step may write in the project of these tests."""


@dataclass(frozen=True)
class Case:
    """A source of one dataset: the `bad` file, and the `good` one that takes its place.

    `code` and `says` are of the error, `line` where it stands. A `code` of `None` means that the
    file only looks bad. `before` is a file that was ingested earlier.
    """

    name: str
    bad: bytes
    good: bytes
    code: str | None
    says: str
    line: int | None = None
    read: dict[str, Any] = field(default_factory=dict)
    prepare: list[dict[str, Any]] = field(default_factory=list)
    preprocess: str | None = None
    merge: dict[str, Any] = field(default_factory=lambda: {"kind": "Append"})
    before: bytes | None = None


def csv(*columns: str, **options: Any) -> dict[str, Any]:
    """A read step for CSV with a header."""
    read = {"kind": "Csv", "header": True, **options}
    return {**read, "schema": list(columns)} if columns else read


def lines(kind: str, *columns: str, **options: Any) -> dict[str, Any]:
    """A read step of that kind."""
    read = {"kind": kind, **options}
    return {**read, "schema": list(columns)} if columns else read


def _zip(*entries: tuple[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return out.getvalue()


def _encrypted(archive: bytes) -> bytes:
    """The archive with the flag of encryption set in both of its headers."""
    data = bytearray(archive)
    data[6] |= 1
    data[data.index(b"PK\1\2") + 8] |= 1
    return bytes(data)


def _parquet(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, compression="NONE", use_dictionary=False)
    return out.getvalue()


def _shape(number: float = 1.0, parts: Iterable[str] = ("shp", "shx", "dbf")) -> bytes:
    files = {part: io.BytesIO() for part in ("shp", "shx", "dbf")}
    with shapefile.Writer(**files) as writer:
        writer.field("n", "N", 10)
        for each in range(3):
            writer.point(each, number)
            writer.record(each)
    return _zip(*((f"x.{part}", files[part].getvalue()) for part in parts))


def _damaged(archive: bytes, entry: str, change: Callable[[bytes], bytes]) -> bytes:
    with zipfile.ZipFile(io.BytesIO(archive)) as source:
        return _zip(
            *(
                (n, change(source.read(n)) if n == entry else source.read(n))
                for n in source.namelist()
            )
        )


GZIP = [{"kind": "Decompress", "format": "Gzip"}]
ZIP = [{"kind": "Decompress", "format": "Zip"}]
N = csv("n BIGINT")
GOOD = b"n\n1\n2\n"
PACKED = gzip.compress(GOOD, mtime=0)
ARCHIVE = _zip(("x.csv", GOOD))
TABLE = pa.table({"n": pa.array(range(50_000), pa.int64()), "t": ["x" * 20] * 50_000})
PARQUET = _parquet(TABLE)
SHAPES = _shape()
KEYED = {"primaryKey": ["id"]}


PREPARE = [
    Case("gzip-truncated", PACKED[:-10], PACKED, "E0411", "gzip archive", prepare=GZIP, read=N),
    Case("gzip-of-nothing-known", b"n\n1\n", PACKED, "E0411", "gzip archive", prepare=GZIP, read=N),
    Case(
        "gzip-with-a-wrong-checksum",
        PACKED[:-8] + b"\0\0\0\0" + PACKED[-4:],
        PACKED,
        "E0411",
        "CRC",
        prepare=GZIP,
        read=N,
    ),
    Case(
        "gzip-bomb",
        gzip.compress(b"1\n" * LIMIT, mtime=0),
        PACKED,
        "E0409",
        "unpacks to more than",
        prepare=GZIP,
        read=N,
    ),
    Case("zip-truncated", ARCHIVE[:-12], ARCHIVE, "E0411", "zip archive", prepare=ZIP, read=N),
    Case("zip-that-is-text", GOOD, ARCHIVE, "E0411", "zip archive", prepare=ZIP, read=N),
    Case(
        "zip-bomb",
        _zip(("x.csv", b"1\n" * LIMIT)),
        ARCHIVE,
        "E0409",
        "unpacks to more than",
        prepare=ZIP,
        read=N,
    ),
    Case(
        "zip-path-traversal",
        _zip(("../../x.csv", GOOD)),
        ARCHIVE,
        "E0411",
        "points outside",
        prepare=ZIP,
        read=N,
    ),
    Case(
        "zip-absolute-path",
        _zip(("/etc/x.csv", GOOD)),
        ARCHIVE,
        "E0411",
        "points outside",
        prepare=ZIP,
        read=N,
    ),
    Case(
        "zip-of-several-files",
        _zip(("a.csv", GOOD), ("b.csv", GOOD)),
        ARCHIVE,
        "E0412",
        "holds 2 files",
        prepare=ZIP,
        read=N,
    ),
    Case(
        "zip-without-the-file-asked-for",
        _zip(("y.csv", GOOD)),
        ARCHIVE,
        "E0412",
        "match `subPath: x*`",
        prepare=[{**ZIP[0], "subPath": "x*"}],
        read=N,
    ),
    Case("zip-encrypted", _encrypted(ARCHIVE), ARCHIVE, "E0411", "encrypted", prepare=ZIP, read=N),
    Case(
        "pipe-that-fails",
        b"bad\n",
        GOOD,
        "E0414",
        "grep",
        prepare=[{"kind": "Pipe", "command": ["grep", "[n12]"]}],
        read=csv("n BIGINT"),
    ),
]

ENCODING = [
    Case(
        "bytes-that-are-no-utf-8",
        b"n\nab\nc\xff\n",
        b"n\nab\n",
        "E0425",
        "UTF-8",
        3,
        csv("n STRING"),
    ),
    Case(
        "half-a-character-at-the-end",
        b"n\n\xc3",
        b"n\n\xc3\xa9\n",
        "E0425",
        "UTF-8",
        2,
        csv("n STRING"),
    ),
    Case("nul-characters", b"n\na\0b\n", b"n\nab\n", "E0425", "NUL", 2, csv("n STRING")),
    Case(
        "utf-16-that-nobody-declared",
        "n\nab\n".encode("utf-16-le"),
        b"n\nab\n",
        "E0425",
        "line 1",
        1,
        csv("n STRING"),
    ),
    Case(
        "bytes-that-are-not-of-the-declared-encoding",
        b"n\nok\n\x81\x20\n",
        "n\n\u65e5\u672c\n".encode("shift_jis"),
        "E0425",
        "SHIFT_JIS",
        3,
        csv("n STRING", encoding="shift_jis"),
    ),
    Case(
        "json-in-another-encoding",
        b'{"n": "\xe9"}\n',
        b'{"n": "e"}\n',
        "E0425",
        "UTF-8",
        1,
        lines("NdJson", "n STRING"),
    ),
]

BINARY = [
    Case(
        "shapefile-that-is-no-archive", b"x", SHAPES, "E0423", "ZIP", None, lines("EsriShapefile")
    ),
    Case(
        "archive-without-shapes", ARCHIVE, SHAPES, "E0423", "no .shp", None, lines("EsriShapefile")
    ),
    Case(
        "shapes-without-attributes",
        _shape(parts=("shp", "shx")),
        SHAPES,
        "E0423",
        ".dbf",
        None,
        lines("EsriShapefile"),
    ),
    Case(
        "shapes-that-break-off",
        _damaged(SHAPES, "x.shp", lambda data: data[:110]),
        SHAPES,
        "E0423",
        "shapefile",
        None,
        lines("EsriShapefile"),
    ),
    Case("parquet-that-is-text", GOOD, PARQUET, "E0423", "Parquet", None, lines("Parquet")),
    Case(
        "parquet-that-breaks-off",
        PARQUET[: len(PARQUET) // 2],
        PARQUET,
        "E0423",
        "Parquet",
        None,
        lines("Parquet"),
    ),
    Case(
        "parquet-with-a-damaged-page",
        PARQUET[:4] + b"\xff" * 40 + PARQUET[44:],
        PARQUET,
        "E0423",
        "cannot be read",
        None,
        lines("Parquet"),
    ),
    Case(
        "parquet-without-a-required-column",
        _parquet(TABLE.select(["t"])),
        PARQUET,
        "E0420",
        "no column 'n'",
        None,
        lines("Parquet", "n BIGINT NOT NULL"),
    ),
    Case(
        "parquet-with-nulls-where-none-may-be",
        _parquet(pa.table({"n": pa.array([1, None])})),
        PARQUET,
        "E0421",
        "NOT NULL",
        None,
        lines("Parquet", "n BIGINT NOT NULL"),
    ),
    Case(
        "parquet-with-words-for-numbers",
        _parquet(pa.table({"n": ["1", "x"]})),
        PARQUET,
        "E0421",
        "n",
        None,
        lines("Parquet", "n BIGINT"),
    ),
    Case(
        "parquet-with-nanoseconds",
        _parquet(pa.table({"n": [1], "t": pa.array([1], pa.timestamp("ns", "UTC"))})),
        PARQUET,
        "E0488",
        "times with nanoseconds in column 't'",
        None,
        lines("Parquet"),
    ),
    Case(
        "parquet-with-columns-of-one-name",
        _parquet(pa.table([[1], [2]], names=["n", "N"])),
        PARQUET,
        "E0420",
        "letter case",
        None,
        lines("Parquet"),
    ),
]

MERGE = [
    Case(
        "reserved-column",
        b"offset,a\n1,2\n",
        b"x,a\n1,2\n",
        "E0431",
        "'offset', which is a system column",
        None,
        csv(),
        preprocess="SELECT * FROM input",
    ),
    Case(
        "event-time-that-is-no-time",
        b"event_time\nsoon\n",
        b"event_time\n2026-01-01T00:00:00Z\n",
        "E0421",
        "not a time",
        2,
        csv("event_time STRING"),
    ),
    Case(
        "event-time-out-of-range",
        b"event_time\n1\n999999999999999\n",
        b"event_time\n1\n",
        "E0421",
        "years 1 to 9999",
        3,
        csv("event_time BIGINT"),
    ),
    Case(
        "key-that-is-not-there",
        b"x\n1\n",
        b"id\n1\n",
        "E0430",
        "'id'",
        None,
        csv(),
        merge={"kind": "Ledger", **KEYED},
    ),
    Case(
        "changelog-without-operations",
        b"id\n1\n",
        b"op,id\n0,1\n",
        "E0434",
        "no column 'op'",
        None,
        csv(inferSchema=True),
        merge={"kind": "ChangelogStream", **KEYED},
    ),
    Case(
        "changelog-with-an-unknown-operation",
        b"op,id\n7,1\n",
        b"op,id\n0,1\n",
        "E0434",
        "has 7",
        None,
        csv("op INT", "id INT"),
        merge={"kind": "ChangelogStream", **KEYED},
    ),
    Case(
        "column-of-another-type",
        b"id\nx\n",
        b"id\n2\n",
        "E0432",
        "is STRING",
        None,
        csv(inferSchema=True),
        before=b"id\n1\n",
    ),
    Case(
        "column-that-vanished",
        b"id\n2\n",
        b"id,n\n2,2\n",
        "E0521",
        "n",
        None,
        csv(),
        before=b"id,n\n1,1\n",
    ),
    Case(
        "column-that-is-new",
        b"id,n\n2,2\n",
        b"id\n2\n",
        "E0522",
        "n",
        None,
        csv(),
        before=b"id\n1\n",
    ),
    Case(
        "query-that-fails-on-a-record",
        b"a\n1\n0\n",
        b"a\n1\n",
        "E0517",
        "zero",
        None,
        csv("a INT"),
        preprocess="SELECT 10 / a AS b FROM input",
    ),
    Case("empty-file-without-a-schema", b"", GOOD, None, "", None, csv()),
    Case("header-without-records", b"n\n", GOOD, None, "", None, N),
    Case("blank-lines-only", b"\n\n\n", b'{"n": 1}\n', None, "", None, lines("NdJson", "n BIGINT")),
]

_TWICE = csv("id BIGINT", "t STRING")
_SNAPSHOT = {"kind": "Snapshot", **KEYED}
_TABLE_TWICE = pa.table({"id": [1, 2, 1], "t": ["a", "b", "c"]})
UNIQUE = [
    Case(
        "snapshot-with-a-key-twice",
        b"id,t\n1,a\n\n2,b\n1,c\n",
        b"id,t\n1,c\n2,b\n",
        "E0460",
        "1 primary key of 'data/snapshot-with-a-key-twice/2' has more than one record: "
        "id 1 (line 2, line 5)",
        5,
        _TWICE,
        merge=_SNAPSHOT,
        before=b"id,t\n1,a\n2,b\n",
    ),
    Case(
        "snapshot-with-many-keys-twice",
        b"id,t\n" + b"".join(b"%d,x\n" % (n % 5) for n in range(40)),
        b"id,t\n1,x\n",
        "E0460",
        "5 primary keys of 'data/snapshot-with-many-keys-twice/2' have more than one record: "
        "id 0 (line 2, line 7, line 12, line 17, line 22, …), id 1 (",
        7,
        _TWICE,
        merge=_SNAPSHOT,
    ),
    Case(
        "snapshot-with-a-key-twice-in-json",
        b'{"id": 1, "t": null}\n{"t": "b"}\n{"t": "c"}\n',
        b'{"id": 1}\n',
        "E0460",
        "id NULL (line 2, line 3)",
        3,
        lines("NdJson", "id BIGINT", "t STRING"),
        merge=_SNAPSHOT,
    ),
    Case(
        "snapshot-with-a-key-twice-in-parquet",
        _parquet(_TABLE_TWICE),
        _parquet(_TABLE_TWICE.slice(1)),
        "E0460",
        "id 1 (row 1, row 3)",
        None,
        {"kind": "Parquet"},
        merge=_SNAPSHOT,
    ),
    Case(
        "snapshot-with-a-key-twice-behind-a-query",
        b"id,t\n9,x\n1,a\n2,b\n1,c\n",
        b"id,t\n1,c\n",
        "E0460",
        "key 11 and event_time 2026-01-01 00:00:00 (line 3, line 5)",
        5,
        _TWICE,
        preprocess="SELECT TIMESTAMP '2026-01-01' AS event_time, id + 10 AS key, t FROM input "
        "WHERE id < 9",
        merge={"kind": "Snapshot", "primaryKey": ["key", "event_time"]},
    ),
    Case(
        "snapshot-with-a-key-twice-behind-a-query-over-all",
        b"id,t\n1,a\n1,b\n2,b\n",
        b"id,t\n1,c\n",
        "E0460",
        "id 1 (2 records)",
        None,
        _TWICE,
        preprocess="SELECT DISTINCT id, t FROM input",
        merge=_SNAPSHOT,
    ),
]
_UPSERT = {"kind": "UpsertStream", **KEYED}
OPERATIONS = [
    Case(
        "upsert-with-an-operation-that-is-not-declared",
        b'{"id": 1, "op": 0}\n{"id": 2, "op": "click"}\n{"id": 1, "op": 1}\n',
        b'{"id": 1, "op": 0}\n{"id": 2, "op": "click"}\n{"id": 3}\n',
        "E0421",
        "'1' in column 'op' is not declared: with `op INT` in `read.schema` a row with 1 deletes",
        3,
        lines("NdJson", "id BIGINT", "t DOUBLE"),
        merge=_UPSERT,
    ),
    Case(
        "upsert-of-parquet-with-an-operation-that-is-not-declared",
        _parquet(pa.table({"id": [1, 2], "op": [0, 1]})),
        _parquet(pa.table({"id": [1, 2], "op": [0, 0]})),
        "E0421",
        "row 2",
        None,
        lines("Parquet", "id BIGINT"),
        merge=_UPSERT,
    ),
    Case(
        "upsert-whose-query-reads-the-operation",
        b'{"id": 1, "op": 1, "kind": 0}\n',
        b'{"id": 2, "op": 1, "kind": 0}\n',
        None,
        "",
        None,
        lines("NdJson", "id BIGINT", "kind INT"),
        preprocess="SELECT id, kind AS op FROM input",
        merge=_UPSERT,
    ),
]

CASES = [*PREPARE, *ENCODING, *BINARY, *MERGE, *UNIQUE, *OPERATIONS]
