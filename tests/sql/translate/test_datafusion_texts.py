"""Times and JSON in texts: DataFusion's functions give in Spark what they give there.

`to_timestamp` and `to_unixtime` run in DataFusion beside Spark. The package has no functions for
JSON: those are of a crate that only Rust can load. `tests/engine/json_of_datafusion.py` says in
Python what its releases give, by their source and tests, and stands in for it.
"""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from odfbuild.engine.contract import Engine
from odfbuild.errors import OdfbuildError
from odfbuild.sql.translate.times import guard_of
from tests.engine.json_of_datafusion import DIFFERS, json_get, json_text
from tests.engine.stepwise import Source
from tests.sql.translate.test_translations_hold import result

pytestmark = pytest.mark.spark

COUNT = 1000
REFUSED = object()
FORMATS = (
    "%m/%d/%Y %I:%M:%S %p",
    "%Y-%m-%d %H:%M:%S",
    "%d.%m.%Y",
    "%-d.%-m.%Y %H:%M",
    "%FT%T%.f",
    "%F %T%.f %z",
    "%FT%T%:z",
    "%b %e, %Y %R",
    "%d %B %Y",
    "%D",
    "100%% on %Y/%m/%d",
    None,
)
PATHS: dict[str, tuple[str | int, ...]] = {
    "'a'": ("a",),
    "'a', 0": ("a", 0),
    "'b', 'a'": ("b", "a"),
    "'a b'": ("a b",),
    "1": (1,),
    "'it''s'": ("it's",),
}
FUNCTIONS = ("json_get_str", "json_get_int", "json_get_float", "json_get_bool")


