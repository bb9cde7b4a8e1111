"""Predicates in disjunctive normal form: `[[(column, operator, value), ... and], ... or]`.

They mean what SQL means: a null fulfils no comparison. The value `None` asks for nulls: `== None`
is `IS NULL`, `!= None` is `IS NOT NULL`. NaN is null, because pandas does not tell them apart.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from odfbuild.errors import TableError
from odfbuild.values import Value
from odfbuild.wording import did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

Predicates = Sequence[Sequence[tuple[str, str, Any]]]
"""As users and kartothek write them."""

_FUNCTIONS = {
    "==": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
OPERATORS = (*_FUNCTIONS, "in")


class Literal(Value):
    """One comparison. `values` are of the type of the column, one unless the operator is `in`.

    `nulls` says whether rows without a value fulfil it.
    """

    column: str
    operator: str
    values: pa.Array
    nulls: bool

    def holds(self, column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        """For each row, whether it fulfils the literal; never null."""
        import pyarrow.compute as pc

        missing = pc.is_null(column, nan_is_null=True)
        if self.operator == "in":
            found = pc.is_in(column, self.values)
        elif len(self.values):
            found = pc.fill_null(
                pc.call_function(_FUNCTIONS[self.operator], [column, self.values[0]]), False
            )
        else:
            found = pc.invert(missing) if self.operator == "!=" else missing
        if self.nulls:
            return pc.or_(found, missing)
        return pc.and_(found, pc.invert(missing))


Conjunction = tuple[Literal, ...]
Normal = tuple[Conjunction, ...]


def normal(predicates: Predicates, schema: pa.Schema) -> Normal:
    """Predicates with values of the types of their columns; `TableError` for what is no predicate.

    Values of other types are converted where nothing is lost.
    """
    conjunctions = tuple(
        tuple(_literal(literal, schema) for literal in conjunction)
        for conjunction in _sequence(predicates)
    )
    if not conjunctions or not all(conjunctions):
        raise _wrong("there is an empty list in the predicates")
    return conjunctions


def holds(predicates: Normal, columns: Mapping[str, Any] | pa.Table) -> Any:
    """For each row, whether it fulfils the predicates."""
    import pyarrow.compute as pc

    anyone = None
    for conjunction in predicates:
        every = None
        for literal in conjunction:
            found = literal.holds(columns[literal.column])
            every = found if every is None else pc.and_(every, found)
        anyone = every if anyone is None else pc.or_(anyone, every)
    return anyone


def columns_of(predicates: Normal) -> tuple[str, ...]:
    """Columns that predicates name, each once."""
    return tuple(dict.fromkeys(each.column for part in predicates for each in part))


def _sequence(value: Any) -> Sequence[Any]:
    if not isinstance(value, list | tuple) or isinstance(value, str):
        raise _wrong(f"{value!r} is not a list")
    return value


def _literal(literal: Any, schema: pa.Schema) -> Literal:
    parts = _sequence(literal)
    if len(parts) != 3 or not isinstance(parts[0], str):
        raise _wrong(f"{literal!r} is not a column, an operator and a value")
    column, operator, value = parts
    if operator not in OPERATORS:
        raise _wrong(f"the operator {operator!r} is none of {', '.join(OPERATORS)}")
    if column not in schema.names:
        raise unknown_column(column, schema.names)
    kind = schema.field(column).type
    wanted = _members(value) if operator == "in" else [value]
    given = [_converted(each, kind, column) for each in wanted if not _is_missing(each)]
    missing = len(given) < len(wanted)
    if missing and operator in ("<", "<=", ">", ">="):
        raise _wrong(f"column {column!r} is compared by {operator} with no value")
    import pyarrow as pa

    try:
        values = pa.array(given, kind)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise _unfit(value, column, kind, str(error)) from None
    return Literal(column, operator, values, nulls=missing and operator != "!=")


def _members(value: Any) -> list[Any]:
    if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
        raise _wrong(f"`in` needs a list of values, not {value!r}")
    return list(value)


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _converted(value: Any, kind: pa.DataType, column: str) -> Any:
    """A value as PyArrow takes it for the type of the column, if that changes nothing."""
    from pyarrow import types

    value = value.item() if hasattr(value, "item") else value  # of NumPy
    fits: bool
    if types.is_boolean(kind):
        fits = isinstance(value, bool)
    elif isinstance(value, bool):
        fits = False
    elif types.is_integer(kind):
        fits = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        value = int(value) if fits else value
    elif types.is_floating(kind):
        fits = isinstance(value, int | float)
        value = float(value) if fits else value
    elif types.is_timestamp(kind):
        value = _time(value)
        fits = isinstance(value, dt.datetime)
        if fits:
            value = value.astimezone(dt.UTC) if value.tzinfo else value.replace(tzinfo=dt.UTC)
            value = value if kind.tz else value.replace(tzinfo=None)
    elif types.is_date(kind):
        time = _time(value)
        whole = isinstance(time, dt.datetime) and time.time() == dt.time()
        value = time.date() if whole else time
        fits = isinstance(value, dt.date) and not isinstance(value, dt.datetime)
    elif types.is_string(kind):
        fits = isinstance(value, str)
    elif types.is_binary(kind):
        fits = isinstance(value, bytes)
    elif types.is_null(kind):
        return None
    else:
        fits = types.is_decimal(kind) or types.is_time(kind)
    if not fits:
        raise _unfit(value, column, kind)
    return value


def _time(value: Any) -> Any:
    """A time or date; a text is one as ISO 8601 has it."""
    if isinstance(value, str):
        try:
            return dt.datetime.fromisoformat(value)
        except ValueError:
            return value
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return dt.datetime.combine(value, dt.time())
    return value


def unknown_column(column: str, names: Sequence[str]) -> TableError:
    """The error for a column that the table does not have."""
    return TableError(
        f"there is no column {column!r}",
        code="E1335",
        notes=(f"the columns are {', '.join(names)}",),
        help=did_you_mean(column, names, "use one of the columns"),
    )


def _unfit(value: Any, column: str, kind: pa.DataType, why: str = "") -> TableError:
    return _wrong(f"{value!r} cannot be compared with column {column!r} of type {kind}", why)


def _wrong(what: str, why: str = "") -> TableError:
    return TableError(
        f"the predicates are wrong: {what}",
        code="E1336",
        notes=(why,) if why else (),
        help='write them as [[("column", "==", value), ...and], ...or], with one of the operators '
        + ", ".join(OPERATORS),
    )
