"""Values that people write in YAML or CSV, as records with the types of a schema."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa

from odfbuild.odf.decode_errors import describe
from odfbuild.odf.operation import APPEND
from odfbuild.odf.records import OPERATIONS
from odfbuild.records.required import all_optional
from odfbuild.records.uuids import is_uuid
from odfbuild.values import Value

Row = Mapping[str, Any]


class Unfit(Value):
    """A value that cannot be one of its column: number of the record, column as written, why."""

    row: int
    column: str
    why: str


def optional_schema(schema: pa.Schema, but: Sequence[str] = ()) -> pa.Schema:
    """`schema` with columns that may be null, but those named."""
    return pa.schema(
        [
            each
            if each.name in but
            else each.with_type(all_optional(each.type)).with_nullable(True)
            for each in schema
        ],
        schema.metadata,
    )


def typed(
    rows: Sequence[Row], schema: pa.Schema, op_column: str, missing: Row
) -> tuple[pa.Table, list[Unfit]]:
    """Records of `schema`, which holds all columns of `rows`, and the values that do not fit.

    Names of columns may be written in any case. A column that a record leaves out has the value of
    `missing`, or is null.
    """
    unfit: list[Unfit] = []
    columns = []
    lowered = [{name.lower(): name for name in row} for row in rows]
    for field in schema:
        convert = _operation if field.name == op_column else _converter(field.type)
        values = []
        for number, row in enumerate(rows):
            written = lowered[number].get(field.name.lower())
            value = missing.get(field.name) if written is None else row[written]
            try:
                values.append(None if value is None else convert(value))
            except (ValueError, TypeError, ArithmeticError) as error:
                values.append(None)
                unfit.append(Unfit(number, written or field.name, str(error)))
        columns.append(_array(values, field.type))
    return pa.Table.from_arrays(columns, schema=schema), sorted(unfit, key=lambda each: each.row)


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if is_uuid(kind):
        return pa.ExtensionArray.from_storage(kind, pa.array(values, pa.binary(16)))
    return pa.array(values, kind)


def _operation(value: Any) -> int:
    if value not in OPERATIONS:
        raise ValueError(f"an operation is one of {', '.join(OPERATIONS)}; found {describe(value)}")
    return APPEND + OPERATIONS.index(value)


def _converter(kind: pa.DataType) -> Callable[[Any], Any]:
    """What makes a value of type `kind`; it raises `ValueError` for what is none."""
    t = pa.types
    for fits, convert in (
        (t.is_boolean, _boolean),
        (t.is_integer, lambda value: _checked(_integer(value), kind)),
        (t.is_floating, _float),
        (t.is_decimal, lambda value: _checked(_decimal(value), kind)),
        (lambda each: t.is_string(each) or t.is_large_string(each), _text),
        (t.is_timestamp, lambda value: _moment(value, kind)),
        (t.is_date, _date),
        (t.is_time, lambda value: time.fromisoformat(_text(value))),
        (is_uuid, lambda value: UUID(_text(value)).bytes),
        (_is_binary, lambda value: _checked(b64decode(_text(value), validate=True), kind)),
        (t.is_struct, lambda value: _struct(value, kind)),
        (t.is_map, lambda value: list(_map(value, kind))),
        (_is_list, lambda value: _list(value, kind)),
    ):
        if fits(kind):
            return convert
    return lambda value: _checked(value, kind)


def _is_binary(kind: pa.DataType) -> bool:
    t = pa.types
    return any(is_(kind) for is_ in (t.is_binary, t.is_large_binary, t.is_fixed_size_binary))


def _is_list(kind: pa.DataType) -> bool:
    t = pa.types
    return any(is_(kind) for is_ in (t.is_list, t.is_large_list, t.is_fixed_size_list))


def _checked(value: Any, kind: pa.DataType) -> Any:
    """The value, if a column of that type can hold it."""
    try:
        pa.scalar(value, kind)
    except (pa.ArrowException, OverflowError) as error:
        raise ValueError(f"{value} is no value of type {kind}: {error}") from None
    return value


def _wrong(value: Any, wanted: str) -> ValueError:
    return ValueError(f"expected {wanted}; found {describe(value)}")


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return bool(value == "true")
    raise _wrong(value, "true or false")


def _integer(value: Any) -> int:
    if isinstance(value, bool) or (isinstance(value, float) and value % 1):
        raise _wrong(value, "a whole number")
    try:
        return int(value)
    except (ValueError, TypeError):
        raise _wrong(value, "a whole number") from None


def _float(value: Any) -> float:
    if isinstance(value, bool):
        raise _wrong(value, "a number")
    try:
        return float(value)
    except (ValueError, TypeError):
        raise _wrong(value, "a number") from None


def _decimal(value: Any) -> Decimal:
    if isinstance(value, bool):
        raise _wrong(value, "a number")
    try:
        return Decimal(str(value))
    except ArithmeticError:
        raise _wrong(value, "a number") from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong(value, "text, in quotes if it looks like a number")
    return value


def _moment(value: Any, kind: pa.DataType) -> datetime:
    try:
        found = datetime.fromisoformat(_text(value))
    except ValueError:
        raise _wrong(value, "a time such as 2013-01-02T06:00:00Z") from None
    if kind.tz is None:
        return found if found.tzinfo is None else found.astimezone(UTC).replace(tzinfo=None)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def _date(value: Any) -> date:
    try:
        return datetime.fromisoformat(_text(value)).date()
    except ValueError:
        raise _wrong(value, "a date such as 2013-01-02") from None


def _nested(value: Any, form: type, wanted: str) -> Any:
    """A list or an object, which CSV has as JSON."""
    found = json.loads(value) if isinstance(value, str) else value
    if not isinstance(found, form):
        raise _wrong(value, wanted)
    return found


def _part(value: Any, kind: pa.DataType) -> Any:
    return None if value is None else _converter(kind)(value)


def _list(value: Any, kind: pa.DataType) -> list[Any]:
    return [_part(each, kind.value_type) for each in _nested(value, list, "a list")]


def _map(value: Any, kind: pa.DataType) -> Any:
    for key, item in _nested(value, dict, "an object").items():
        yield _part(key, kind.key_type), _part(item, kind.item_type)


def _struct(value: Any, kind: pa.DataType) -> dict[str, Any]:
    found = _nested(value, dict, "an object")
    unknown = sorted(set(found) - {each.name for each in kind})
    if unknown:
        raise ValueError(f"there is no field '{unknown[0]}' in {kind}")
    return {each.name: _part(found.get(each.name), each.type) for each in kind}
