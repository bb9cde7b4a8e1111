import pytest

from odfbuild.odf.model import SqlQueryStep, TransformSql
from odfbuild.plan.bounds import never_adds_records


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
