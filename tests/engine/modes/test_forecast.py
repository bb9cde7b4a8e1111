"""The mode of a query, told from its text."""

import pytest

from odfbuild.sql.forecast import expected_mode
from odfbuild.sql.mode import PAIRS, RECORD_BY_RECORD, WINDOWS, Mode
from tests.engine.inputs import sql

MAPS = [
    "SELECT event_time, upper(city) AS c FROM t WHERE n > 1",
    "SELECT * EXCEPT (a), 'GROUP BY' AS b -- JOIN\n FROM t /* DISTINCT */",
    "SELECT * FROM a UNION ALL SELECT * FROM b",
    "WITH x AS (SELECT * FROM t) SELECT `order`, x.limit, offset FROM x",
    "SELECT * EXCEPT (offset, op, system_time) FROM t WHERE offset > 5 AND (n - offset) > 2",
    "SELECT event_time, word FROM t LATERAL VIEW explode(words) AS word",
    "SELECT event_time, exists(words, w -> w > 'a') AS b, x IS DISTINCT FROM y AS c FROM t",
    "SELECT event_time, extract(YEAR FROM event_time) AS y FROM t",
]
STREAMS = [
    "SELECT window.start AS event_time, COUNT(DISTINCT city) AS n FROM t "
    "GROUP BY window(event_time, '1 hour')",
    "SELECT window.end AS event_time, max(n) AS n FROM (SELECT * FROM a UNION ALL SELECT * FROM b) "
    "GROUP BY city, window(event_time, '1 hour', '5 minutes') HAVING max(n) > 1",
    "SELECT * FROM (SELECT window.end AS event_time, count(*) AS n FROM t "
    "GROUP BY window(event_time, INTERVAL 1 HOUR)) WHERE n > 1",
]
JOINS = [
    "SELECT a.event_time FROM a JOIN b ON a.x = b.x",
    "SELECT a.event_time FROM a, b WHERE a.x = b.x",
    "SELECT a.event_time FROM a INNER JOIN (SELECT * FROM b) b USING (x) CROSS JOIN c",
]
CHANGELOGS = {
    "SELECT max(event_time) AS event_time FROM t": "aggregation (GROUP BY, COUNT, SUM …) at line 1,"
    " column 8",
    "SELECT event_time,\n  rank() OVER (ORDER BY n) AS r FROM t": "a window function (OVER) at"
    " line 2, column 10",
    "SELECT DISTINCT city FROM t": "DISTINCT at line 1, column 8",
    "SELECT a FROM t UNION SELECT a FROM u": "DISTINCT at line 1, column 17",
    "SELECT a FROM t EXCEPT SELECT a FROM u": "EXCEPT at line 1, column 17",
    "SELECT a FROM t ORDER BY a LIMIT 3": "ORDER BY at line 1, column 17",
    "SELECT a FROM t OFFSET 2": "OFFSET at line 1, column 17",
    "SELECT a.event_time FROM a LEFT JOIN b ON a.x = b.x": "a join at line 1, column 33",
    "SELECT a.event_time FROM a JOIN a AS b ON a.x = b.x": "a join at line 1, column 28",
    "SELECT a.event_time FROM a JOIN b FOR SYSTEM_TIME AS OF a.event_time ON a.x = b.x": (
        "a join at line 1, column 28"
    ),
    "SELECT a.event_time FROM a, LATERAL TABLE (b(a.event_time)) AS b": "a join at line 1,"
    " column 27",
    "SELECT a, (SELECT first(b) FROM u) AS b FROM t": "a subquery at line 1, column 12",
    "SELECT v FROM (SELECT a, b FROM t) UNPIVOT (v FOR k IN (a, b))": "PIVOT at line 1, column 36",
    "SELECT a FROM t, range(3)": "a join at line 1, column 16",
    "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u)": "a subquery at line 1, column 23",
    "SELECT a FROM t WHERE a IN (SELECT a FROM u)": "a subquery at line 1, column 29",
    "SELECT window.start AS event_time, COUNT(*) AS n FROM a JOIN b USING (x) "
    "GROUP BY window(event_time, '1 hour')": "aggregation (GROUP BY, COUNT, SUM …) at line 1,"
    " column 36",
}


def test_records_that_are_handled_alone_are_mapped() -> None:
    assert [expected_mode(sql(query)) for query in MAPS] == [RECORD_BY_RECORD] * len(MAPS)


def test_of_a_text_that_no_parser_here_understands_the_tokens_tell() -> None:
    assert expected_mode(sql("SELECT city AS select FROM t")) == RECORD_BY_RECORD
    summed = expected_mode(sql("SELECT max(n) AS select FROM t"))
    assert summed.reason == "aggregation (GROUP BY, COUNT, SUM …) at line 1, column 8"
    piped = expected_mode(sql("FROM t\n|> WHERE n > 1"))
    assert (piped.mode, piped.reason) == (Mode.CHANGELOG, "pipes at line 2")
    assert "not understood" in expected_mode(sql("SELECT 'a FROM t")).reason


def test_windows_and_inner_joins_are_streams() -> None:
    assert [expected_mode(sql(query)) for query in STREAMS] == [WINDOWS] * len(STREAMS)
    assert [expected_mode(sql(query)) for query in JOINS] == [PAIRS] * len(JOINS)


@pytest.mark.parametrize("query", CHANGELOGS)
def test_the_rest_is_a_changelog_for_a_reason_with_its_place(query: str) -> None:
    expected = expected_mode(sql(query))
    assert (expected.mode, expected.reason) == (Mode.CHANGELOG, CHANGELOGS[query])


def test_a_window_over_an_aggregation_is_a_changelog() -> None:
    inner = "SELECT max(event_time) AS event_time, city FROM t GROUP BY city"
    outer = "SELECT window.end AS event_time FROM step0 GROUP BY window(event_time, '1 day')"
    assert expected_mode(sql(inner, outer)).mode is Mode.CHANGELOG
