"""What a server of MariaDB says of its binary log and of a table, and what is wrong there.

Source: MariaDB documentation, "Binary Log", "START TRANSACTION", "Foreign Keys" (cascades are not
in the log), "Information Schema".
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from odfbuild.ingest.fetch.database.address import Wanted
from odfbuild.ingest.fetch.database.changes.binlog.position import base_of, place_in
from odfbuild.ingest.fetch.database.changes.problems import unsuitable
from odfbuild.ingest.fetch.database.mysql import Mysql, text_literal
from odfbuild.values import Value

_SETTINGS = {
    "log_bin": "1",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "binlog_row_metadata": "FULL",
    "log_bin_compress": "0",
}
"""Settings of the server with which the log has all values of all rows."""
_TYPES = frozenset(
    {
        *("tinyint", "smallint", "mediumint", "int", "bigint", "year", "bit"),
        *("float", "double", "decimal", "date", "datetime", "timestamp", "time"),
        *("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set", "json"),
        *("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"),
    }
)
"""Types whose values are the same in the log and in a SELECT."""


_CHARACTERS = "'utf8mb4', 'utf8mb3', 'utf8', 'latin1', 'ascii', 'binary'"
_ENGINE = "InnoDB"
_CASCADE = re.compile(
    r"""^\s+CONSTRAINT ["`](.*)["`] FOREIGN KEY .* ON (?:DELETE|UPDATE) (?:CASCADE|SET)\b""",
    re.MULTILINE,
)


class Facts(Value):
    """A table, and where the log stood when the transaction began.

    `base` and `place` are of the log, `settings` those of the server. `engine` is that of an
    ordinary table, else what kind of table it is. `kinds` are the types of columns, `keys` the
    columns of unique indexes without NULL, `cascades` foreign keys by which rows change that the
    log does not tell.
    """

    base: str
    place: int
    settings: dict[str, str]
    schema: str
    table: str
    engine: str
    kinds: dict[str, str]
    keys: tuple[frozenset[str], ...]
    cascades: tuple[str, ...]


def look(database: Mysql, asked: Wanted, shown: str) -> Facts:
    """Ask the server, in the transaction of `database`. Raises `IngestError`."""
    if not database.is_mariadb:
        raise unsuitable(
            shown,
            f"the server of {shown} is not MariaDB, whose binary log tells changes",
            "leave `changes` out, and use `merge: {kind: Snapshot}`",
        )
    names = ", ".join(f"@@GLOBAL.{each}" for each in _SETTINGS)
    (values,) = database.rows(f"SELECT {names}")
    settings = dict(zip(_SETTINGS, map(str, values), strict=True))
    if settings["log_bin"] != "1":
        raise _wrong_setting(shown, "log_bin", settings)
    status = {e[0]: e[1] for e in database.rows("SHOW STATUS LIKE 'binlog_snapshot_%'")}
    file, offset = status["Binlog_snapshot_file"], int(status["Binlog_snapshot_position"])
    *schemas, name = map(text_literal, asked.table)
    schema = schemas[0] if schemas else "DATABASE()"
    where = f"table_schema = {schema} AND table_name = {name}"
    database.rows(f"SELECT 1 FROM {asked.relation} LIMIT 0")  # tells if it is not there
    ((own_schema, own_name, engine),) = database.rows(
        "SELECT table_schema, table_name, "
        "CASE WHEN table_type = 'BASE TABLE' THEN engine ELSE lower(table_type) END "
        f"FROM information_schema.tables WHERE {where}"
    )
    kinds = database.rows(
        "SELECT column_name, CASE WHEN is_generated = 'ALWAYS' THEN 'generated' "
        f"WHEN character_set_name NOT IN ({_CHARACTERS}) "
        "THEN concat(data_type, ' in ', character_set_name) ELSE data_type END "
        f"FROM information_schema.columns WHERE {where} ORDER BY ordinal_position"
    )
    keys: dict[str, set[str]] = {}
    unfit: set[str] = set()
    for index, column, is_nullable, part in database.rows(
        "SELECT index_name, column_name, nullable, coalesce(sub_part, '') "
        f"FROM information_schema.statistics WHERE {where} AND non_unique = 0 "
        "ORDER BY index_name = 'PRIMARY' DESC, index_name, seq_in_index"
    ):
        keys.setdefault(index, set()).add(column)
        if is_nullable == "YES" or part:
            unfit.add(index)
    # Users who may only read are not shown foreign keys in the information schema.
    created = (
        database.rows(f"SHOW CREATE TABLE {asked.relation}")[0][1] if engine == _ENGINE else ""
    )
    return Facts(
        base=base_of(file),
        place=place_in(file, offset),
        settings=settings,
        schema=own_schema,
        table=own_name,
        engine=engine,
        kinds={each[0]: each[1] for each in kinds},
        keys=tuple(frozenset(keys[each]) for each in keys if each not in unfit),
        cascades=tuple(_CASCADE.findall(created)),
    )


def check(
    facts: Facts, asked: Wanted, shown: str, names: Sequence[str], key: Sequence[str] | None
) -> None:
    """Raise `IngestError` E0492 where the log does not tell all changes of the columns `names`.

    `key` is the primary key of the merge; `None`: it is not known.
    """
    called = asked.called
    for name, wanted in _SETTINGS.items():
        if facts.settings[name] != wanted:
            raise _wrong_setting(shown, name, facts.settings)
    if facts.engine != _ENGINE:
        raise unsuitable(
            shown,
            f"{called} of {shown} is no ordinary table of InnoDB, but {facts.engine}",
            "use such a table, or leave `changes` out, and use `merge: {kind: Snapshot}`",
        )
    if facts.cascades:
        raise unsuitable(
            shown,
            f"rows of {called} of {shown} are changed by the foreign key '{facts.cascades[0]}', "
            "and the binary log does not tell that",
            "define the key without CASCADE and SET NULL, or leave `changes` out, and use "
            "`merge: {kind: Snapshot}`",
        )
    for name in names:
        if facts.kinds.get(name) not in _TYPES:
            kind = facts.kinds.get(name, "unknown")
            raise unsuitable(
                shown,
                f"column '{name}' of {called} of {shown} is {kind}, whose values in the binary log "
                "cannot be read",
                "declare the other columns in `read.schema`",
            )
    if not facts.keys:
        raise unsuitable(
            shown,
            f"{called} of {shown} has no key, by which changes would tell its rows apart",
            "give the table a primary key",
        )
    if key is not None and not any(each <= {*key} for each in facts.keys):
        unique = " or ".join(f"[{', '.join(sorted(each))}]" for each in facts.keys)
        raise unsuitable(
            shown,
            f"`primaryKey: [{', '.join(key)}]` does not tell the rows of {called} of {shown} apart",
            f"set `merge.primaryKey` to {unique}",
        )


def _wrong_setting(shown: str, name: str, settings: dict[str, str]) -> Exception:
    shown_value = {"0": "OFF", "1": "ON"}.get(settings[name], settings[name])
    wanted = {"0": "OFF", "1": "ON"}.get(_SETTINGS[name], _SETTINGS[name])
    return unsuitable(
        shown,
        f"the binary log of {shown} does not have all changes: `{name}` is {shown_value}",
        f"set `{name}={wanted}` for the server, and restart it",
    )
