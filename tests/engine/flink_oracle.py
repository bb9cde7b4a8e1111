"""Record what Flink gives for expressions over generated values: `oracles/flink.json`.

Needs a Java and `pip install apache-flink` in an environment of its own, which fits few versions of
other packages:

    PYTHONPATH=. /path/to/that/python tests/engine/flink_oracle.py > tests/engine/oracles/flink.json
"""

from __future__ import annotations

import json
import math
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from generated_values import rows

COUNT = 300
EXPRESSIONS = [
    *("LN(d)", "LN(l)", "LN(i)", "CONCAT(s, s)", "s || s", "CONCAT(s, '-', CAST(i AS STRING))"),
    *("YEAR(ts)", "QUARTER(ts)", "MONTH(dt)", "DAYOFMONTH(dt)", "EXTRACT(YEAR FROM ts)"),
    *("CAST(YEAR(dt) AS INT)", "REPLACE(s, 'a', '')", "REPLACE(s, 'ab', 'x')", "UPPER(s)"),
    *(
        "i % 1000 + 1",
        "i % 1000 * 2",
        "l + 1",
        "i + l",
        "-l",
        "i > l",
        "NULLIF(i, 1)",
        "COALESCE(l, 0)",
    ),
    *("b AND i > 0", "b OR i > 0", "NOT b", "s LIKE '%a%'", "CHAR_LENGTH(s)", "SUBSTRING(s, 2, 3)"),
    *("CAST(i AS STRING)", "CAST(dt AS STRING)", "SQRT(ABS(d))", "EXP(-ABS(d))", "TRIM(s)"),
    *("CASE WHEN b THEN l ELSE 1 END", "TIMESTAMPDIFF(DAY, ts, ts)", "ABS(l)", "`dec` + `dec`"),
]
_TYPES = {
    "IntType": "int32",
    "BigIntType": "int64",
    "DoubleType": "double",
    "BooleanType": "bool",
    "VarCharType": "string",
    "DecimalType": "decimal",
}
"""Types of Flink as Arrow calls them."""


def told(value: Any) -> Any:
    """A value as JSON holds it."""
    if isinstance(value, float) and (math.isnan(value) or math.isinf(value)):
        return str(value)
    return str(value) if isinstance(value, Decimal) else value


def main() -> None:
    """Ask Flink, and print."""
    from pyflink.table import DataTypes as T
    from pyflink.table import EnvironmentSettings, TableEnvironment

    env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    env.get_config().set("parallelism.default", "1")
    env.get_config().set("table.local-time-zone", "UTC")
    schema = T.ROW(
        [
            *(T.FIELD("id", T.BIGINT()), T.FIELD("i", T.INT()), T.FIELD("l", T.BIGINT())),
            *(T.FIELD("d", T.DOUBLE()), T.FIELD("s", T.STRING()), T.FIELD("b", T.BOOLEAN())),
            *(T.FIELD("dt", T.DATE()), T.FIELD("ts", T.TIMESTAMP(3))),
            T.FIELD("dec", T.DECIMAL(10, 2)),
        ]
    )
    epoch = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)
    values = []
    for row in rows(COUNT):
        if row["ts"] is not None:
            row["ts"] = epoch + timedelta(milliseconds=row["ts"])
        values.append(tuple(row.values()))
    env.create_temporary_view("t", env.from_elements(values, schema))
    named = ", ".join(f"{each} AS c{n}" for n, each in enumerate(EXPRESSIONS))
    found = env.sql_query(f"SELECT id, {named} FROM t")
    kinds = found.get_schema().get_field_data_types()[1:]
    with found.execute().collect() as answer:
        table = sorted(([told(value) for value in row] for row in answer), key=lambda row: row[0])
    recorded = {
        expression: {
            "type": _TYPES.get(type(kind).__name__, str(kind)),
            "values": [row[1 + n] for row in table],
        }
        for n, (expression, kind) in enumerate(zip(EXPRESSIONS, kinds, strict=True))
    }
    print(json.dumps(recorded, indent=None, ensure_ascii=False))


if __name__ == "__main__":
    main()
