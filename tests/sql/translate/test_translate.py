"""Queries of other engines in Spark SQL: what is written, what is refused, and where."""

from __future__ import annotations

import re

import pytest

from odfbuild.errors import Errors, QueryError
from odfbuild.odf.model import SqlQueryStep, TransformSql
from odfbuild.sql.translate.runnable import (
    if_runnable,
    ran_on_spark,
    release_for,
    runnable,
)


def transform(engine: str, *queries: str) -> TransformSql:
    *steps, last = queries
    named = [SqlQueryStep(alias=f"s{n}", query=query) for n, query in enumerate(steps)]
    return TransformSql(engine=engine, queries=(*named, SqlQueryStep(query=last)))


def translated(engine: str, query: str) -> str:
    """The translation on one line."""
    steps = runnable(transform(engine, query)).queries or ()
    text = re.sub(r"\s+", " ", steps[0].query)
    return text.replace("( ", "(").replace(" )", ")")


TUMBLE = "TUMBLE(ts, INTERVAL '1' DAY)"
SAME = {
    # Windows of Flink
    (
        "flink",
        f"SELECT TUMBLE_START(ts, INTERVAL '1' DAY) AS t, SUM(x) AS s FROM a GROUP BY {TUMBLE}",
    ): "SELECT window.start AS t, SUM(x) AS s FROM a GROUP BY window(ts, '1 day')",
    (
        "flink",
        f"SELECT c, TUMBLE_END(ts, INTERVAL '1' DAY) AS t FROM a GROUP BY c, {TUMBLE} "
        "HAVING COUNT(*) > 1",
    ): "SELECT c, window.end AS t FROM a GROUP BY c, window(ts, '1 day') HAVING COUNT(*) > 1",
    (
        "flink",
        f"SELECT TUMBLE_ROWTIME(ts, INTERVAL '1' DAY) AS t FROM a GROUP BY {TUMBLE}",
    ): "SELECT (window.end - INTERVAL '0.001' SECOND) AS t FROM a GROUP BY window(ts, '1 day')",
    (
        "flink",
        "SELECT HOP_START(ts, INTERVAL '5' MINUTE, INTERVAL '1' HOUR) AS t FROM a "
        "GROUP BY HOP(ts, INTERVAL '5' MINUTE, INTERVAL '1' HOUR)",
    ): "SELECT window.start AS t FROM a GROUP BY window(ts, '1 hour', '5 minute')",
    (
        "flink",
        "SELECT w.window_start, w.c AS c FROM TABLE("
        "TUMBLE(TABLE `a.b`, DESCRIPTOR(ts), INTERVAL '1' DAY, INTERVAL '8' HOURS)) AS w "
        "GROUP BY c, window_start, window_end, window_time",
    ): "SELECT window.start AS window_start, w.c AS c FROM `a.b` AS w "
    "GROUP BY window(ts, '1 day', '1 day', '8 hour'), c",
    (
        "flink",
        "SELECT MAX(window_end) AS t FROM (SELECT window_end FROM TABLE("
        "HOP(TABLE a, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '2' HOUR)) "
        "GROUP BY window_start, window_end)",
    ): "SELECT MAX(window_end) AS t FROM (SELECT window.end AS window_end FROM a "
    "GROUP BY window(ts, '2 hour', '1 hour'))",
    (
        "flink",
        "SELECT SESSION_START(ts, INTERVAL '9' MINUTE) AS t, SESSION_END(ts, INTERVAL '9' MINUTE) "
        "AS e, SESSION_ROWTIME(ts, INTERVAL '9' MINUTE) AS r, c FROM a "
        "GROUP BY c, SESSION(ts, INTERVAL '9' MINUTE)",
    ): "SELECT session_window.start AS t, session_window.end AS e, "
    "(session_window.end - INTERVAL '0.001' SECOND) AS r, c FROM a "
    "GROUP BY c, session_window(ts, '9 minute')",
    (
        "flink",
        "SELECT window_start, d, c FROM TABLE(SESSION(TABLE `a.b` PARTITION BY (c, d), "
        "DESCRIPTOR(ts), INTERVAL '1' HOUR)) WHERE x <> 'SESSION(TABLE t PARTITION BY c)' "
        "GROUP BY d, window_start, window_end, c",
    ): "SELECT session_window.start AS window_start, d, c FROM `a.b` "
    "WHERE x <> 'SESSION(TABLE t PARTITION BY c)' GROUP BY session_window(ts, '1 hour'), d, c",
    (
        "flink",
        "SELECT w.window_end, c FROM TABLE(CUMULATE(TABLE `a.b`, DESCRIPTOR(ts), "
        "INTERVAL '10' MINUTES, INTERVAL '1' HOUR, INTERVAL '1' MINUTE)) AS w",
    ): "SELECT w.window_end, c FROM (SELECT *, window_end - INTERVAL '0.001' SECOND AS window_time "
    "FROM (SELECT *, timestamp_micros(unix_micros(ts) - "
    "pmod(unix_micros(ts) - 60000000, 3600000000)) AS window_start, explode(sequence("
    "timestamp_micros(unix_micros(ts) - pmod(unix_micros(ts) - 60000000, 600000000) + 600000000), "
    "timestamp_micros(unix_micros(ts) - pmod(unix_micros(ts) - 60000000, 3600000000) + 3600000000)"
    ", INTERVAL '600.000000' SECOND)) AS window_end FROM `a.b`)) AS w",
    # Temporal joins stay in the form that the engine puts in Spark's terms
    (
        "flink",
        "SELECT t.x FROM t JOIN `my.p` FOR SYSTEM_TIME AS OF t.`event_time` AS p ON t.s = p.s",
    ): "SELECT t.x FROM t JOIN `my.p` FOR SYSTEM_TIME AS OF t.`event_time` AS p ON t.s = p.s",
    (
        "flink",
        "SELECT t.x FROM t, LATERAL TABLE (`my.p`(t.event_time)) AS p WHERE t.s = p.s",
    ): "SELECT t.x FROM t, LATERAL TABLE(`my.p`(t.event_time)) AS p WHERE t.s = p.s",
    # Texts, names, types
    ("flink", r"SELECT x FROM a WHERE y = 'it''s \n'"): r"SELECT x FROM a WHERE y = 'it\'s \\n'",
    ("flink", "SELECT x FROM com.example.t AS a"): "SELECT x FROM `com.example.t` AS a",
    (
        "flink",
        "SELECT CAST(a AS TIMESTAMP(3)) AS b, CAST(c AS STRING) AS d FROM t",
    ): "SELECT CAST(a AS TIMESTAMP) AS b, CAST(c AS STRING) AS d FROM t",
    (
        "flink",
        "SELECT FLOOR(ts TO HOUR) AS h, EXTRACT(YEAR FROM ts) AS y, TIMESTAMPDIFF(DAY, b, c) AS d "
        "FROM t",
    ): "SELECT date_trunc('HOUR', ts) AS h, CAST(EXTRACT(YEAR FROM ts) AS BIGINT) AS y, "
    "CAST(TIMESTAMPDIFF(DAY, b, c) AS INT) AS d FROM t",
    (
        "datafusion",
        'SELECT "Total" AS t, x::bigint AS n FROM "a.b" ORDER BY t LIMIT 3',
    ): "SELECT `Total` AS t, CAST(x AS BIGINT) AS n FROM `a.b` ORDER BY t NULLS LAST LIMIT 3",
    (
        "datafusion",
        "SELECT 1.5 * x AS y, z / 2.0 AS h, CAST(1.5 AS DECIMAL) AS d FROM t",
    ): "SELECT CAST(1.5 AS DOUBLE) * x AS y, z / CAST(2.0 AS DOUBLE) AS h, "
    "CAST(1.5 AS DECIMAL(38, 10)) AS d FROM t",
    (
        "datafusion",
        "SELECT date_bin(interval '15 minutes', ts, timestamp '2020-01-01 00:05:00') AS b FROM t",
    ): "SELECT timestamp_micros(unix_micros(ts) - pmod(unix_micros(ts) - "
    "unix_micros(CAST('2020-01-01 00:05:00' AS TIMESTAMP)), 900000000)) AS b FROM t",
    (
        "risingwave",
        'select Symbol, sum(Q) over (partition by symbol order by ts) as "Cum" from T',
    ): "SELECT symbol, SUM(q) OVER (PARTITION BY symbol ORDER BY ts NULLS LAST) AS `Cum` FROM t",
    (
        "risingwave",
        "select x::double precision / y as q, extract(hour from ts)::int as h from t",
    ): "SELECT CAST(x AS DOUBLE) / y AS q, CAST(EXTRACT(HOUR FROM ts) AS INT) AS h FROM t",
}


