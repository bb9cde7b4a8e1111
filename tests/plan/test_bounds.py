import pytest

from odfbuild.odf.model import (
    MergeStrategyAppend,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
    SqlQueryStep,
    TransformSql,
)
from odfbuild.sql.bounds import (
    changes_two_at_most,
    keeps_every_record,
    kept_values,
    never_adds_records,
)


def sql(*queries: str) -> TransformSql:
    steps = [SqlQueryStep(alias=f"s{n}", query=q) for n, q in enumerate(queries[:-1])]
    return TransformSql(engine="spark", queries=(*steps, SqlQueryStep(query=queries[-1])))


@pytest.mark.parametrize(
    "queries",
    [
        ("SELECT * FROM a",),
        ("select x from a where y > 0",),
        ("SELECT x FROM `a` AS t WHERE t.y IN ('join', 'b')",),
        ("SELECT x FROM a -- not a join\n",),
        ("SELECT x FROM a UNION ALL SELECT x FROM b",),
        ("SELECT x FROM a WHERE x > 0", "SELECT x FROM s0"),
    ],
)
def test_filters_projections_and_unions_only_drop_records(queries):
    assert never_adds_records(sql(*queries), ["a", "b"])


@pytest.mark.parametrize(
    "queries",
    [
        ("SELECT * FROM a JOIN b ON a.x = b.x",),
        ("SELECT * FROM a, b",),
        ("SELECT explode(xs) FROM a",),
        ("SELECT * FROM a LATERAL VIEW explode(xs) t AS x",),
        ("SELECT x FROM a UNION ALL SELECT x FROM a",),
        ("SELECT x FROM (SELECT x FROM a)",),
        ("SELECT x FROM a", "SELECT x FROM s0 UNION ALL SELECT x FROM a"),
        ("WITH t AS (SELECT x FROM a) SELECT x FROM t",),
        ("SELECT x FROM elsewhere",),
    ],
)
def test_what_may_multiply_records_is_not_promised(queries):
    assert not never_adds_records(sql(*queries), ["a", "b"])


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("SELECT x FROM a WHERE origin = 'EWR'", ("origin", ("ewr",))),
        (
            "SELECT x FROM a WHERE x > 1 AND a.`Origin` IN ('EWR', 'JFK')",
            ("origin", ("ewr", "jfk")),
        ),
        ("SELECT 'where' AS w FROM a WHERE origin = 'EWR' -- AND x = 'y'", ("origin", ("ewr",))),
        ("SELECT x FROM a WHERE f(x) IN (1, 2) AND origin = 'EWR';", ("origin", ("ewr",))),
        (
            "SELECT x FROM a WHERE y IS NOT NULL AND n BETWEEN 1 AND 3 AND origin = 'EWR'",
            ("origin", ("ewr",)),
        ),
        # Any of these may keep other records, too, or compare something else.
        ("SELECT x FROM a WHERE origin = 'EWR' OR x = 1", None),
        ("SELECT x FROM a WHERE NOT (x AND origin = 'EWR' AND y)", None),
        ("SELECT x FROM a WHERE isnull(x AND origin = 'EWR' AND y)", None),
        ("SELECT x FROM a WHERE CASE WHEN x AND origin = 'EWR' AND y THEN 1 END = 1", None),
        ("SELECT x FROM a WHERE x BETWEEN 1 AND origin = 'EWR'", None),
        ("SELECT x FROM a WHERE s.origin = 'EWR'", None),
        ("SELECT x FROM a WHERE origin = 'EWR' || x", None),
        ("SELECT x FROM a WHERE concat(origin) = 'EWR'", None),
        ("SELECT x FROM a -- WHERE origin = 'EWR'", None),
        ("SELECT 'x' AS y, ' WHERE origin = ''EWR''' AS z FROM a WHERE x > 1", None),
        # Of a number or a time these would be other spellings of one value.
        ("SELECT x FROM a WHERE n = '01'", None),
        ("SELECT x FROM a WHERE n = 'true'", None),
        ("SELECT x FROM a WHERE n = ''", None),
    ],
)
def test_values_that_a_query_keeps_are_told_from_its_words(query, kept):
    assert kept_values(sql(query), ["a"]) == kept


@pytest.mark.parametrize(
    ("query", "all_of_them"),
    [
        ("SELECT x, upper(y) AS y FROM a", True),
        ("SELECT x, 'where' AS y FROM a -- where", True),
        ("SELECT x FROM a WHERE x > 1", False),
        ("SELECT DISTINCT x FROM a", False),
        ("SELECT x FROM elsewhere", False),
        ("SELECT explode(x) FROM a", False),
    ],
)
def test_a_query_without_a_condition_keeps_every_record(query, all_of_them):
    assert keeps_every_record(sql(query), ["a"]) is all_of_them


@pytest.mark.parametrize(
    ("query", "overlap"),
    [
        ("SELECT 1 FROM a GROUP BY window(t, '1 hour')", False),
        ("SELECT 1 FROM a GROUP BY window(date_trunc('DAY', t), '1 hour'), k", False),
        ("SELECT 1 FROM a GROUP BY window(t, '1 hour', '5 minutes')", True),
        ("SELECT 1 FROM a GROUP BY k, WINDOW (CAST(t AS TIMESTAMP), '2 days', '1 day'), l", True),
    ],
)
def test_windows_that_overlap_make_several_records_of_one(query, overlap):
    assert never_adds_records(sql(query), ["a"]) is not overlap


@pytest.mark.parametrize(
    ("query", "two"),
    [
        ("SELECT k, sum(v) FROM a GROUP BY k HAVING sum(v) > 1", True),
        ("SELECT max(t), count(*) FROM a", True),
        ("SELECT DISTINCT k FROM a", True),
        ("SELECT k, row_number() OVER (ORDER BY v) FROM a", False),
        ("SELECT n, count(*) FROM (SELECT k, count(*) AS n FROM a GROUP BY k) GROUP BY n", False),
        ("SELECT 1 FROM a GROUP BY session_window(t, '1 hour'), k", False),
        ("SELECT k FROM a ORDER BY k LIMIT 3", False),
    ],
)
def test_a_record_brings_a_group_two_at_most(query, two):
    assert changes_two_at_most(sql(query)) is two


@pytest.mark.parametrize(
    ("merge", "files", "own", "most"),
    [
        (MergeStrategyAppend(), 3, 50, 7),
        (MergeStrategyLedger(primary_key=("id",)), 3, 50, 7),
        (MergeStrategyUpsertStream(primary_key=("id",)), 1, 0, 14),
        (MergeStrategySnapshot(primary_key=("id",)), 1, 0, 7),
        (MergeStrategySnapshot(primary_key=("id",)), 1, 50, 50 + 14),
        (MergeStrategySnapshot(primary_key=("id",)), 3, 50, 50 + 21),
    ],
)
def test_seven_records_that_are_merged_append_so_many_at_most(merge, files, own, most):
    assert merge.most(7, files, own) == most
