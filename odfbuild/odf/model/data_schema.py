"""Data types and schemas: the columns of a dataset (ODF schema, 0.37 and later)."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from odfbuild.odf.model.record import I32, U32, U64, Extra, Record, implied


class TimeUnit(Enum):
    """Unit of times, timestamps and durations (int16 on the wire)."""

    Second = 0
    Millisecond = 1
    Microsecond = 2
    Nanosecond = 3


class DataTypeBinary(Record):
    """Bytes, of one length if `fixedLength` is given."""

    KIND: ClassVar[str] = "Binary"

    fixed_length: U64 | None = None


class DataTypeBool(Record):
    """True or false."""

    KIND: ClassVar[str] = "Bool"


class DataTypeDate(Record):
    """A day of the calendar."""

    KIND: ClassVar[str] = "Date"


class DataTypeDecimal(Record):
    """Exact decimal number."""

    KIND: ClassVar[str] = "Decimal"

    precision: U32
    scale: I32


class DataTypeDuration(Record):
    """Span of time."""

    KIND: ClassVar[str] = "Duration"

    unit: TimeUnit | None = implied(default=TimeUnit.Millisecond)


class DataTypeFloat16(Record):
    """IEEE 754 half precision."""

    KIND: ClassVar[str] = "Float16"


class DataTypeFloat32(Record):
    """IEEE 754 single precision."""

    KIND: ClassVar[str] = "Float32"


class DataTypeFloat64(Record):
    """IEEE 754 double precision."""

    KIND: ClassVar[str] = "Float64"


class DataTypeInt8(Record):
    """Signed integer of 8 bits."""

    KIND: ClassVar[str] = "Int8"


class DataTypeInt16(Record):
    """Signed integer of 16 bits."""

    KIND: ClassVar[str] = "Int16"


class DataTypeInt32(Record):
    """Signed integer of 32 bits."""

    KIND: ClassVar[str] = "Int32"


class DataTypeInt64(Record):
    """Signed integer of 64 bits."""

    KIND: ClassVar[str] = "Int64"


class DataTypeUInt8(Record):
    """Unsigned integer of 8 bits."""

    KIND: ClassVar[str] = "UInt8"


class DataTypeUInt16(Record):
    """Unsigned integer of 16 bits."""

    KIND: ClassVar[str] = "UInt16"


class DataTypeUInt32(Record):
    """Unsigned integer of 32 bits."""

    KIND: ClassVar[str] = "UInt32"


class DataTypeUInt64(Record):
    """Unsigned integer of 64 bits."""

    KIND: ClassVar[str] = "UInt64"


class DataTypeList(Record):
    """Items of one type."""

    KIND: ClassVar[str] = "List"

    item_type: DataType
    fixed_length: U64 | None = None


class DataTypeMap(Record):
    """Keys to values."""

    KIND: ClassVar[str] = "Map"

    key_type: DataType
    value_type: DataType
    keys_sorted: bool | None = implied(default=False)


class DataTypeNull(Record):
    """Only null."""

    KIND: ClassVar[str] = "Null"


class DataTypeOption(Record):
    """A value or null."""

    KIND: ClassVar[str] = "Option"

    inner: DataType


class DataTypeStruct(Record):
    """Named fields."""

    KIND: ClassVar[str] = "Struct"

    fields: tuple[DataField, ...]


class DataTypeTime(Record):
    """Time of day."""

    KIND: ClassVar[str] = "Time"

    unit: TimeUnit | None = implied(default=TimeUnit.Millisecond)


class DataTypeTimestamp(Record):
    """Instant in a time zone."""

    KIND: ClassVar[str] = "Timestamp"

    unit: TimeUnit | None = implied(default=TimeUnit.Millisecond)
    timezone: str | None = implied(default="UTC")


class DataTypeString(Record):
    """UTF-8 text."""

    KIND: ClassVar[str] = "String"


DataType = (
    DataTypeBinary
    | DataTypeBool
    | DataTypeDate
    | DataTypeDecimal
    | DataTypeDuration
    | DataTypeFloat16
    | DataTypeFloat32
    | DataTypeFloat64
    | DataTypeInt8
    | DataTypeInt16
    | DataTypeInt32
    | DataTypeInt64
    | DataTypeUInt8
    | DataTypeUInt16
    | DataTypeUInt32
    | DataTypeUInt64
    | DataTypeList
    | DataTypeMap
    | DataTypeNull
    | DataTypeOption
    | DataTypeStruct
    | DataTypeTime
    | DataTypeTimestamp
    | DataTypeString
)
"""Type of a column or of a value inside one."""


class DataField(Record):
    """A named column or struct member."""

    name: str
    type: DataType
    extra: Extra | None = None


class DataSchema(Record):
    """Columns of a dataset."""

    fields: tuple[DataField, ...]
    extra: Extra | None = None
