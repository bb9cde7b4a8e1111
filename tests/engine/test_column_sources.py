"""Which columns of the inputs the columns of a result are made of, by the analysed query."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from odfbuild.engine.contract import Engine, ProvenanceTask
from odfbuild.odf.model import SqlQueryStep, TemporalTable, TransformSql
from odfbuild.sql.columns.query_lineage import lineage_of
from odfbuild.sql.lineage import Lineage, Origins
from tests.engine.stepwise import Derived, Source
from tests.engine.test_provenance import people_in, trades_in

pytestmark = pytest.mark.spark

CASES = [
    (
        "SELECT event_time, upper(who) AS who, n + 1 AS m, 7 AS c FROM trades WHERE n > 5",
        "event_time: trades.event_time=copy | who: trades.who=derivation | m: trades.n=derivation "
        "| c:",
        "trades.n=filter",
    ),
    (
        "SELECT t.event_time, p.name AS name, t.n FROM trades t JOIN people p ON t.who = p.who",
        "event_time: trades.event_time=copy | name: people.name=copy | n: trades.n=copy",
        "people.who=join trades.who=join",
    ),
    (
        "SELECT event_time, who FROM trades UNION ALL SELECT event_time, name FROM people",
        "event_time: people.event_time=copy trades.event_time=copy "
        "| who: people.name=copy trades.who=copy",
        "",
    ),
    (
        "SELECT max(event_time) AS event_time, who AS w, sum(n) AS s, count(*) AS c "
        "FROM trades GROUP BY who HAVING min(n) > 1",
        "event_time: trades.event_time=derivation | w: trades.who=copy | s: trades.n=derivation "
        "| c:",
        "trades.n=filter trades.who=grouping",
    ),
    (
        "WITH q AS (SELECT event_time, who AS w, n FROM trades) "
        "SELECT q.event_time, w, (SELECT max(name) FROM people WHERE people.who = q.w) AS x FROM q",
        "event_time: trades.event_time=copy | w: trades.who=copy | x: people.name=derivation "
        "people.who=derivation trades.who=derivation",
        "",
    ),
    (
        "SELECT DISTINCT event_time, who FROM trades",
        "event_time: trades.event_time=copy | who: trades.who=copy",
        "trades.event_time=grouping trades.who=grouping",
    ),
    (
        "SELECT event_time, who, each FROM trades LATERAL VIEW explode(sequence(1, n)) e AS each",
        "event_time: trades.event_time=copy | who: trades.who=copy | each: trades.n=derivation",
        "trades.n=join",
    ),
    (
        "SELECT event_time, sum(n) OVER (PARTITION BY who ORDER BY event_time) AS s FROM trades",
        "event_time: trades.event_time=copy "
        "| s: trades.event_time=derivation trades.n=derivation trades.who=derivation",
        "",
    ),
    (
        "SELECT event_time, n FROM trades WHERE who IN (SELECT who FROM people WHERE name <> 'x')",
        "event_time: trades.event_time=copy | n: trades.n=copy",
        "people.name=filter people.who=filter trades.who=filter",
    ),
    (
        "SELECT window.start AS event_time, who AS who, sum(n) AS s FROM trades "
        "GROUP BY window(event_time, '1 minute'), who",
        "event_time: trades.event_time=derivation | who: trades.who=copy | s: trades.n=derivation",
        "trades.event_time=filter trades.event_time=grouping trades.who=grouping",
    ),
    (
        "SELECT event_time, who FROM trades EXCEPT SELECT event_time, name FROM people",
        None,
        None,
    ),
]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> list[Source]:
    folder = tmp_path_factory.mktemp("inputs")
    return [trades_in(folder), people_in(folder)]


def lineage(engine: Engine, folder: Path, inputs: list[Source], transform: TransformSql) -> Lineage:
    text = " ".join(each.query for each in transform.queries or ())
    inputs = [each for each in inputs if each.alias in text]
    derived = Derived(engine, folder / "d", transform, inputs)
    derived.step()
    scratch = folder / "asked"
    scratch.mkdir()
    found = engine.run(
        ProvenanceTask(
            step=replace(derived.tasks[0], scratch=scratch),
            file=derived.files[0],
            schema=derived.schema or pa.schema([]),
            asked=(),
            columns=True,
        )
    )
    assert found.origins == ()
    assert found.lineage is not None
    return found.lineage


def _text(origins: Origins) -> str:
    return " ".join(sorted(f"{alias}.{column}={kind.value}" for alias, column, kind in origins))


def sql(query: str) -> TransformSql:
    return TransformSql(engine="spark", queries=(SqlQueryStep(query=query),))


@pytest.mark.parametrize(("query", "columns", "records"), CASES)
def test_columns_are_followed_through_the_analysed_query(
    spark_engine: Engine,
    tmp_path: Path,
    inputs: list[Source],
    query: str,
    columns: str | None,
    records: str | None,
) -> None:
    found = lineage(spark_engine, tmp_path, inputs, sql(query))
    if columns is not None:
        told = [f"{name}: {_text(origins)}".strip() for name, origins in found.columns.items()]
        assert " | ".join(told) == columns
        assert _text(found.records) == records
    # What plans tell from the text alone is the same, where they can.
    names = {each.alias: tuple(each.schema.names) for each in inputs}
    by_text = lineage_of(sql(query), names)
    if by_text is not None:
        assert {name: _text(each) for name, each in by_text.columns.items()} == {
            name: _text(each) for name, each in found.columns.items()
        }


def test_columns_are_followed_through_temporal_joins(
    spark_engine: Engine, tmp_path: Path, inputs: list[Source]
) -> None:
    query = sql(
        "SELECT t.event_time, t.n + 1 AS n, p.name FROM trades t "
        "JOIN people FOR SYSTEM_TIME AS OF t.event_time AS p ON t.who = p.who"
    )
    tables = (TemporalTable(name="people", primary_key=("who",)),)
    query = replace(query, temporal_tables=tables)
    found = lineage(spark_engine, tmp_path, inputs, query)
    by_text = lineage_of(query, {each.alias: tuple(each.schema.names) for each in inputs})
    assert by_text is not None
    for each in (found, by_text):
        assert {name: _text(origins) for name, origins in each.columns.items()} == {
            "event_time": "trades.event_time=copy",
            "n": "trades.n=derivation",
            "name": "people.name=copy",
        }
        deciding = {(alias, column) for alias, column, _ in each.records if column != "offset"}
        assert deciding == {
            ("trades", "event_time"),
            ("trades", "who"),
            ("people", "event_time"),
            ("people", "who"),
        }


def test_columns_are_followed_through_several_queries(
    spark_engine: Engine, tmp_path: Path, inputs: list[Source]
) -> None:
    first = SqlQueryStep(
        alias="big", query="SELECT event_time, who, n AS m FROM trades WHERE n > 5"
    )
    last = SqlQueryStep(query="SELECT event_time, m * 2 AS k FROM big WHERE who <> 'B'")
    found = lineage(
        spark_engine, tmp_path, inputs, TransformSql(engine="spark", queries=(first, last))
    )
    assert _text(found.columns["k"]) == "trades.n=derivation"
    assert _text(found.records) == "trades.n=filter trades.who=filter"
