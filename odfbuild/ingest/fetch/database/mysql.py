"""MySQL and MariaDB, by PyMySQL: values come as text, as the server spells them, and become Arrow.

One transaction, with a consistent snapshot and read only; tables of engines without transactions,
such as MyISAM, show what is written meanwhile. Times are read in UTC.
Source: MySQL Reference Manual, "START TRANSACTION", "Numeric Data Types", "Server SQL Modes".
Needs the extra `databases`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pyarrow as pa

from odfbuild.errors import missing_extra
from odfbuild.ingest.fetch.database.address import Wanted, quoted
from odfbuild.ingest.fetch.database.contract import Column, CursorKind
from odfbuild.ingest.fetch.database.problems import not_connected, refused
from odfbuild.ingest.settings import IngestSettings

_PORT = 3306
_BATCH_ROWS = 20_000
"""Rows of Python's objects that are in memory at once."""
_MOST_DIGITS = 38
_SESSION = (
    # Names stand in double quotes, as everywhere else here; what does not fit is an error.
    "SET SESSION sql_mode = 'ANSI_QUOTES,STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'",
    "SET SESSION time_zone = '+00:00'",
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
)
_LOGIN = {1044, 1045, 1049, 1251, 1698, 2054, 2059, 4151}
_CODES: Mapping[int, str] = {
    1146: "42P01",
    1049: "3D000",
    1054: "42703",
    1142: "42501",
    1143: "42501",
    1370: "42501",
    1205: "55P03",
    1317: "57014",
    1969: "57014",
    3024: "57014",
}
"""Errors of the server as the codes of SQLSTATE that `problems` understands."""
_OTHER = "HY000"
_LOST = {2006, 2013, 2014, 2027, 2055, 4031}

_UTC = pa.timestamp("us", "UTC")
_SIGNED = {
    "TINY": pa.int8(),
    "SHORT": pa.int16(),
    "INT24": pa.int32(),
    "LONG": pa.int32(),
    "LONGLONG": pa.int64(),
    "YEAR": pa.int16(),
}
_UNSIGNED = {
    "TINY": pa.int16(),
    "SHORT": pa.int32(),
    "INT24": pa.int32(),
    "LONG": pa.int64(),
    "LONGLONG": pa.decimal128(20, 0),
    "YEAR": pa.int16(),
}
_TIMES: Mapping[str, tuple[pa.DataType, CursorKind]] = {
    "DATE": (pa.date32(), "date"),
    "NEWDATE": (pa.date32(), "date"),
    "DATETIME": (_UTC, "time"),
    "TIMESTAMP": (_UTC, "time"),
}


@contextmanager
def open_mysql(asked: Wanted, settings: IngestSettings, shown: str) -> Iterator[Mysql]:
    """Connect and begin a snapshot. Raises `OdfbuildError`."""
    try:
        import pymysql
        from pymysql.converters import encoders
    except ImportError:
        raise missing_extra("databases", "sources in MySQL") from None
    try:
        connection = pymysql.connect(
            **login_of(asked, settings),
            conv=dict(encoders),  # and none for results, which stay text
            autocommit=False,
        )
    except (pymysql.Error, OSError) as error:
        code, said = _said(error)
        raise not_connected(shown, said, answered=code in _LOGIN) from None
    with closing(connection):
        found = Mysql(connection, asked, shown)
        found.begin(settings)
        yield found
        with suppress(pymysql.Error):
            connection.rollback()


