"""Temporal joins: which version of a record another one meets, by hand."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from odfbuild.engine.contract import Engine, InputSlices
from odfbuild.engine.spark.queries.temporal import rewrite
from odfbuild.errors import QueryError
from odfbuild.odf.model import TemporalTable, TransformSql
from odfbuild.sql.mode import Mode
from tests.engine.inputs import columns_of, sql
from tests.engine.stepwise import VOCAB, Derived, Source

PRICES = (TemporalTable(name="prices", primary_key=("symbol",)),)
TABLE_FUNCTION = """
    SELECT t.event_time, t.symbol, t.quantity * p.price AS value
    FROM trades AS t, LATERAL TABLE (prices(t.event_time)) AS p
    WHERE t.symbol = p.symbol"""
STANDARD = """
    SELECT t.event_time, t.symbol, t.quantity * p.price AS value
    FROM trades t LEFT JOIN prices FOR SYSTEM_TIME AS OF t.event_time AS p
      ON t.symbol = p.symbol"""


@pytest.fixture
def trades(tmp_path: Path) -> Source:
    fields = [pa.field("symbol", pa.string()), pa.field("quantity", pa.int64())]
    return Source(tmp_path, "trades", fields)


@pytest.fixture
def prices(tmp_path: Path) -> Source:
    fields = [pa.field("symbol", pa.string()), pa.field("price", pa.int64())]
    return Source(tmp_path, "prices", fields)


def temporal(query: str) -> TransformSql:
    return replace(sql(query), temporal_tables=PRICES)


@pytest.mark.spark
def test_a_trade_meets_the_price_of_its_time(
    spark_engine: Engine, trades: Source, prices: Source, tmp_path: Path
) -> None:
    value = Derived(spark_engine, tmp_path / "value", temporal(TABLE_FUNCTION), [trades, prices])
    prices.add([("10:00", "A", 5), ("10:30", "A", 6), ("10:00", "B", 1), ("10:00", "B", 2)])
    trades.add([("09:59", "A", 1), ("10:00", "A", 10), ("10:40", "A", 10), ("10:01", "B", 10)])
    assert value.step() == [(0, "10:00", "A", 50), (0, "10:01", "B", 20), (0, "10:40", "A", 60)]
    assert (value.mode, value.reason[:6]) == (Mode.CHANGELOG, "a join")
    prices.add([("10:35", "A", 7)])  # a price that comes late corrects what was said
    assert value.step() == [(1, "10:40", "A", 60), (0, "10:40", "A", 70)]


@pytest.mark.spark
def test_the_standard_form_joins_from_outside_too(
    spark_engine: Engine, trades: Source, prices: Source, tmp_path: Path
) -> None:
    value = Derived(spark_engine, tmp_path / "value", temporal(STANDARD), [trades, prices])
    prices.add([("10:00", "A", 5)])
    trades.add([("09:59", "A", 1), ("10:01", "A", 2)])
    assert value.step() == [(0, "09:59", "A", None), (0, "10:01", "A", 10)]


@pytest.mark.spark
def test_a_temporal_table_must_be_an_input_with_that_key(
    spark_engine: Engine, trades: Source, prices: Source
) -> None:
    given = [InputSlices(alias=s.alias, schema=s.schema, vocab=VOCAB) for s in (trades, prices)]
    for table, words in [
        (
            TemporalTable(name="price", primary_key=("symbol",)),
            "temporalTables names 'price', which is no input",
        ),
        (TemporalTable(name="prices", primary_key=("isin",)), "'prices' has no column 'isin'"),
        (
            TemporalTable(name="prices", primary_key=()),
            "'prices' has no primary key in temporalTables",
        ),
    ]:
        transform = replace(sql(TABLE_FUNCTION), temporal_tables=(table,))
        with pytest.raises(QueryError) as caught:
            columns_of(spark_engine, "value", transform, given)
        assert (caught.value.code, caught.value.message) == ("E0518", words)


def test_only_references_outside_strings_and_comments_are_rewritten() -> None:
    for same in (
        "SELECT 'prices FOR SYSTEM_TIME AS OF x' FROM t -- prices FOR SYSTEM_TIME AS OF x",
        "SELECT * FROM trades FOR SYSTEM_TIME AS OF x",
        "SELECT * FROM LATERAL TABLE (trades(x))",
        "SELECT * FROM LATERAL TABLE (prices(x), 1)",
        "SELECT * FROM prices FOR SYSTEM_TIME AS OF",
    ):
        assert rewrite(same, ["prices"]) == same
    assert rewrite("FROM t,\nPRICES FOR SYSTEM_TIME AS OF (t.x\n + 1) p", ["Prices"]) == (
        "FROM t,\nLATERAL (SELECT * EXCEPT (__odf_since, __odf_until) FROM __odf_versions_0"
        " WHERE __odf_since <= (t.x + 1) AND (__odf_until IS NULL OR (t.x + 1) < __odf_until)) p"
    )
