"""What is translated gives what its own engine gives, over generated values; else it is refused.

DataFusion runs beside Spark. Flink needs a Java and packages of its own: its answers are recorded
in `tests/engine/oracles/flink.json`, which `tests/engine/flink_oracle.py` writes.
"""

from __future__ import annotations

import json
import math
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.engine.contract import Engine
from odfbuild.errors import Errors, QueryError
from odfbuild.odf.model import SqlQueryStep, TransformSql
from tests.engine.generated_values import rows
from tests.engine.stepwise import Derived, Source

pytestmark = pytest.mark.spark

COUNT = 1000
COLUMNS = [
    pa.field("id", pa.int64()),
    pa.field("i", pa.int32()),
    pa.field("l", pa.int64()),
    pa.field("d", pa.float64()),
    pa.field("s", pa.string()),
    pa.field("b", pa.bool_()),
    pa.field("dt", pa.date32()),
    pa.field("ts", pa.timestamp("ms", "UTC")),
    pa.field("dec", pa.decimal128(10, 2)),
]
DATAFUSION = [
    # Logarithms of nothing and of less
    *(
        "ln(d)",
        "ln(l)",
        "ln(i)",
        "ln(abs(d))",
        "ln(nullif(d, 0.0))",
        "ln(i * 1000000000)",
        "concat(s, i * 1000000000)",
    ),
    # Numbers are of 64 bits, also where they would not fit into 32
    *("i + 1", "1 - i", "i * 1000000000", "-1", "i % 7", "i * 2 + 3", "abs(i) + 0"),
    *("CASE WHEN b THEN 1 ELSE i END", "coalesce(i, 0)", "greatest(i, 5)", "least(i, 5, l)"),
    *("nullif(i, 1)", "CASE WHEN i > 5 THEN 1 WHEN i IN (1, 2) THEN 2 END", "1.5", "d * 2"),
    # Texts without nulls
    *("concat(s, i)", "concat(s, b, dt)", "concat(s, l, '-', s)", "concat(s, s)", "s || s"),
    *("concat('<', s, '>')", "replace(s, 'a', '')", "replace(s, 'ab', 'x')", "upper(s)"),
    *("split_part(s, ' ', 1)", "length(s)", "trim(s)", "substring(s, 2, 3)", "s || i"),
    *("md5(s)", "lower(s)", "CAST(i AS TEXT)", "CAST(b AS TEXT)", "CAST(dt AS TEXT)"),
    # Times
    *("to_unixtime(ts)", "to_unixtime(ts) + 1", "extract(year from ts)", "date_trunc('month', ts)"),
    *("to_timestamp_seconds(i)", "extract(day from dt)"),
    *("date_bin(interval '15 minutes', ts)", "extract(hour from ts)", "date_trunc('week', ts)"),
    # Conversions and comparisons
    *(
        "CAST(i AS BIGINT) IS NULL",
        "CAST(i AS BIGINT)",
        "CAST(i AS DOUBLE)",
        "i > l",
        "s LIKE '%a%'",
    ),
    *("s ILIKE 'A%'", "b AND i > 0", "b OR i > 0", "NOT b", "d IS NULL", "i BETWEEN -5 AND 5"),
    *(
        "sqrt(abs(d))",
        "exp(-abs(d))",
        "power(i % 10, 2)",
        "i / 2.0",
        "d / nullif(l, 0)",
        "i / nullif(l, 0)",
        "l / nullif(i, 0)",
        "i / nullif(i, 0)",
        "(l - 7) / 7",
        "-i / 60 * 60",
        "to_unixtime(ts) / 3600",
        "CAST(l AS BIGINT) / 1000",
        "i / 2.5",
        "CAST(i AS DOUBLE) / 3",
        "d / 8",
        "dec + dec",
        "dec * 2",
    ),
]
REFUSED_BY_DATAFUSION = {
    "CAST(ts AS BIGINT)": "counts in another unit",
    "CAST(i AS TIMESTAMP)": "counts in another unit",
    "to_timestamp_seconds(d)": "keeps parts of seconds",
    "replace(s, '', 'x')": "REPLACE of an empty text",
    "replace(s, s, 'x')": "REPLACE of an empty text",
    "concat(s, d)": "spelled in another way",
    "concat(s, ts)": "spelled in another way",
    "CAST(dec AS TEXT)": "spelled in another way",
    "i + 9999999999999999999": "so many digits",
    "i / least(l, 5)": "gives whole numbers for whole numbers",
    "dec / 2": "has other digits in datafusion",
}
REFUSED_BY_FLINK = {
    "CAST(b AS STRING)": "spelled in another way",
    "REPLACE(s, '', 'x')": "REPLACE of an empty text",
    "CAST(ts AS BIGINT)": "counts in another unit",
}
REFUSED_BY_RISINGWAVE = {
    "CAST(d AS INT)": "is rounded by risingwave",
    "CAST(dec AS BIGINT)": "is rounded by risingwave",
    "ln(d)": "has no translation",
}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    made = Source(tmp_path_factory.mktemp("values"), "t", COLUMNS)
    made.add([(each["id"], *each.values()) for each in rows(COUNT)])
    return made


