"""What a database's log says of its tables, as messages: transactions, and the rows they changed.

Values of columns are text in UTF-8.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from odfbuild.values import Value as _Value


class Unchanged(Enum):
    """A long value that an update did not touch, and that the server therefore left out."""

    UNCHANGED = "unchanged"


UNCHANGED = Unchanged.UNCHANGED
Row: TypeAlias = tuple[bytes | Unchanged | None, ...]
"""Values in the order of the columns; `None` is NULL."""


class Begin(_Value):
    """A transaction begins; it committed at `lsn`. `xid` has 32 bits."""

    lsn: int
    micros: int
    xid: int


class Commit(_Value):
    """The transaction ends; `end` is where the next one can begin."""

    lsn: int
    end: int
    micros: int


class RelationColumn(_Value):
    """A column with the number of its type, and the modifier of that (-1: none)."""

    name: str
    type: int
    modifier: int


class Relation(_Value):
    """What a table looks like in the messages that follow."""

    number: int
    name: str
    columns: tuple[RelationColumn, ...]


class Insert(_Value):
    """A row that is new."""

    relation: int
    new: Row


class Update(_Value):
    """A row that changed; `old` is `None` where the server did not keep it, `whole` if all of it
    is there, and not only its key."""

    relation: int
    old: Row | None
    new: Row
    whole: bool


class Delete(_Value):
    """A row that is gone; of all its values where it is `whole`, else of its key."""

    relation: int
    old: Row
    whole: bool


class Truncate(_Value):
    """Tables whose rows are all gone."""

    relations: tuple[int, ...]


class Other(_Value):
    """A message that says nothing of rows."""


Message: TypeAlias = Begin | Commit | Relation | Insert | Update | Delete | Truncate | Other