@pytest.mark.parametrize(("engine", "query"), SAME)
def test_what_means_the_same_is_written_for_spark(engine: str, query: str) -> None:
    assert translated(engine, query) == SAME[engine, query]


REFUSED = [
    ("flink", "SELECT AVG(x) AS m FROM t", "AVG() of flink has no translation", 8),
    ("flink", "SELECT a, COUNT(*) FROM t GROUP BY a", "give it a name with AS", 11),
    ("flink", "SELECT PROCTIME() AS t FROM a", "PROCTIME() of flink", 8),
    (
        "flink",
        "SELECT x FROM t GROUP BY x, SESSION(ts, INTERVAL '1' DAY, INTERVAL '1' DAY)",
        "SESSION takes a time and 1 interval",
        37,
    ),
    ("flink", "SELECT x FROM t GROUP BY x, SESSION(ts, INTERVAL '0' DAY)", "length of a", 50),
    (
        "flink",
        "SELECT window_start, COUNT(*) AS n FROM TABLE(SESSION(TABLE t PARTITION BY c, "
        "DESCRIPTOR(ts), INTERVAL '1' DAY)) GROUP BY window_start, window_end, c, d",
        "group by the columns of PARTITION BY",
        47,
    ),
    (
        "flink",
        "SELECT x FROM TABLE(CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '7' DAY, INTERVAL '8' DAY)"
        ")",
        "whole number of steps",
        21,
    ),
    (
        "flink",
        "SELECT x FROM TABLE(CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '7' DAY))",
        "a step and a length",
        21,
    ),
    ("flink", "SELECT CUMULATE(ts, 1) AS w FROM t", "CUMULATE of flink has no translation", 8),
    ("flink", "SELECT x FROM t GROUP BY x, window(ts, '1 day')", "window() of flink", 29),
    (
        "flink",
        "SELECT TUMBLE_START(ts, INTERVAL '1' HOUR) AS t FROM a GROUP BY " + TUMBLE,
        "another window than the one that is grouped by",
        8,
    ),
    (
        "flink",
        "SELECT x FROM t GROUP BY TUMBLE(ts, INTERVAL '1' MONTH), x",
        "length of a window",
        0,
    ),
    (
        "flink",
        "SELECT x FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' DAY))",
        "group by window_start, window_end",
        21,
    ),
    ("flink", "SELECT a AS b FROM t GROUP BY 1", "constants in flink", 0),
    ("flink", "SELECT x FROM t WHERE y LIKE 'a\\_b'", "what `\\` means in a pattern", 23),
    ("flink", "SELECT CAST(x AS VARCHAR(3)) AS y FROM t", "cut at a length", 13),
    ("flink", "SELECT CAST(x AS TIMESTAMP(0)) AS y FROM t", "to the millisecond", 13),
    ("flink", "SELECT ROW(1, 2) AS r FROM t", "ROW() of flink", 8),
    ("flink", "SELECT FLOOR(x) AS y FROM t", "FLOOR gives another type", 14),
    ("flink", "SELECT * FROM a NATURAL JOIN b", "NATURAL JOIN", 0),
    ("flink", "SELECT x FROM t MATCH_RECOGNIZE (PATTERN (A))", "", 0),
    ("flink", 'SELECT "x" FROM t', "not understood as SQL of flink", 10),
    ("flink", "INSERT INTO t SELECT 1", "a query is one SELECT", 1),
    ("flink", "SELECT 1 AS a; SELECT 2 AS b", "a query is one SELECT", 1),
    ("flink", "SELECT x FROM", "not understood as SQL of flink", 0),
    ("datafusion", "SELECT now() AS n FROM t", "has no translation", 8),
    ("datafusion", "SELECT arr[1] AS n FROM t", "`arr[1]` of datafusion", 8),
    ("datafusion", "SELECT regexp_replace(a, 'b', 'c') AS n FROM t", "has no translation", 8),
    ("datafusion", "SELECT date_bin(interval '1 month', ts) AS b FROM t", "weeks or less", 0),
    ("datafusion", "SELECT DISTINCT ON (a) a, b FROM t", "DISTINCT ON", 0),
    ("risingwave", "SELECT x::numeric AS y FROM t", "how many digits", 8),
    (
        "risingwave",
        "SELECT window_start FROM tumble(t, ts, interval '1 day') GROUP BY window_start",
        "TUMBLE of risingwave has no translation here",
        26,
    ),
]