def result(engine: Engine, source: Source, folder: Path, name: str, sql: str) -> pa.Table:
    """What Spark gives for a query of the engine called `name`, in order of `id`."""
    transform = TransformSql(engine=name, queries=(SqlQueryStep(query=sql),))
    derived = Derived(engine, folder / "d", transform, [source])
    derived.step()
    (file,) = derived.files
    return pq.read_table(file).sort_by("id")


def query(expressions: list[str]) -> str:
    named = ", ".join(f"{each} AS c{n}" for n, each in enumerate(expressions))
    return f"SELECT event_time, id, {named} FROM t"


def plain(value: Any) -> Any:
    """A value that can be compared: floating point numbers to the last digit but one."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else float(f"{value:.14g}")
    return value


def test_datafusion_gives_the_same_values_and_types(
    spark_engine: Engine, source: Source, tmp_path: Path
) -> None:
    from datafusion import SessionContext

    context = SessionContext()
    (file, _, _) = source.blocks[0]
    assert file is not None
    context.register_record_batches("t", [pq.read_table(file.path).to_batches()])
    theirs = context.sql(query(DATAFUSION) + " ORDER BY id").to_arrow_table()
    ours = result(spark_engine, source, tmp_path, "datafusion", query(DATAFUSION))
    different: dict[str, Any] = {}
    for n, expression in enumerate(DATAFUSION):
        mine, other = ours[f"c{n}"], theirs[f"c{n}"]
        if pa.types.is_timestamp(mine.type) or pa.types.is_string_view(other.type):
            other = other.cast(mine.type)
        pairs = zip(mine.to_pylist(), other.to_pylist(), strict=True)
        wrong = [(a, b) for a, b in pairs if plain(a) != plain(b)]
        if wrong or mine.type != other.type:
            different[expression] = (str(mine.type), str(other.type), wrong[:3])
    assert different == {}


@pytest.mark.parametrize(
    ("engine", "expression", "why"),
    [
        *(("datafusion", *each) for each in REFUSED_BY_DATAFUSION.items()),
        *(("flink", *each) for each in REFUSED_BY_FLINK.items()),
        *(("risingwave", *each) for each in REFUSED_BY_RISINGWAVE.items()),
    ],
)
def test_what_has_another_meaning_is_refused(
    spark_engine: Engine, source: Source, tmp_path: Path, engine: str, expression: str, why: str
) -> None:
    with pytest.raises((QueryError, Errors)) as caught:
        result(spark_engine, source, tmp_path, engine, query([expression]))
    assert [each.code for each in caught.value.apart()] == ["E0519"]
    assert why in str(caught.value.apart()[0].message)


def test_an_average_of_decimals_is_refused_for_datafusion(
    spark_engine: Engine, source: Source, tmp_path: Path
) -> None:
    sql = "SELECT event_time, id, AVG(dec) AS c0 FROM t GROUP BY event_time, id"
    with pytest.raises((QueryError, Errors), match="is cut by datafusion and rounded by Spark"):
        result(spark_engine, source, tmp_path, "datafusion", sql)


def test_flink_gave_the_same_values(spark_engine: Engine, source: Source, tmp_path: Path) -> None:
    recorded = json.loads(
        (Path(__file__).parents[2] / "engine" / "oracles" / "flink.json").read_text()
    )
    expressions = list(recorded)
    ours = result(spark_engine, source, tmp_path, "flink", query(expressions))
    different = {}
    for n, expression in enumerate(expressions):
        mine = [_told(each) for each in ours[f"c{n}"].to_pylist()]
        # Flink takes a time of day before 1970 for one of the next day.
        early = {
            n for n, row in enumerate(rows(COUNT)) if "ts" in expression and (row["ts"] or 0) < 0
        }
        pairs = enumerate(zip(mine, recorded[expression]["values"], strict=False))
        wrong = [(a, b) for n, (a, b) in pairs if n not in early and plain(a) != plain(b)]
        if wrong or not str(ours[f"c{n}"].type).startswith(recorded[expression]["type"]):
            different[expression] = (str(ours[f"c{n}"].type), wrong[:3])
    assert different == {}


def _told(value: Any) -> Any:
    """A value as JSON holds it."""
    if isinstance(value, float) and (math.isnan(value) or math.isinf(value)):
        return str(value)
    if isinstance(value, Decimal | date):
        return str(value)
    return value
