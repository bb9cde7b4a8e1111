"""A query is said not to read a column only where that is certain."""

from __future__ import annotations

from dataclasses import replace

import pytest

from odfbuild.odf.model import SqlQueryStep, TemporalTable, TransformSql
from odfbuild.sql.columns.query_lineage import lineage_of
from odfbuild.sql.columns.used import may_read, names_to_follow

NAMES = {"o": ("offset", "event_time", "id", "c"), "C": ("offset", "event_time", "id", "x", "y")}


def reads(query: str, *changed: str, temporal: bool = False) -> bool:
    """Whether a query may read these columns of `c`."""
    steps = (SqlQueryStep(query=query, alias=None),)
    transform = TransformSql(engine="spark", queries=steps)
    if temporal:
        table = TemporalTable(name="C", primary_key=("id",))
        transform = replace(transform, temporal_tables=(table,))
    lineage = lineage_of(transform, names_to_follow(NAMES))
    return may_read(transform, lineage, {"C": changed, "o": ()})


@pytest.mark.parametrize(
    "query",
    [
        "SELECT o.c, COUNT(*) AS n FROM o LEFT JOIN c ON o.c = c.id GROUP BY o.c",
        "SELECT id FROM o WHERE c IN (SELECT id FROM c WHERE x > 1)",
        "SELECT x, MAX(id) AS id FROM c GROUP BY x HAVING COUNT(*) > 1",
        "WITH t AS (SELECT id, x FROM c) SELECT DISTINCT x FROM t",
        "SELECT id FROM o EXCEPT SELECT id FROM c",
    ],
)
def test_a_column_that_does_not_occur_is_not_read(query: str) -> None:
    assert not reads(query, "y", "offset")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT o.c, COUNT(*) AS n FROM o LEFT JOIN c ON o.c = c.Y GROUP BY o.c",
        "SELECT id FROM o WHERE c IN (SELECT id FROM c WHERE y > 1)",
        "SELECT x, MAX(id) AS id FROM c GROUP BY x HAVING MIN(y) > 1",
        "SELECT id, ROW_NUMBER() OVER (PARTITION BY x ORDER BY y) AS n FROM c",
        "SELECT id FROM c ORDER BY y LIMIT 1",
        "SELECT DISTINCT * EXCEPT (x, y) FROM c",
        "SELECT DISTINCT hash(*) AS h FROM c",
        "SELECT COUNT(DISTINCT *) AS n FROM c",
        "SELECT COUNT(*, id) AS n FROM c",
        "SELECT DISTINCT struct(c.*) AS h FROM c",
        "SELECT DISTINCT to_json(c) AS h FROM c",
        "SELECT id FROM c TABLESAMPLE (10 PERCENT)",
        "SELECT id FROM no such query",
    ],
)
def test_what_may_be_read_counts_as_read(query: str) -> None:
    assert reads(query, "y")


def test_versions_of_temporal_tables_depend_on_more_than_their_columns() -> None:
    query = "SELECT o.id, t.x FROM o JOIN c FOR SYSTEM_TIME AS OF o.event_time AS t ON t.id = o.c"
    assert reads(query, "y", temporal=True)
