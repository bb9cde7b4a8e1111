"""How raw data is read into columns."""

from __future__ import annotations

from typing import ClassVar

from odfbuild.odf.model.data_schema import DataSchema
from odfbuild.odf.model.record import Record, implied


class ReadStepCsv(Record):
    """Comma-separated values."""

    KIND: ClassVar[str] = "Csv"

    ddl_schema: tuple[str, ...] | None = None
    separator: str | None = implied(default=",")
    encoding: str | None = implied(default="utf8")
    quote: str | None = implied(default='"')
    escape: str | None = implied(default="\\")
    header: bool | None = implied(default=False)
    infer_schema: bool | None = implied(default=False)
    null_value: str | None = implied(default="")
    date_format: str | None = implied(default="rfc3339")
    timestamp_format: str | None = implied(default="rfc3339")
    schema: DataSchema | None = None


class ReadStepGeoJson(Record):
    """One GeoJSON FeatureCollection."""

    KIND: ClassVar[str] = "GeoJson"

    ddl_schema: tuple[str, ...] | None = None
    schema: DataSchema | None = None


class ReadStepEsriShapefile(Record):
    """ESRI shapefile in a ZIP archive."""

    KIND: ClassVar[str] = "EsriShapefile"

    ddl_schema: tuple[str, ...] | None = None
    sub_path: str | None = None
    schema: DataSchema | None = None


class ReadStepParquet(Record):
    """Apache Parquet."""

    KIND: ClassVar[str] = "Parquet"

    ddl_schema: tuple[str, ...] | None = None
    schema: DataSchema | None = None


class ReadStepJson(Record):
    """JSON with an array of objects at `subPath`."""

    KIND: ClassVar[str] = "Json"

    sub_path: str | None = None
    ddl_schema: tuple[str, ...] | None = None
    date_format: str | None = implied(default="rfc3339")
    encoding: str | None = implied(default="utf8")
    timestamp_format: str | None = implied(default="rfc3339")
    schema: DataSchema | None = None


class ReadStepNdJson(Record):
    """One JSON object a line."""

    KIND: ClassVar[str] = "NdJson"

    ddl_schema: tuple[str, ...] | None = None
    date_format: str | None = implied(default="rfc3339")
    encoding: str | None = implied(default="utf8")
    timestamp_format: str | None = implied(default="rfc3339")
    schema: DataSchema | None = None


class ReadStepNdGeoJson(Record):
    """One GeoJSON feature a line."""

    KIND: ClassVar[str] = "NdGeoJson"

    ddl_schema: tuple[str, ...] | None = None
    schema: DataSchema | None = None


ReadStep = (
    ReadStepCsv
    | ReadStepGeoJson
    | ReadStepEsriShapefile
    | ReadStepParquet
    | ReadStepJson
    | ReadStepNdJson
    | ReadStepNdGeoJson
)
"""How data is read into columns."""