def login_of(asked: Wanted, settings: IngestSettings) -> dict[str, Any]:
    """What PyMySQL connects with: the parts of an address, and parameters of MySQL's own ones."""
    parts = urlsplit(asked.place)
    given = dict(parse_qsl(parts.query))
    login: dict[str, Any] = {
        "host": parts.hostname or "127.0.0.1",
        "port": parts.port or _PORT,
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "database": unquote(parts.path.strip("/")) or None,
        "connect_timeout": max(2, round(settings.connect_seconds)),
        "read_timeout": max(2, round(settings.total_seconds)),
        "charset": "utf8mb4",
    }
    if "socket" in given:
        login["unix_socket"] = given["socket"]
    mode = given.get("ssl-mode", "").upper()
    if mode in ("", "DISABLED"):
        return {**login, "ssl_disabled": True}
    for name in ("ca", "cert", "key"):
        if f"ssl-{name}" in given:
            login[f"ssl_{name}"] = given[f"ssl-{name}"]
    return {
        **login,
        "ssl": {} if mode == "REQUIRED" and "ssl_ca" not in login else None,
        "ssl_verify_cert": mode in ("VERIFY_CA", "VERIFY_IDENTITY"),
        "ssl_verify_identity": mode == "VERIFY_IDENTITY",
    }


