"""Timestamps are read as text and converted here, so that `as_time` decides what is a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odfbuild.engine.spark.frames import literal, quote
from odfbuild.engine.spark.malformed import MISFIT, as_time

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


def with_text_for_times(schema: StructType) -> StructType:
    """`schema` with text where it has timestamps; those inside of other values stay."""
    from pyspark.sql import types

    return types.StructType(
        [
            types.StructField(field.name, types.StringType()) if _is_time(field) else field
            for field in schema.fields
        ]
    )


def with_times(frame: DataFrame, schema: StructType) -> DataFrame:
    """`frame` with the timestamps of `schema`; `MISFIT` names the column of one that is none."""
    kinds = {f.name: f.dataType.simpleString() for f in schema.fields if _is_time(f)}
    if not kinds:
        return frame
    columns = [
        f"{as_time(name, 'string', kinds[name])} AS {quote(name)}" if name in kinds else quote(name)
        for name in frame.columns
    ]
    misfits = [
        f"WHEN {quote(name)} IS NOT NULL AND {as_time(name, 'string', kind)} IS NULL "
        f"THEN {literal(name)}"
        for name, kind in kinds.items()
    ]
    return frame.selectExpr(*columns, f"CASE {' '.join(misfits)} END AS {MISFIT}")


def _is_time(field: object) -> bool:
    kind: str = field.dataType.typeName()  # type: ignore[attr-defined]
    return kind.startswith("timestamp")
