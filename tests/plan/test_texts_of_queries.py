"""Texts that Spark would refuse for certain are refused at their place; others are left to it."""

from __future__ import annotations

import sys
import zoneinfo
from pathlib import Path

import pytest

from odfbuild.odf.model import SqlQueryStep, TransformSql
from odfbuild.odf.schema.ddl import read_ddl
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.sql.check.check import errors_of
from odfbuild.sql.columns.of_query import columns_of

COLUMNS = columns_of(
    read_ddl(["event_time TIMESTAMP", "id BIGINT", "v BIGINT", "country STRING", "b STRING"])
)


def found(query: str) -> list[tuple[str, int, str]]:
    """Code, column (in the one line) and message of each error."""
    transform = TransformSql(engine="spark", queries=(SqlQueryStep(query=query),))
    errors = errors_of(transform, {"a": COLUMNS}, Vocabulary(), "d")
    return [(each.code, each.location.column, each.message) for each in errors]


@pytest.mark.parametrize(
    ("query", "code", "column", "message"),
    [
        ("SELECT event_time, id v b FROM a", "E0501", 25, "'b' is not expected here"),
        ("SELECT event_time id v FROM a", "E0501", 22, "'v' is not expected here"),
        ("SELECT event_time, id, FROM a", "E0501", 22, "nothing follows this comma"),
        ("SELECT TOP 10 event_time FROM a", "E0501", 8, "Spark SQL has no TOP"),
        ("", "E0501", 1, "the query is empty"),
        ("-- todo\n", "E0501", 1, "the query is empty"),
        ("SELECT event_time FROM a WHERE id =", "E0501", 35, "the query ends after `=`"),
        (
            "SELECT event_time FROM a WHERE",
            "E0524",
            26,
            "the query is not understood at `WHERE`",
        ),
        (
            "SELECT event_time FROM a LIMIT",
            "E0524",
            26,
            "the query is not understood at `LIMIT`",
        ),
        (
            "SELECT event_time FROM a GRUOP BY 1 + id v",
            "E0524",
            32,
            "the query is not understood at `BY`",
        ),
        (
            "SELECT from_utc_timestamp(event_time, 'Europe/Pariss') AS event_time FROM a",
            "E0501",
            39,
            "there is no time zone 'Europe/Pariss'",
        ),
        (
            "SELECT event_time, convert_timezone('europe/paris', event_time) AS x FROM a",
            "E0501",
            37,
            "there is no time zone 'europe/paris'",
        ),
        ("DROP TABLE a", "E0502", 1, "DROP is not allowed in a query"),
        ("TRUNCATE TABLE a", "E0502", 1, "TRUNCATETABLE is not allowed in a query"),
        ("USE x", "E0502", 1, "USE is not allowed in a query"),
        (
            'SELECT event_time, "country" AS c FROM a',
            "E0501",
            20,
            '"country" is a text to Spark, and there is a column of that name',
        ),
    ],
)
def test_what_is_certainly_wrong_is_told_at_its_place(query, code, column, message):
    assert (code, column, message) in found(query)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT event_time, \"a text\" AS c, 'country' AS d FROM a",
        "SELECT event_time, id AS top, 10 AS n FROM a",
        "SELECT event_time, v FROM a WHERE country IN ('x', 'y')",
        "SELECT event_time, id v FROM a",
        "FROM a SELECT event_time",
        "TABLE a",
        "TABLE a |> SELECT event_time",
        "SELECT event_time, parse_json(country):x.y::string AS s FROM a",
        "SELECT event_time FROM a WATERMARK event_time DELAY OF INTERVAL 1 MINUTE",
        'SELECT event_time, "it\'s" AS c FROM a',
    ],
)
def test_what_spark_may_understand_is_not_refused(query):
    assert [each for each in found(query) if each[0] != "E0524"] == []


@pytest.mark.parametrize(
    "query", ["SELECT event_time, id v b FROM a", "SELECT event_time FROM a GRUOP BY 1 + id v"]
)
def test_what_spark_has_accepted_is_not_refused_because_it_does_not_parse_here(query: str) -> None:
    assert found(query)
    transform = TransformSql(engine="spark", queries=(SqlQueryStep(query=query),))
    assert errors_of(transform, {"a": COLUMNS}, Vocabulary(), "d", accepted={query}) == ()


@pytest.mark.parametrize("known", [(), ("Europe/Paris",), ("Europe/Paris", "US/Pacific")])
def test_a_system_that_lacks_time_zones_says_nothing_of_those_that_spark_has(
    known: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian keeps US/Eastern and its like in a package of their own; old ones lack Europe/Kyiv."""
    for name in known:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"TZif2")
    monkeypatch.setitem(sys.modules, "tzdata", None)
    zoneinfo.reset_tzpath([str(tmp_path)])
    zoneinfo.ZoneInfo.clear_cache()
    try:
        for name in ("US/Eastern", "Europe/Kyiv", "Asia/Calcutta"):
            query = f"SELECT from_utc_timestamp(event_time, '{name}') AS event_time FROM a"
            assert found(query) == []
    finally:
        zoneinfo.reset_tzpath()
        zoneinfo.ZoneInfo.clear_cache()
