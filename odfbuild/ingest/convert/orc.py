"""ORC as Parquet, a stripe at a time, with the same types."""

from __future__ import annotations

from typing import IO, Any

from odfbuild.errors import missing_extra
from odfbuild.ingest.convert.problems import unreadable, without_value


def convert_orc(source: IO[bytes], sink: IO[bytes]) -> None:
    """Write the rows of `source`. Raises `OdfbuildError`."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
        from pyarrow import orc
    except ImportError:
        raise missing_extra("duckdb", "ORC files") from None
    try:
        file = orc.ORCFile(source)
        schema = pa.schema([each.with_type(_readable(each.type)) for each in file.schema])
        stripes = (file.read_stripe(number) for number in range(file.nstripes))
        with pq.ParquetWriter(sink, schema) as writer:
            for stripe in stripes:
                writer.write_batch(_fitted(stripe, schema))
    except pa.ArrowException as error:
        raise unreadable(f"this is not a readable ORC file: {error}", "fetch it again") from None
    except OSError as error:
        raise unreadable(f"this is not a readable ORC file: {error}", "fetch it again") from None


def _fitted(stripe: Any, schema: Any) -> Any:
    import pyarrow as pa

    try:
        arrays = [
            array.cast(field.type) for array, field in zip(stripe.columns, schema, strict=True)
        ]
    except pa.ArrowInvalid as error:
        raise without_value(
            f"a value does not fit: {error}",
            "have the source write times in microseconds: datasets keep no nanoseconds",
        ) from None
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _readable(kind: Any) -> Any:
    """Times in microseconds and UTC, in which datasets keep them."""
    import pyarrow as pa

    return pa.timestamp("us", "UTC") if pa.types.is_timestamp(kind) else kind
