"""Types of columns in Delta and Iceberg, where those of datasets have no equal there.

Values stay the same, and come back as they were: an unsigned integer is kept in a signed one that
holds all its values, the largest in a decimal; what has no type at all becomes text without values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from odfbuild.errors import TableError

_WIDER: Mapping[pa.DataType, pa.DataType] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.null(): pa.string(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
}
_INTEGERS = {32: pa.int32(), 64: pa.int64()}
_DIGITS = 38


@dataclass(frozen=True, slots=True)
class OpenTypes:
    """What a format, called `title`, makes of types.

    `smallest` is its smallest integer; `has_time` tells whether it has times of a day, which are
    integers in the unit of the column where it has none.
    """

    title: str
    smallest: pa.DataType
    has_time: bool

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """The columns as the format has them, without metadata; each may hold nulls.

        `TableError` E1360 for a type that it cannot keep, with all such columns.
        """
        fields, wrong = [], []
        for each in schema:
            try:
                fields.append(pa.field(each.name, self._type(each.type)))
            except pa.ArrowNotImplementedError as error:
                wrong.append(f"column '{each.name}' has the type {error}")
        if wrong:
            raise TableError(
                f"{self.title} has no type for {len(wrong)} of the columns",
                code="E1360",
                notes=tuple(wrong),
                help="publish in the format parquet, or publish a derivative dataset that casts "
                "these columns",
            )
        return pa.schema(fields)

    def _type(self, kind: pa.DataType) -> pa.DataType:
        types = pa.types
        if kind in _WIDER:
            return self._at_least(_WIDER[kind])
        if isinstance(kind, pa.BaseExtensionType):
            return self._type(kind.storage_type)
        if types.is_timestamp(kind):
            return pa.timestamp("us", None if kind.tz is None else "UTC")
        if types.is_time(kind):
            return pa.time64("us") if self.has_time else _INTEGERS[kind.bit_width]
        if types.is_fixed_size_binary(kind):
            return pa.binary()
        if types.is_dictionary(kind):
            return self._type(kind.value_type)
        if types.is_decimal(kind) and 0 <= kind.scale <= kind.precision <= _DIGITS:
            return pa.decimal128(kind.precision, kind.scale)
        if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
            return pa.list_(self._field(kind.value_field))
        if types.is_struct(kind):
            return pa.struct([self._field(each) for each in kind])
        if types.is_map(kind):
            return pa.map_(self._type(kind.key_type), self._field(kind.item_field))
        if types.is_integer(kind):
            return self._at_least(kind)
        if kind in (pa.bool_(), pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32()):
            return kind
        raise pa.ArrowNotImplementedError(str(kind))

    def _field(self, field: pa.Field) -> pa.Field:
        if field.type == pa.null():
            raise pa.ArrowNotImplementedError("null within another")
        return field.with_type(self._type(field.type)).remove_metadata()

    def _at_least(self, kind: pa.DataType) -> pa.DataType:
        narrow = pa.types.is_integer(kind) and kind.bit_width < self.smallest.bit_width
        return self.smallest if narrow else kind


DELTA = OpenTypes("Delta", smallest=pa.int8(), has_time=False)
ICEBERG = OpenTypes("Iceberg", smallest=pa.int32(), has_time=True)


def converted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The same records in other types, in either direction; columns are found by name.

    `TableError` E1361 for a value that would become another one.
    """
    columns = []
    for field in schema:
        try:
            columns.append(_cast(batch.column(field.name), field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise TableError(
                f"column '{field.name}' holds a value that the table cannot keep: {error}",
                code="E1361",
                help="publish in the format parquet, or publish a derivative dataset that rounds "
                "the values of this column",
            ) from None
    return pa.record_batch(columns, schema=schema)


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if array.type == kind:
        return array
    if pa.types.is_null(kind):
        return pa.nulls(len(array))
    if isinstance(array, pa.ExtensionArray):
        return _cast(array.storage, kind)
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, _cast(array, kind.storage_type))
    return array.cast(kind)