@pytest.mark.parametrize(("engine", "query", "why", "column"), REFUSED)
def test_what_is_not_known_to_mean_the_same_is_refused_at_its_place(
    engine: str, query: str, why: str, column: int
) -> None:
    with pytest.raises(Errors) as caught:
        runnable(transform(engine, "SELECT 1 AS one FROM t", "\n" + query), "d")
    error = next(each for each in caught.value.errors if why in each.message)
    assert (error.code, error.dataset) == ("E0519", "d")
    assert error.location is not None
    assert error.location.file == "queries[1]"
    if column:
        assert (error.location.line, error.location.column) == (2, column)


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(Errors) as caught:
        runnable(transform("flink", "SELECT FLOOR(a) AS c, PROCTIME() AS p, AVG(x) AS m FROM t"))
    assert len(caught.value.errors) == 3


@pytest.mark.parametrize("engine", ["flink", "datafusion", "risingwave"])
def test_what_would_take_for_ever_to_read_is_refused(engine: str) -> None:
    joins = " ".join(f"JOIN b{number}" for number in range(40))
    with pytest.raises(Errors, match="state the condition of each join"):
        runnable(transform(engine, f"SELECT a.x AS x FROM a {joins}"))
    with pytest.raises(Errors, match="nested too deeply"):
        runnable(transform(engine, f"SELECT {'(' * 3000}x{')' * 3000} AS x FROM a"))


def test_an_engine_that_nobody_knows_is_refused_and_spark_is_left_alone() -> None:
    with pytest.raises(QueryError) as caught:
        runnable(transform("presto", "SELECT 1 AS a"), "d")
    assert caught.value.code == "E0513"
    assert if_runnable(transform("presto", "SELECT 1 AS a")) is None
    own = transform("Spark", "SELECT whatever( FROM")
    assert runnable(own) is own


def test_the_pinned_version_says_that_spark_ran_and_what() -> None:
    one, two = transform("flink", "SELECT a FROM t"), transform("flink", "SELECT b FROM t")
    pinned = release_for(one, "4.3.0-12345678")
    assert re.fullmatch(r"spark-4\.3\.0-12345678-[0-9a-f]{8}", pinned)
    assert pinned == release_for(transform("flink", "SELECT  a\nFROM t"), "4.3.0-12345678")
    assert pinned != release_for(two, "4.3.0-12345678")
    own = transform("spark", "SELECT a FROM t")
    assert release_for(own, "4.3.0-12345678") == "4.3.0-12345678"
    assert ran_on_spark(own)
    assert not ran_on_spark(one)
