"""The precision of times: microseconds or milliseconds.

The format fixes milliseconds for event and system times; other columns may have more digits. A
source keeps those that it has or declares. A query is not told how many digits a time has: its
result keeps microseconds where an input does. What is committed stays as it is. Spark knows no
nanoseconds. Source: Open Data Fabric, "DDL schema", "Common data schema".
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from odfbuild.engine.contract import InputSlices

Micros = frozenset[str]
"""Names of the columns whose times keep microseconds."""


def has_micros(kind: pa.DataType) -> bool:
    """Whether times of a type, at any depth, have more digits than milliseconds."""
    if pa.types.is_timestamp(kind):
        return kind.unit in ("us", "ns")
    return any(has_micros(kind.field(number).type) for number in range(kind.num_fields))


def micros_in(schema: pa.Schema | None) -> Micros:
    """The columns of `schema` that keep microseconds."""
    return frozenset(field.name for field in schema or () if has_micros(field.type))


def micros_of_source(
    names: Iterable[str], source: pa.Schema | None, committed: pa.Schema | None, event_time: str
) -> Micros:
    """The columns `names` of a source that keep microseconds; `committed` ones as they do."""
    own, known = micros_in(source), committed.names if committed is not None else ()
    new = {name for name in names if name in own and name not in known and name != event_time}
    return micros_in(committed) | new


def micros_of_query(
    names: Iterable[str], inputs: Iterable[pa.Schema | None], committed: pa.Schema | None
) -> Micros:
    """The columns of a query's result that keep microseconds; `committed` ones as they do."""
    known = committed.names if committed is not None else ()
    new = names if any(map(micros_in, inputs)) else ()
    return micros_in(committed) | {name for name in new if name not in known}


def micros_of_step(
    names: Iterable[str], inputs: Iterable[InputSlices], committed: pa.Schema | None = None
) -> Micros:
    """The same for a step of a transformation."""
    return micros_of_query(names, (each.schema for each in inputs), committed)
