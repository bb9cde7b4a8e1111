"""What a statement in the binary log means for the changes of a table. Pure.

With row format the log has rows of tables, and statements only where they change no rows. Whatever
may have changed the table without its rows being told is `unclear`: then the table is read as a
whole, which is right in any case. Source: MariaDB documentation, "Binary Log Formats".
"""

from __future__ import annotations

import re
from typing import Literal

Meaning = Literal["within", "commit", "unclear"]
"""`within` a transaction, the `commit` of one, which may be all of it, or `unclear`."""

_COMMENT = re.compile(r"(?:\s|--[ \t][^\n]*(?:\n|$)|/\*(?![!M]).*?\*/)+", re.DOTALL)
_WORD = re.compile(r"[A-Za-z]+")
_WITHIN = {"BEGIN", "START", "SAVEPOINT", "RELEASE"}
_OF_OTHERS = frozenset(
    {
        *("CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE", "GRANT", "REVOKE"),
        *("ANALYZE", "OPTIMIZE", "REPAIR", "FLUSH"),
    }
)
"""Statements that change the table only if they name it."""


def meaning_of(statement: str, table: str) -> Meaning:
    """What a statement means for changes of `table`, which is its name without the database."""
    begin = _COMMENT.match(statement)
    found = _WORD.match(statement, begin.end() if begin else 0)
    word = found[0].upper() if found else ""
    if word in _WITHIN:
        return "within"
    if word == "COMMIT":
        return "commit"
    if word in _OF_OTHERS and not names(statement, table):
        return "commit"
    return "unclear"


def names(statement: str, table: str) -> bool:
    """Whether a name stands in a statement as a word, in any case of letters."""
    spelled = "|".join(re.escape(each) for each in (table, table.replace("`", "``")))
    return re.search(rf"(?<!\w)(?:{spelled})(?!\w)", statement, re.IGNORECASE) is not None
