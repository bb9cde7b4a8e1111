"""How raw data is read into columns.

A read step says here what others ask about its format; how Spark reads it is said in
`engine/spark/reading/read.py`. docs/extending.md adds one.
"""

from __future__ import annotations

from typing import ClassVar

from odfbuild.odf.model.data_schema import DataSchema
from odfbuild.odf.model.record import Record, implied


class ReadFormat(Record):
    """What is asked about the format of a read step; the answers here are the safe ones.

    `ENDINGS` of file names tell it. By `MEDIA_TYPES` records can be pushed in it. `IS_LINES`: each
    record is a line, so that records can be counted without reading them. `IS_BINARY`: a file is no
    text. `IS_PACKED`: an archive is a file of it.
    """

    ENDINGS: ClassVar[tuple[str, ...]] = ()
    MEDIA_TYPES: ClassVar[tuple[str, ...]] = ()
    IS_LINES: ClassVar[bool] = False
    IS_BINARY: ClassVar[bool] = False
    IS_PACKED: ClassVar[bool] = False


class ReadStepCsv(ReadFormat):
    """Comma-separated values."""

    KIND: ClassVar[str] = "Csv"
    ENDINGS = (".csv", ".tsv")
    MEDIA_TYPES = ("text/csv",)
    IS_LINES = True

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


class ReadStepGeoJson(ReadFormat):
    """One GeoJSON FeatureCollection."""

    KIND: ClassVar[str] = "GeoJson"
    ENDINGS = (".geojson",)

    ddl_schema: tuple[str, ...] | None = None
    schema: DataSchema | None = None


class ReadStepEsriShapefile(ReadFormat):
    """ESRI shapefile in a ZIP archive."""

    KIND: ClassVar[str] = "EsriShapefile"
    IS_BINARY = IS_PACKED = True

    ddl_schema: tuple[str, ...] | None = None
    sub_path: str | None = None
    schema: DataSchema | None = None


class ReadStepParquet(ReadFormat):
    """Apache Parquet."""

    KIND: ClassVar[str] = "Parquet"
    ENDINGS = (".parquet",)
    MEDIA_TYPES = ("application/vnd.apache.parquet", "application/x-parquet")
    IS_BINARY = True

    ddl_schema: tuple[str, ...] | None = None
    schema: DataSchema | None = None


class ReadStepJson(ReadFormat):
    """JSON with an array of objects at `subPath`."""

    KIND: ClassVar[str] = "Json"
    ENDINGS = (".json",)
    MEDIA_TYPES = ("application/json",)

    sub_path: str | None = None
    ddl_schema: tuple[str, ...] | None = None
    date_format: str | None = implied(default="rfc3339")
    encoding: str | None = implied(default="utf8")
    timestamp_format: str | None = implied(default="rfc3339")
    schema: DataSchema | None = None


class ReadStepNdJson(ReadFormat):
    """One JSON object a line."""

    KIND: ClassVar[str] = "NdJson"
    ENDINGS = (".ndjson", ".jsonl")
    MEDIA_TYPES = (
        "application/ndjson",
        "application/x-ndjson",
        "application/jsonl",
        "application/x-jsonlines",
    )
    IS_LINES = True

    ddl_schema: tuple[str, ...] | None = None
    date_format: str | None = implied(default="rfc3339")
    encoding: str | None = implied(default="utf8")
    timestamp_format: str | None = implied(default="rfc3339")
    schema: DataSchema | None = None


class ReadStepNdGeoJson(ReadFormat):
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