class Mysql:
    """A transaction that shows one moment."""

    def __init__(self, connection: Any, asked: Wanted, shown: str) -> None:
        self._connection = connection
        self._asked = asked
        self._shown = shown

    def begin(self, settings: IngestSettings) -> None:
        """Begin the snapshot, and bound how long statements run and wait for locks."""
        wait = max(1, round(settings.idle_seconds))
        most = max(1, round(settings.total_seconds))
        limit = (
            f"max_statement_time = {most}" if self.is_mariadb else f"max_execution_time = {most}000"
        )
        for sql in (
            *_SESSION,
            f"SET SESSION lock_wait_timeout = {wait}",
            f"SET SESSION {limit}",
            "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
        ):
            self.rows(sql)

    @cached_property
    def columns(self) -> Sequence[Column]:
        """The columns, by the types that the server tells."""
        with self._read(f"SELECT * FROM {self._asked.relation} LIMIT 0") as cursor:
            return [_column(each) for each in cursor._result.fields]

    @cached_property
    def key(self) -> Sequence[str]:
        """The columns of the primary key; a query has none."""
        if self._asked.query is not None:
            return ()
        *schema, table = map(text_literal, self._asked.table)
        sql = (
            "SELECT column_name FROM information_schema.key_column_usage "
            f"WHERE table_schema = {schema[0] if schema else 'DATABASE()'} "
            f"AND table_name = {table} AND constraint_name = 'PRIMARY' ORDER BY ordinal_position"
        )
        return [name for (name,) in self.rows(sql)]

    @property
    def is_mariadb(self) -> bool:
        """Whether it is a server of MariaDB."""
        return "MariaDB" in self._connection.get_server_info()

    @property
    def order_without_key(self) -> str:
        """All columns by their bytes: collations take different texts for the same."""
        return ", ".join(f"CAST({quoted(each.name)} AS BINARY)" for each in self.columns)

    def batches(self, sql: str) -> Iterator[pa.RecordBatch]:
        """The rows of a SELECT, some thousands at a time."""
        with self._read(sql) as cursor:
            names = [each[0] for each in cursor.description]
            kinds = [_column(each).type for each in cursor._result.fields]
            while rows := self._more(cursor):
                arrays = [
                    as_array(values, kind)
                    for values, kind in zip(zip(*rows, strict=True), kinds, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, names=names)

    def _more(self, cursor: Any) -> Sequence[Sequence[Any]]:
        import pymysql

        try:
            found: Sequence[Sequence[Any]] = cursor.fetchmany(_BATCH_ROWS)
        except (pymysql.Error, OSError) as error:
            raise self.refused(error) from None
        return found

    @contextmanager
    def _read(self, sql: str) -> Iterator[Any]:
        import pymysql
        from pymysql.cursors import SSCursor

        cursor = SSCursor(self._connection)
        try:
            try:
                cursor.execute(sql)
            except (pymysql.Error, OSError) as error:
                raise self.refused(error) from None
            yield cursor
        finally:
            with suppress(pymysql.Error, OSError):
                cursor.close()  # reads the rest of the rows, if any

    def rows(self, sql: str) -> Sequence[Sequence[Any]]:
        """The few rows of a statement, whose values are text."""
        import pymysql

        try:
            with self._connection.cursor() as cursor:
                cursor.execute(sql)
                return list(cursor.fetchall())
        except (pymysql.Error, OSError) as error:
            raise self.refused(error) from None

    def refused(self, error: Exception) -> Exception:
        """What an error of the library is for people."""
        code, said = _said(error)
        state = None if code is None or code in _LOST else _CODES.get(code, _OTHER)
        return refused(self._shown, self._asked.called, said, state)


def as_array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Values as they came: bytes, text, or times if all of them are such."""
    if pa.types.is_binary(kind):
        return pa.array(values, kind)
    texts = pa.array(values, pa.string())
    if pa.types.is_timestamp(kind):
        with suppress(pa.ArrowInvalid):
            return texts.cast(pa.timestamp(kind.unit))
    return texts


def _said(error: Exception) -> tuple[int | None, str]:
    """The number of an error and what the server says, or the library."""
    if len(error.args) == 2 and isinstance(error.args[0], int):
        return error.args[0], str(error.args[1])
    return None, str(error)


def text_literal(name: str) -> str:
    """A text in SQL."""
    return "'" + name.replace("\\", "\\\\").replace("'", "''") + "'"


def kind_of(
    code: int, *, is_unsigned: bool, is_binary: bool, digits: int, places: int
) -> tuple[pa.DataType, str]:
    """The type of a column in the file, and what the database calls it; `code` is of the protocol.

    `digits` and `places` are those of a decimal.
    """
    name = _name_of(code)
    spelled = name.lower() + (" unsigned" if is_unsigned else "")
    if name in _SIGNED:
        return (_UNSIGNED if is_unsigned else _SIGNED)[name], spelled
    if name in _TIMES:
        return _TIMES[name][0], spelled
    if name in ("FLOAT", "DOUBLE"):
        return pa.float64(), spelled
    if name in ("NEWDECIMAL", "DECIMAL"):
        # Text keeps all digits where a decimal does not hold them.
        fits = 0 < digits <= _MOST_DIGITS and places <= digits
        kind = pa.decimal128(digits, places) if fits else pa.string()
        return kind, f"decimal({digits}, {places})"
    if name == "BIT":
        return pa.decimal128(20, 0), spelled
    if is_binary and name not in ("TIME", "JSON", "GEOMETRY"):
        return pa.binary(), "binary"
    return pa.string(), spelled


def _name_of(code: int) -> str:
    from pymysql.constants import FIELD_TYPE

    kinds = {number: name for name, number in vars(FIELD_TYPE).items() if isinstance(number, int)}
    kinds |= {FIELD_TYPE.TINY: "TINY"} | _NAMES_IN_LOG
    return str(kinds.get(code, "unknown"))


_NAMES_IN_LOG = {17: "TIMESTAMP", 18: "DATETIME", 19: "TIME"}
"""Types that only the binary log has, for values with fractions of seconds."""


def _column(field: Any) -> Column:
    """What a column of a result is; `field` is its description in the protocol."""
    from pymysql.constants import FLAG

    declared = _name_of(field.type_code)
    is_unsigned = bool(field.flags & FLAG.UNSIGNED)
    kind, spelled = kind_of(
        field.type_code,
        is_unsigned=is_unsigned,
        is_binary=field.charsetnr == _BYTES,
        digits=field.length - (1 if field.scale else 0) - (0 if is_unsigned else 1),
        places=field.scale,
    )
    expression = _EXPRESSIONS.get(declared, "{}").format(quoted(field.name))
    cursor = _TIMES[declared][1] if declared in _TIMES else None
    if declared in _SIGNED and not pa.types.is_decimal(kind):
        cursor = "number"
    return Column(field.name, expression, kind, spelled, cursor)


_BYTES = 63
"""The character set of bytes."""
_EXPRESSIONS = {
    # The text of a FLOAT has six digits; that of a DOUBLE has all.
    "FLOAT": "CAST({} AS DOUBLE)",
    "DOUBLE": "CAST({} AS DOUBLE)",
    "BIT": "CAST({} AS UNSIGNED)",
    "GEOMETRY": "ST_AsText({})",
}
