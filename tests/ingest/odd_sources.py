"""Sources that are odd: some wrong in one way each, others right however they look."""

from __future__ import annotations

import gzip
import io
import zipfile
from datetime import datetime
from decimal import Decimal
from math import nan
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq

from tests.ingest.bad_sources import GZIP, ZIP, Case, csv, lines
from tests.ingest.bad_text import to_bytes

GOOD = b"n\n1\n2\n"
N = csv("n BIGINT")
ROW = b'{"n": 1}\n'
NUMBER = lines("NdJson", "n BIGINT")
TEXT = lines("NdJson", "n STRING")
DEEP = b"[" * 5000 + b"]" * 5000
HALF = b'{"n": "\\ud83d!"}'


def parquet(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def zipped_all(entries: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return out.getvalue()


def zipped(entry: str | zipfile.ZipInfo | None, data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        if entry is not None:
            archive.writestr(entry, data)
    return out.getvalue()


def link() -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo("x.csv")
    entry.create_system = 3
    entry.external_attr = 0o120777 << 16
    return entry


def one(values: pa.Array) -> pa.Table:
    return pa.table({"n": values})


TABLE = parquet(one(pa.array([1, 2])))
MAPS = pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32()))
ARCHIVE = zipped("x.csv", GOOD)
PACKED = gzip.compress(GOOD, mtime=0)
PARQUET = lines("Parquet")
KEYED = {"kind": "Ledger", "primaryKey": ["id"]}
STATE = {"kind": "Snapshot", "primaryKey": ["id"]}
LETTERS = csv("id BIGINT", "v STRING")
NUMBERS = csv("id DOUBLE", "v STRING")

CASES = [
    Case("packed-but-not-unpacked", PACKED, GOOD, "E0450", "is a Gzip file", read=N),
    Case(
        "object-with-one-name-twice",
        b'{"n": 1, "n": 2}\n',
        ROW,
        "E0420",
        "two columns called 'n'",
        None,
        lines("NdJson"),
    ),
    Case("document-too-deep", DEEP, b'[{"n": 1}]', "E0623", "nested", None, lines("Json")),
    Case("line-too-deep", ROW + b'{"n": ' + DEEP + b"}\n", ROW, "E0623", "nested", 2, NUMBER),
    Case("half-a-character", ROW + HALF + b"\n", ROW, "E0425", "\\ud83d", 2, TEXT),
    Case(
        "half-a-character-in-a-document",
        b'[{"n": "a"},\n' + HALF + b"]",
        b'[{"n": "a"}]',
        "E0425",
        "\\ud83d",
        2,
        lines("Json", "n STRING"),
    ),
    Case("other-half-of-a-character", b'{"n": "\\udE00"}\n', ROW, "E0425", "\\udE00", 1, TEXT),
    Case("name-that-is-empty", b'{"": 1}\n', ROW, "E0423", "no names", 1, lines("NdJson")),
    Case("objects-without-members", b"\n{}\n", ROW, "E0423", "no names", 2, lines("NdJson")),
    Case("parquet-with-a-map", parquet(one(MAPS)), TABLE, "E0422", "column 'n'", None, PARQUET),
    Case(
        "parquet-of-nulls", parquet(one(pa.nulls(3))), TABLE, "E0422", "column 'n'", None, PARQUET
    ),
    Case(
        "parquet-of-no-columns", parquet(pa.table({})), TABLE, "E0423", "no columns", None, PARQUET
    ),
    Case(
        "zip-with-a-link",
        zipped(link(), b"/etc/passwd"),
        ARCHIVE,
        "E0411",
        "symbolic link",
        prepare=ZIP,
        read=N,
    ),
    Case("zip-of-nothing", zipped(None, b""), ARCHIVE, "E0412", "no files", prepare=ZIP, read=N),
    Case(
        "gzip-with-something-behind",
        PACKED + b"garbage",
        PACKED,
        "E0411",
        "gzip archive",
        prepare=GZIP,
        read=N,
    ),
    Case(
        "gzip-whose-second-part-breaks-off",
        PACKED + gzip.compress(b"3\n")[:-5],
        PACKED,
        "E0411",
        "gzip archive",
        prepare=GZIP,
        read=N,
    ),
    Case("number-with-underscores", b"n\n1\n1_000\n", GOOD, "E0421", "'1_000' in", 3, N),
    Case(
        "time-after-midnight",
        b"t\n24:00:00\n",
        b"t\n23:59:59\n",
        "E0421",
        "24:00",
        2,
        csv("t TIME"),
    ),
    Case(
        "leap-second",
        b"t\n2016-12-31T23:59:60Z\n",
        b"t\n2017-01-01\n",
        "E0421",
        ":60Z",
        2,
        csv("t TIMESTAMP"),
    ),
    Case("day-zero", b"d\n0000-00-00\n", b"d\n0001-01-01\n", "E0421", "0000", 2, csv("d DATE")),
    Case(
        "offset-of-nineteen-hours",
        b"t\n2020-01-01T00:00:00+19:00\n",
        b"t\n2017-01-01\n",
        "E0421",
        "+19",
        2,
        csv("t TIMESTAMP"),
    ),
    Case(
        "comma-for-a-point",
        b"d;e\n1,5;2\n",
        b"d;e\n1.5;2\n",
        "E0421",
        "'1,5'",
        2,
        csv("d DOUBLE", "e INT", separator=";"),
    ),
    Case(
        "json-number-too-large",
        ROW + b'{"n": 1e999}\n',
        ROW,
        "E0421",
        "'Infinity'",
        2,
        lines("NdJson", "n DOUBLE"),
    ),
    Case(
        "json-number-with-a-zero-before", b'{"n": 01}\n', ROW, "E0421", "not valid JSON", 1, NUMBER
    ),
    Case(
        "carriage-return-in-quotes",
        b'n,s\n1,"a\rb"\n',
        b"n,s\n1,a\n",
        "E0424",
        "quote",
        2,
        csv("n INT", "s STRING"),
    ),
    Case(
        "half-a-unit-of-utf-16",
        "n\n1\n".encode("utf-16") + b"x",
        "n\n1\n".encode("utf-16"),
        "E0425",
        "UTF-16",
        3,
        csv("n INT", encoding="utf-16"),
    ),
]


def right(
    name: str, data: bytes, read: dict[str, Any], *rows: Any, **more: Any
) -> tuple[Case, list[Any]]:
    return Case(name, data, b"", None, "", read=read, **more), list(rows)


def instant(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=ZoneInfo("UTC"))  # type: ignore[misc,arg-type]


POINT = {"type": "Point", "coordinates": [1.5, 2]}
PLACE = '{"coordinates":[1.5,2],"type":"Point"}'
FEATURES: list[dict[str, Any]] = [
    {"type": "Feature", "properties": {}, "geometry": POINT},
    {"type": "Feature", "id": "a", "properties": {"n": 2}, "geometry": POINT, "bbox": [1, 2, 1, 2]},
    {"type": "Feature", "id": 7, "properties": {"id": "b"}, "geometry": POINT, "title": "foreign"},
]
"""What RFC 7946 allows a feature to have besides the usual."""


def collection(*features: object) -> bytes:
    """GeoJSON, with foreign members."""
    return to_bytes({"name": "x", "features": features, "bbox": [], "type": "FeatureCollection"})


RIGHT = [
    right(
        "odd-features",
        collection(*FEATURES),
        lines("GeoJson", "n BIGINT", "id STRING", "geometry STRING"),
        (None, None, PLACE),
        (2, "a", PLACE),
        (None, "b", PLACE),
    ),
    right(
        "odd-lines-of-features",
        b"\n".join(to_bytes(feature) for feature in FEATURES[:2]),
        lines("NdGeoJson"),
        (PLACE, None),
        (PLACE, 2),
    ),
    right(
        "numbers-as-ids-of-features",
        collection({**FEATURES[1], "id": 12}),
        lines("GeoJson", "id BIGINT"),
        (12,),
    ),
    right("features-that-are-none", collection(), lines("GeoJson", "n INT", "geometry STRING")),
    right("features-without-columns", collection(), lines("GeoJson")),
    right("only-places", collection(FEATURES[0]), lines("GeoJson"), (PLACE,)),
    right("byte-order-mark", b"\xef\xbb\xbfn,s\n1,a\n", csv("n INT", "s STRING"), (1, "a")),
    right("byte-order-mark-of-json", b"\xef\xbb\xbf[" + ROW + b"]", lines("Json"), (1,)),
    right("lines-of-all-systems", b"n\r\n1\n2\r3\r\n", csv("n INT"), (1,), (2,), (3,)),
    right(
        "utf-16-with-a-mark", "n\n\u00e4\n".encode("utf-16"), csv(encoding="utf-16"), ("\u00e4",)
    ),
    right("separators-of-unicode", "n\na\u2028b\x85c\n".encode(), csv(), ("a\u2028b\x85c",)),
    right("names-with-marks", b"a.b,c`d\n1,2\n", csv(), ("1", "2")),
    right(
        "whole-characters", b'{"n": "\\ud83d\\ude00 \\\\ud83d"}\n', TEXT, ("\U0001f600 \\ud83d",)
    ),
    right(
        "integers-beyond-64-bits",
        b'{"n": 99999999999999999999}\n',
        lines("NdJson"),
        (Decimal(99999999999999999999),),
    ),
    right(
        "times-of-96-bits",
        parquet(
            one(pa.array([datetime(1500, 1, 1)], pa.timestamp("us"))),
            use_deprecated_int96_timestamps=True,
        ),
        PARQUET,
        (instant(1500, 1, 1),),
    ),
    right(
        "largest-unsigned", parquet(one(pa.array([2**64 - 1], pa.uint64()))), PARQUET, (2**64 - 1,)
    ),
    right(
        "dictionary",
        parquet(one(pa.array(["a", "b", "a"]).dictionary_encode())),
        PARQUET,
        ("a",),
        ("a",),
        ("b",),
    ),
    right("no-row-groups", parquet(one(pa.array([], pa.int64()))), PARQUET),
    right("brotli", parquet(one(pa.array([1])), compression="brotli"), PARQUET, (1,)),
    right(
        "map-that-nobody-asked-for",
        parquet(pa.table({"m": MAPS, "n": [1]})),
        lines("Parquet", "n BIGINT"),
        (1,),
    ),
    right(
        "archive-of-a-mac",
        zipped_all({"a/x.csv": GOOD, "__MACOSX/a/._x.csv": b"\0\5", "a/.DS_Store": b"\0"}),
        N,
        (1,),
        (2,),
        prepare=ZIP,
    ),
    right(
        "index-of-pandas",
        b",n,s\n0,1,a\n",
        csv("_ INT", "n INT", "s STRING"),
        (1, "a"),
        preprocess="SELECT n, s FROM input",
    ),
    right("text-like-magic", b"PAR1,BZh\n1,a\n", csv(), ("1", "a")),
    right("gzip-in-parts", PACKED + gzip.compress(b"3\n"), N, (1,), (2,), (3,), prepare=GZIP),
    right("gzip-with-zeros-behind", PACKED + b"\0" * 512, N, (1,), (2,), prepare=GZIP),
    right(
        "offsets",
        b"t\n2020-01-01T00:00:00+14:00\n2020-01-01T00:00:00-00:00\n",
        csv("t TIMESTAMP"),
        (instant(2019, 12, 31, 10),),
        (instant(2020, 1, 1),),
    ),
    right(
        "keys-without-value",
        b"id,v\n,b\n,c\n",
        LETTERS,
        (None, "a"),
        before=b"id,v\n,a\n",
        merge=KEYED,
    ),
    right(
        "keys-that-are-no-number",
        b"id,v\nNaN,b\n-0.0,c\n",
        NUMBERS,
        (nan, "a"),
        (0.0, "z"),
        before=b"id,v\nNaN,a\n0.0,z\n",
        merge=KEYED,
    ),
    right("keys-twice-in-a-state", b"id,v\n1,a\n1,b\n", LETTERS, (1, "a"), (1, "b"), merge=STATE),
    right("keys-twice-the-last", b"id,v\n1,a\n1,b\n", LETTERS, (1, "b"), merge=STATE),
    right(
        "state-of-nulls-and-zeros",
        b"id,v\n,-0.0\n1,NaN\n",
        csv("id INT", "v DOUBLE"),
        (None, 0.0),
        (1, nan),
        before=b"id,v\n,0.0\n1,NaN\n",
        merge=STATE,
    ),
]
"""Sources, and all records of their datasets without system columns."""
