"""Queries that differ in the names of their inputs only are parsed once, with the same answer."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from odfbuild.odf.model import SqlQueryStep, TransformSql
from odfbuild.plan.columns.lineages import Lineages
from odfbuild.sql.columns.query_lineage import lineage_of
from odfbuild.sql.columns.shape import shape_of

COLUMNS = ("event_time", "id", "value")


def transform(query: str) -> TransformSql:
    return TransformSql(engine="spark", queries=(SqlQueryStep(query=query),))


@pytest.mark.parametrize(
    ("query", "aliases"),
    [
        ("SELECT id, value * 2 AS twice FROM `a.b`", ["a.b"]),
        (
            "SELECT l.id FROM `a.b` AS l JOIN `a.c` AS r ON l.id = r.id WHERE r.value > 1",
            ["a.b", "a.c"],
        ),
        ("SELECT `a.b`.id FROM `a.b`", ["a.b"]),
        ("SELECT id AS `a.b` FROM `a.b`", ["a.b"]),
        ("SELECT id `a.b` FROM `a.b`", ["a.b"]),
        ("SELECT 'a.b' AS source, id FROM `a.b`", ["a.b"]),
        ("SELECT id FROM source", ["source"]),
        ("SELECT id FROM `Source`", ["source"]),
        ("SELECT id, nothing FROM `a.b`", ["a.b"]),
    ],
)
def test_lineage_by_shape_is_that_of_the_query(query: str, aliases: list[str]) -> None:
    inputs = dict.fromkeys(aliases, COLUMNS)
    assert Lineages().of(transform(query), inputs) == lineage_of(transform(query), inputs)


def test_queries_of_one_shape_have_one_answer() -> None:
    told = Lineages()
    for name in ("a.b", "c.d", "x-1"):
        inputs: Mapping[str, tuple[str, ...]] = {name: COLUMNS}
        assert told.of(transform(f"SELECT id FROM `{name}`"), inputs) is not None
    assert len(told.kept) == 1
    assert shape_of(transform("SELECT id, 'x' AS source FROM source"), ["source"]) is None
