"""What a table or a query looks like, for whoever writes or checks a definition of it."""

from __future__ import annotations

import re
from pathlib import Path

from odfbuild.errors import OdfbuildError
from odfbuild.ingest.fetch.database.address import Wanted, named, wanted
from odfbuild.ingest.fetch.database.connect import open_database
from odfbuild.ingest.fetch.database.contract import Column, Database
from odfbuild.ingest.secrets import remember_password, resolve_address
from odfbuild.ingest.settings import IngestSettings
from odfbuild.values import Value

_CHANGED = re.compile(
    r"(?:.*_)?(?:updated?|modified|changed?|modification|last_change|mtime)"
    r"(?:_?(?:at|on|time|date|timestamp))?",
    re.IGNORECASE,
)
"""Names of columns that hold the time of the last change of a row."""
_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")


class LookedAt(Value):
    """A table or query: `columns` with name and type in DDL, primary key, and a likely cursor."""

    columns: tuple[tuple[str, str], ...]
    key: tuple[str, ...] = ()
    cursor: str | None = None
    cursor_is_time: bool = False


def look_at_database(template: str, settings: IngestSettings, root: Path) -> LookedAt:
    """Connect to an address, in which `${{ env.X }}` is filled in.

    Raises `OdfbuildError`, without a place, because there may be no definition.
    """
    try:
        return _look(template, settings, root)
    except OdfbuildError as error:
        raise error.changed(location=None) from None


def _look(template: str, settings: IngestSettings, root: Path) -> LookedAt:
    url = resolve_address(template)
    remember_password(url)
    asked = wanted(url, template)
    with open_database(asked, settings, root, named(template)) as database:
        columns = database.columns
        if asked.changes is not None and asked.kind == "mysql":
            _examine(database, asked, named(template))
        likely = [each for each in columns if each.name == asked.cursor] or [
            each
            for each in columns
            if each.cursor in ("time", "zoned time")
            and _CHANGED.fullmatch(_WORDS.sub("_", each.name))
        ]
        cursor = likely[0] if likely else None
        return LookedAt(
            columns=tuple((each.name, _ddl(each)) for each in columns),
            key=tuple(database.key),
            cursor=cursor.name if cursor else None,
            cursor_is_time=cursor is not None and cursor.cursor in ("time", "zoned time"),
        )


def _examine(database: Database, asked: Wanted, shown: str) -> None:
    """Raise `IngestError` where the log of MariaDB does not tell changes as they are needed.

    Of PostgreSQL, that is told where the replication slot is created.
    """
    from odfbuild.ingest.fetch.database.changes.binlog.facts import check, look
    from odfbuild.ingest.fetch.database.mysql import Mysql

    assert isinstance(database, Mysql)
    check(look(database, asked, shown), asked, shown, (), None)


def _ddl(column: Column) -> str:
    """The type that a definition declares for a column."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP(6)"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if column.declared in ("numeric", "money"):
        return "DECIMAL(38, 9)"  # The database says nothing of its digits.
    return _NAMES.get(str(kind), "STRING")


_NAMES = {
    "bool": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INT",
    "int64": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "binary": "BINARY",
    "date32[day]": "DATE",
}
"""Types in DDL, by those of Arrow; others are text."""
