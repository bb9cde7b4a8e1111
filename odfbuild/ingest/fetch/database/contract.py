"""What each kind of database offers: the interface between `fetch` and the modules of databases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from odfbuild.values import Value

if TYPE_CHECKING:
    import pyarrow as pa

CursorKind = Literal["number", "date", "time", "zoned time"]

BATCH_ROWS = 65_536
"""Rows that are in memory at once, where the library does not count bytes."""


class Column(Value):
    """A column of a table or a query.

    `expression` gives its values in SQL, in a form that Arrow holds without loss, and `type` is the
    type that they have in the file. `declared` is its type as the database calls it; `cursor` says
    how its values are compared, and is `None` if it cannot be a cursor.
    """

    name: str
    expression: str
    type: pa.DataType
    declared: str
    cursor: CursorKind | None = None


class Database(Protocol):
    """One consistent snapshot of a database: all that is asked of it shows the same moment."""

    @property
    def columns(self) -> Sequence[Column]:
        """The columns of what the address names, in its order."""

    @property
    def key(self) -> Sequence[str]:
        """The columns of the primary key; none if there is none, or it cannot be known."""

    @property
    def order_without_key(self) -> str:
        """What stands behind ORDER BY where there is no key."""

    def batches(self, sql: str) -> Iterator[pa.RecordBatch]:
        """The rows of a SELECT, a part at a time."""
