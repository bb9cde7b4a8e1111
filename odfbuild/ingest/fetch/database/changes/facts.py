"""What a server says of a table, its replication slot and its publication, and what is wrong there.

Slot and publication have one name. Source: PostgreSQL, "Logical Decoding Concepts", "System Views".
"""

from __future__ import annotations

from collections.abc import Sequence

from odfbuild.ingest.fetch.database.address import Wanted
from odfbuild.ingest.fetch.database.changes.messages import RelationColumn
from odfbuild.ingest.fetch.database.changes.position import digest, parse_lsn
from odfbuild.ingest.fetch.database.changes.problems import unsuitable
from odfbuild.ingest.fetch.database.postgresql import Postgresql
from odfbuild.values import Value


class Table(Value):
    """A table; `name` is as SQL takes it. `keys` are those of its unique indexes that are checked
    with each row. `versions` tell by column when it, or all its values, were changed last.
    """

    number: int
    name: str
    kind: str
    persistence: str
    identity: str
    columns: tuple[RelationColumn, ...]
    versions: tuple[str, ...]
    keys: tuple[frozenset[str], ...]

    def versions_of(self, columns: Sequence[RelationColumn]) -> str:
        """A digest of the versions of some columns."""
        names = {each.name for each in columns}
        pairs = zip(self.columns, self.versions, strict=True)
        return digest(sorted(f"{each.name}\0{at}" for each, at in pairs if each.name in names))


class Slot(Value):
    """A replication slot: where it stands, and how many bytes of the log the server keeps for it.

    `fits` says that it is one of this database for `pgoutput`, `lost` that the server gave it up.
    """

    fits: bool
    active: bool
    lost: bool
    confirmed: int
    held_bytes: int


class Publication(Value):
    """A publication; `complete` says that all changes of all rows and columns are in it."""

    number: int
    complete: bool


class Facts(Value):
    """All of them at one moment; `flushed` is the end of the server's log."""

    wal_level: str
    flushed: int
    snapshot: str
    table: Table
    slot: Slot | None
    publication: Publication | None

    @property
    def mark(self) -> int:
        """What tells the publication from others that had or will have its name."""
        return self.publication.number if self.publication is not None else 0


def look(database: Postgresql, asked: Wanted) -> Facts:
    """Ask the server, in the transaction of `database`. Raises `IngestError`."""
    name = (asked.changes or "").replace("'", "''")
    ((level, flushed, snapshot),) = database.rows(
        "SELECT current_setting('wal_level'), pg_current_wal_flush_lsn()::text, "
        "pg_current_snapshot()::text"
    )
    table = _table(database, asked)
    slots = database.rows(
        "SELECT coalesce(plugin = 'pgoutput' AND database = current_database(), false), active, "
        "restart_lsn IS NULL OR coalesce(wal_status = 'lost', false), "
        "coalesce(confirmed_flush_lsn, '0/0')::text, "
        "coalesce(pg_wal_lsn_diff(pg_current_wal_flush_lsn(), restart_lsn), 0)::bigint "
        f"FROM pg_catalog.pg_replication_slots WHERE slot_name = '{name}'"
    )
    publications = database.rows(
        "SELECT p.oid::bigint, pubinsert AND pubupdate AND pubdelete AND pubtruncate AND EXISTS ("
        "SELECT FROM pg_catalog.pg_publication_rel r "
        f"WHERE r.prpubid = p.oid AND r.prrelid = {table.number} "
        # As JSON, because earlier servers have no filters and no lists of columns.
        "AND to_jsonb(r) ->> 'prqual' IS NULL AND to_jsonb(r) ->> 'prattrs' IS NULL) "
        f"FROM pg_catalog.pg_publication p WHERE pubname = '{name}'"
    )
    return Facts(
        wal_level=level,
        flushed=parse_lsn(flushed),
        snapshot=snapshot,
        table=table,
        slot=next(
            (
                Slot(fits, active, lost, parse_lsn(at), held)
                for fits, active, lost, at, held in slots
            ),
            None,
        ),
        publication=next((Publication(*each) for each in publications), None),
    )


def check_table(facts: Facts, asked: Wanted, shown: str, key: Sequence[str] | None) -> None:
    """Raise `IngestError` E0492 where changes of the table would not be whole, or not be told.

    `key` is the primary key of the merge; `None`: it is not known.
    """
    table, called = facts.table, asked.called
    if facts.wal_level != "logical":
        raise unsuitable(
            shown,
            f"the server of {shown} keeps no log for changes: `wal_level` is {facts.wal_level}",
            "run `ALTER SYSTEM SET wal_level = logical` as superuser, and restart the server",
        )
    if table.kind != "r" or table.persistence != "p":
        raise unsuitable(
            shown,
            f"{called} of {shown} is no ordinary table, of which the server tells changes",
            "read it without `changes`, with `merge: {kind: Snapshot}`; of a partitioned table, "
            "read the changes of each partition",
        )
    if table.identity != "f":
        raise unsuitable(
            shown,
            f"{called} of {shown} does not keep old rows for changes: its replica identity is "
            f"{_IDENTITIES.get(table.identity, table.identity)}, not FULL",
            f"run `ALTER TABLE {table.name} REPLICA IDENTITY FULL` as owner of the table",
        )
    if key is not None and not any(each <= {*key} for each in table.keys):
        unique = " or ".join(f"[{', '.join(sorted(each))}]" for each in table.keys)
        raise unsuitable(
            shown,
            f"`primaryKey: [{', '.join(key)}]` does not tell the rows of {called} of {shown} apart",
            f"set `merge.primaryKey` to {unique}"
            if unique
            else "give the table a primary key, which is not deferrable",
        )


_IDENTITIES = {"d": "DEFAULT", "n": "NOTHING", "i": "USING INDEX"}
_UNIQUE = """
SELECT i.indexrelid::bigint, a.attname::text, a.attnotnull
FROM pg_catalog.pg_index i JOIN pg_catalog.pg_attribute a
ON a.attrelid = i.indrelid AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])
WHERE i.indrelid = {number} AND i.indisunique AND i.indimmediate AND i.indisvalid
AND i.indpred IS NULL AND i.indexprs IS NULL
ORDER BY i.indisprimary DESC, i.indexrelid
"""
"""Deferrable keys are checked at the end of a transaction; within it they tell nothing apart."""


def _table(database: Postgresql, asked: Wanted) -> Table:
    name = asked.relation.replace("'", "''")
    ((number, full, kind, persistence, identity),) = database.rows(
        "SELECT c.oid::bigint, format('%I.%I', n.nspname, c.relname), c.relkind::text, "
        "c.relpersistence::text, c.relreplident::text FROM pg_catalog.pg_class c "
        f"JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = '{name}'::regclass"
    )
    columns = database.rows(
        "SELECT attname::text, atttypid::bigint, atttypmod::bigint, xmin::text "
        f"FROM pg_catalog.pg_attribute WHERE attrelid = {number} AND attnum > 0 "
        "AND NOT attisdropped AND attgenerated = '' ORDER BY attnum"
    )
    keys: dict[int, list[tuple[str, bool]]] = {}
    for index, column, is_filled in database.rows(_UNIQUE.format(number=number)):
        keys.setdefault(index, []).append((column, is_filled))
    return Table(
        number=number,
        name=full,
        kind=kind,
        persistence=persistence,
        identity=identity,
        columns=tuple(RelationColumn(*each[:3]) for each in columns),
        versions=tuple(each[3] for each in columns),
        keys=tuple(
            frozenset(column for column, _ in each)
            for each in keys.values()
            if all(is_filled for _, is_filled in each)
        ),
    )
