"""Columns of changed rows, whose values come as text, as Arrow: the same as a SELECT gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from odfbuild.ingest.fetch.database.changes.messages import RelationColumn
from odfbuild.ingest.fetch.database.contract import Column
from odfbuild.ingest.fetch.database.postgresql import column_of
from odfbuild.ingest.fetch.database.problems import unfit
from odfbuild.ingest.fetch.database.rows import fitted

_NAMES = {
    16: "bool",
    17: "bytea",
    19: "name",
    20: "int8",
    21: "int2",
    23: "int4",
    25: "text",
    26: "oid",
    700: "float4",
    701: "float8",
    1042: "bpchar",
    1043: "varchar",
    1082: "date",
    1114: "timestamp",
    1184: "timestamptz",
    1700: "numeric",
}
"""Types with a form of their own in Arrow, by their numbers, which are the same on all servers.

Others are text, also `money`: how the server spells it depends on its settings.
"""


def typed(columns: Sequence[RelationColumn]) -> list[Column]:
    """The columns as they are in the file."""
    return [
        column_of(each.name, _NAMES.get(each.type, f"type {each.type}"), each.modifier)
        for each in columns
    ]


def to_arrow(texts: Sequence[bytes | None], column: Column, shown: str) -> pa.Array:
    """Values of a column. Raises `IngestError` E0466 for one that no dataset can hold."""
    try:
        read = _READ.get(column.declared)
        if read is not None:
            values = [None if each is None else read(each) for each in texts]
            return pa.array(values, column.type)
        found = pa.array([None if each is None else each.decode() for each in texts], pa.string())
    except UnicodeDecodeError as error:
        raise unfit(shown, column.name, column.declared, f"it is no UTF-8: {error}") from None
    if column.declared == "timestamp":
        found = fitted(found, Column(column.name, "", pa.timestamp("us"), "timestamp"), shown)
    return fitted(found, column, shown)


_READ: dict[str, Callable[[bytes], object]] = {
    "bool": lambda text: text == b"t",
    "bytea": lambda text: bytes.fromhex(text[2:].decode()),
}
