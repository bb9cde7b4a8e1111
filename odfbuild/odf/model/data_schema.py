"""Data types and schemas: the columns of a dataset (ODF schema, 0.37 and later)."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from odfbuild.odf.model.record import I32, U32, U64, Extra, implied, record


class TimeUnit(Enum):
    """Unit of times, timestamps and durations (int16 on the wire)."""

    Second = 0
    Millisecond = 1
    Microsecond = 2
    Nanosecond = 3


@record
class DataTypeBinary:
    """Bytes, of one length if `fixedLength` is given."""

    KIND: ClassVar[str] = "Binary"

    fixed_length: U64 | None = None


@record
class DataTypeBool:
    """True or false."""

    KIND: ClassVar[str] = "Bool"


@record
class DataTypeDate:
    """A day of the calendar."""

    KIND: ClassVar[str] = "Date"


@record
class DataTypeDecimal:
    """Exact decimal number."""

    KIND: ClassVar[str] = "Decimal"

    precision: U32
    scale: I32


@record
class DataTypeDuration:
    """Span of time."""

    KIND: ClassVar[str] = "Duration"

    unit: TimeUnit | None = implied(default=TimeUnit.Millisecond)


@record
class DataTypeFloat16:
    """IEEE 754 half precision."""

    KIND: ClassVar[str] = "Float16"


@record
class DataTypeFloat32:
    """IEEE 754 single precision."""

    KIND: ClassVar[str] = "Float32"


@record
class DataTypeFloat64:
    """IEEE 754 double precision."""

    KIND: ClassVar[str] = "Float64"


@record
class DataTypeInt8:
    """Signed integer of 8 bits."""

    KIND: ClassVar[str] = "Int8"


@record
class DataTypeInt16:
    """Signed integer of 16 bits."""

    KIND: ClassVar[str] = "Int16"


@record
class DataTypeInt32:
    """Signed integer of 32 bits."""

    KIND: ClassVar[str] = "Int32"


@record
class DataTypeInt64:
    """Signed integer of 64 bits."""

    KIND: ClassVar[str] = "Int64"


@record
class DataTypeUInt8:
    """Unsigned integer of 8 bits."""

    KIND: ClassVar[str] = "UInt8"


@record
class DataTypeUInt16:
    """Unsigned integer of 16 bits."""

    KIND: ClassVar[str] = "UInt16"


@record
class DataTypeUInt32:
    """Unsigned integer of 32 bits."""

    KIND: ClassVar[str] = "UInt32"


@record
class DataTypeUInt64:
    """Unsigned integer of 64 bits."""

    KIND: ClassVar[str] = "UInt64"


@record
class DataTypeList:
    """Items of one type."""

    KIND: ClassVar[str] = "List"

    item_type: DataType
    fixed_length: U64 | None = None


@record
class DataTypeMap:
    """Keys to values."""

    KIND: ClassVar[str] = "Map"

    key_type: DataType
    value_type: DataType
    keys_sorted: bool | None = implied(default=False)


@record
class DataTypeNull:
    """Only null."""

    KIND: ClassVar[str] = "Null"


@record
class DataTypeOption:
    """A value or null."""

    KIND: ClassVar[str] = "Option"

    inner: DataType


@record
class DataTypeStruct:
    """Named fields."""

    KIND: ClassVar[str] = "Struct"

    fields: tuple[DataField, ...]


@record
class DataTypeTime:
    """Time of day."""

    KIND: ClassVar[str] = "Time"

    unit: TimeUnit | None = implied(default=TimeUnit.Millisecond)


@record
class DataTypeTimestamp:
    """Instant in a time zone."""

    KIND: ClassVar[str] = "Timestamp"

    unit: TimeUnit | None = implied(default=TimeUnit.Millisecond)
    timezone: str | None = implied(default="UTC")


@record
class DataTypeString:
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


@record
class DataField:
    """A named column or struct member."""

    name: str
    type: DataType
    extra: Extra | None = None


@record
class DataSchema:
    """Columns of a dataset."""

    fields: tuple[DataField, ...]
    extra: Extra | None = None
