"""Text of a source as columns of Arrow, whole columns at once, where values have one meaning only.

The same forms as those of `plain_records`, which reads few records: whatever has another form,
of which Spark may make something else, is `Unclear`.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from odfbuild.engine.spark.reading.plain_records import json_values
from odfbuild.engine.spark.reading.plain_text import Unclear, plain_lines, separator_of
from odfbuild.odf.model import ReadStep

_BLOCK = 16 << 20
"""Bytes of text that are columns at a time."""
_MICROS, _MICROS_UTC = pa.timestamp("us"), pa.timestamp("us", "UTC")
_SPACE = r"^[\t ]|[\t ]$"
_WHOLE = r"^(0|-?[1-9]\d{0,17})$"
_FRACTION = r"^-?(0|[1-9]\d{0,6})(\.\d{1,6})?$"
_ZERO = r"^-[0.]*$"
_DAY = r"^(1[6-9]|2\d)\d\d-\d\d-\d\d$"
_TIME = r"^(1[6-9]|2\d)\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{3})?Z?$"


def columns_of(text: bytes, read: ReadStep, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The records of whole lines of text, without a header, in their order.

    Instants have microseconds, as in results of Spark.
    """
    separator, start = separator_of(read), 0
    text = plain_lines(text, separator)
    kinds = [_MICROS_UTC if pa.types.is_timestamp(each.type) else each.type for each in columns]
    schema = pa.schema([pa.field(n, k) for n, k in zip(columns.names, kinds, strict=True)])
    while start < len(text):
        end = text.find(b"\n", start + _BLOCK)
        end = len(text) if end < 0 else end + 1
        block = text[start:end]
        if separator is None:
            table = _of_json(block, columns, schema)
        else:
            table = _of_csv(block, separator, columns, schema)
        for field, values in zip(columns, table.columns, strict=True):
            if values.null_count and not field.nullable:
                raise Unclear(f"nothing in column '{field.name}', which is required")
        yield from table.to_batches()
        start = end


def _of_json(text: bytes, columns: pa.Schema, schema: pa.Schema) -> pa.Table:
    try:
        values = json_values(text.decode(), columns)
    except (ValueError, OverflowError, RecursionError):
        raise Unclear("a value of JSON") from None
    found = [pa.array(each, field.type) for each, field in zip(values, schema, strict=True)]
    return pa.table(found, schema)


def _of_csv(text: bytes, separator: str, columns: pa.Schema, schema: pa.Schema) -> pa.Table:
    try:
        found = pcsv.read_csv(
            io.BytesIO(text),
            pcsv.ReadOptions(column_names=columns.names, use_threads=False, block_size=1 << 20),
            pcsv.ParseOptions(delimiter=separator, ignore_empty_lines=False),
            pcsv.ConvertOptions(
                column_types=dict.fromkeys(columns.names, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
    except pa.ArrowInvalid:
        raise Unclear("a line with another number of values") from None
    empty = None
    for values in found.columns:
        empty = pc.is_null(values) if empty is None else pc.and_(empty, pc.is_null(values))
    if empty is not None and pc.any(empty).as_py():
        raise Unclear("a line without values")
    converted = []
    for field, wanted in zip(columns, schema, strict=True):
        try:
            converted.append(_converted(found[field.name], wanted.type))
        except (Unclear, pa.ArrowInvalid):
            raise Unclear(f"a value in column '{field.name}'") from None
    return pa.table(converted, schema)


def _converted(texts: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    t = pa.types
    if t.is_string(kind):
        return _without(_SPACE, texts)
    if t.is_boolean(kind):
        return _in(r"^(true|false)$", texts).cast(kind)
    if t.is_signed_integer(kind):
        return _in(_WHOLE, texts).cast(kind)
    if t.is_float64(kind):
        return _without(_ZERO, _in(_FRACTION, texts)).cast(kind)
    if t.is_date32(kind):
        return _in(_DAY, texts).cast(kind)
    if t.is_timestamp(kind):
        local = pc.replace_substring_regex(_in(_TIME, texts), "Z$", "").cast(_MICROS)
        return pc.assume_timezone(local, "UTC")
    if t.is_decimal128(kind) and kind.scale >= 0 and kind.precision > kind.scale:
        behind = rf"(\.\d{{1,{kind.scale}}})?" if kind.scale else ""
        most = kind.precision - kind.scale - 1
        return _in(rf"^-?(0|[1-9]\d{{0,{most}}}){behind}$", texts).cast(kind)
    raise Unclear(str(kind))


def _in(form: str, texts: Any) -> Any:
    if not pc.all(pc.match_substring_regex(texts, form), min_count=0).as_py():
        raise Unclear(form)
    return texts


def _without(form: str, texts: Any) -> Any:
    if pc.any(pc.match_substring_regex(texts, form), min_count=0).as_py():
        raise Unclear(form)
    return texts