def _moment(drawn: random.Random) -> datetime:
    edges = [datetime(1970, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(1678, 1, 1)]
    edges += [datetime(2261, 12, 31, 12), datetime(2024, 2, 29), datetime(1900, 1, 1)]
    if drawn.random() < 0.2:
        return drawn.choice(edges)
    micros = drawn.randrange(10**6) if drawn.random() < 0.5 else drawn.randrange(1000) * 1000
    far = drawn.randrange(-9_000_000_000, 9_200_000_000) // drawn.choice((1, 6))
    return datetime(1970, 1, 1) + timedelta(seconds=far, microseconds=micros)


def _written(drawn: random.Random, moment: datetime, form: str | None) -> str:
    """A text of a format, now and then with one wrong character or digit."""
    zone = drawn.choice(("Z", "", "+02:00", "-0530"))
    fraction = drawn.choice(("", f".{moment.microsecond:06}", f".{moment.microsecond // 1000:03}"))
    year = f"{moment.year:04}"
    text = f"{year}-{moment:%m-%d}{drawn.choice('T ')}{moment:%H:%M:%S}{fraction}{zone}"
    if form is not None:
        zoned = moment.replace(tzinfo=UTC)
        plain = form.replace("%-d", str(moment.day)).replace("%-m", str(moment.month))
        plain = plain.replace("%.f", fraction).replace("%:z", "+01:30")
        plain = plain.replace("%F", "%Y-%m-%d").replace("%Y", year)
        text = zoned.strftime(plain)
        if drawn.random() < 0.3:
            text = re.sub(r"\b0(\d)\b(?!:)", r"\1", text)
        if drawn.random() < 0.3:
            text = text.swapcase()
    elif drawn.random() < 0.2:
        text = text[:10]
    if drawn.random() < 0.2:
        at = drawn.randrange(len(text))
        text = text[:at] + drawn.choice("0123456789 -:/TZAPMx.+") + text[at + 1 :]
    return text


def _texts(form: str | None) -> list[str]:
    """Texts that the guard of the translation accepts: all others make a step fail."""
    drawn = random.Random(11)
    accepted = re.compile(guard_of(form))
    found: list[str] = []
    while len(found) < COUNT:
        text = _written(drawn, _moment(drawn), form)
        if accepted.match(text):
            found.append(text)
    return found


def _theirs(texts: list[str], form: str | None) -> list[Any]:
    """What DataFusion gives for each text; `REFUSED` where it fails."""
    from datafusion import SessionContext

    context = SessionContext()
    context.register_record_batches("t", [pa.table({"s": texts}).to_batches()])
    call = "to_timestamp(s)" if form is None else f"to_timestamp(s, '{form}')"
    try:
        table = context.sql(f"SELECT {call} AS c FROM t").to_arrow_table()
    except Exception:
        if len(texts) == 1:
            return [REFUSED]
        half = len(texts) // 2
        return _theirs(texts[:half], form) + _theirs(texts[half:], form)
    return table["c"].cast(pa.timestamp("us")).to_pylist()


def _source(folder: Path, columns: dict[str, list[Any]]) -> Source:
    fields = [pa.field("id", pa.int64()), *(pa.field(name, pa.string()) for name in columns)]
    made = Source(folder, "t", fields)
    made.add([(n, n, *row) for n, row in enumerate(zip(*columns.values(), strict=True))])
    return made


def _ours(engine: Engine, folder: Path, columns: dict[str, list[Any]], said: list[str]) -> pa.Table:
    named = ", ".join(f"{each} AS c{n}" for n, each in enumerate(said))
    sql = f"SELECT event_time, id, {named} FROM t"
    return result(engine, _source(folder, columns), folder, "datafusion", sql)


def _millis(moment: datetime | None) -> datetime | None:
    """As records hold times: cut to the millisecond before."""
    return moment and moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def test_times_of_texts_are_those_of_datafusion(spark_engine: Engine, tmp_path: Path) -> None:
    columns, expected, refused = {}, {}, []
    for n, form in enumerate(FORMATS):
        texts = _texts(form)
        told = dict(zip(texts, _theirs(texts, form), strict=True))
        refused += [(text, form) for text in texts if told[text] is REFUSED]
        known: list[str | None] = [None if told[each] is REFUSED else each for each in texts]
        known[::17] = [None] * len(known[::17])
        columns[f"s{n}"] = known
        expected[form] = [each and _millis(told[each]) for each in known]
    said = [
        f"to_timestamp(s{n})" if form is None else f"to_timestamp(s{n}, '{form}')"
        for n, form in enumerate(FORMATS)
    ]
    seconds = [f"to_unixtime(to_timestamp(s{n}, '{FORMATS[n]}'))" for n in (0, 4)]
    ours = _ours(spark_engine, tmp_path, columns, said + seconds)
    for n, form in enumerate(FORMATS):
        found = [each and each.replace(tzinfo=None) for each in ours[f"c{n}"].to_pylist()]
        wrong = [
            triple
            for triple in zip(columns[f"s{n}"], found, expected[form], strict=True)
            if triple[1] != triple[2]
        ]
        assert (form, wrong[:3]) == (form, [])
        assert sum(each is not None for each in found) > COUNT / 2
    # Days that no calendar has are refused by both.
    for n, (text, form) in enumerate(refused[:: len(refused) // 4]):
        call = "to_timestamp(s)" if form is None else f"to_timestamp(s, '{form}')"
        folder = tmp_path / str(n)
        folder.mkdir()
        with pytest.raises(OdfbuildError):
            _ours(spark_engine, folder, {"s": [text]}, [call])


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("%d.%m.%Y", "30.02.2024"),
        ("%d.%m.%Y", "1.1.1400"),
        ("%d.%m.%Y", " 1.1.2024"),
        ("%F %T", "2024-01-01 00:00:60"),
        ("%D", "1/1/70"),
        (None, "2024-01-01 01:02:03 UTC"),
        (None, "2024-01-01T01:02:03.1234567"),
        (None, "now"),
        (None, ""),
    ],
)
def test_a_text_that_both_do_not_read_alike_makes_a_step_fail(
    spark_engine: Engine, tmp_path: Path, form: str | None, text: str
) -> None:
    call = "to_timestamp(s)" if form is None else f"to_timestamp(s, '{form}')"
    with pytest.raises(OdfbuildError):
        _ours(spark_engine, tmp_path, {"s": [text]}, [call])


def test_parts_of_json_are_those_on_which_releases_of_the_functions_agree(
    spark_engine: Engine, tmp_path: Path
) -> None:
    drawn = random.Random(5)
    texts: list[str | None] = []
    while len(texts) < COUNT:
        text = json_text(drawn)
        told = [json_get(f, text, path) for f in FUNCTIONS for path in PATHS.values()]
        if DIFFERS not in told:
            texts.append(text)
    said = [f"{function}(s, {path})" for function in FUNCTIONS for path in PATHS]
    ours = _ours(spark_engine, tmp_path, {"s": texts}, said)
    found = dict.fromkeys(FUNCTIONS, 0)
    for n, (function, path) in enumerate((f, p) for f in FUNCTIONS for p in PATHS):
        expected = [json_get(function, each, PATHS[path]) for each in texts]
        pairs = zip(texts, ours[f"c{n}"].to_pylist(), expected, strict=True)
        assert [each for each in pairs if each[1] != each[2]][:3] == []
        found[function] += sum(each is not None for each in expected)
    assert min(found.values()) > COUNT / 10


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("json_get_int(s, 'a')", '{"a": -1}'),
        ("json_get_int(s, 'a')", '{"a": "12"}'),
        ("json_get_int(s, 'a')", '{"a": 2.0}'),
        ("json_get_int(s, 'a')", '{"a": 1e3}'),
        ("json_get_int(s, 'a')", '{"a": 1234567890123456789}'),
        ("json_get_float(s, 'a')", '{"a": -1.5}'),
        ("json_get_float(s, 'a')", '{"a": "nan"}'),
        ("json_get_bool(s, 'a')", '{"a": "true"}'),
        ("json_get_str(s, 'a')", '{"a": "x", '),
        ("json_get_str(s, 'a')", '{"a": "x", "a": "y"}'),
    ],
)
def test_a_part_of_json_on_which_releases_differ_makes_a_step_fail(
    spark_engine: Engine, tmp_path: Path, call: str, text: str
) -> None:
    with pytest.raises(OdfbuildError, match="releases differ for"):
        _ours(spark_engine, tmp_path, {"s": [text]}, [call])
