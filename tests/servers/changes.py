"""A PostgreSQL server that tells changes, and tables whose owner is the user of sources."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tests.servers.postgres import USER, Database, Postgres, admin, postgres


@contextlib.contextmanager
def postgres_with_changes(*settings: str) -> Iterator[Postgres]:
    with postgres("wal_level=logical", "max_replication_slots=100", *settings) as server:
        with admin(server, "postgres") as execute:
            execute(f"ALTER ROLE {USER} REPLICATION")
        yield server


def with_table(server: Postgres, *statements: str, table: str = "orders") -> Database:
    """A new database with a table whose changes can be read."""
    database = server.database()
    database.execute(
        *statements,
        f"ALTER TABLE {table} OWNER TO {USER}",
        f"ALTER TABLE {table} REPLICA IDENTITY FULL",
        f"GRANT CREATE ON DATABASE {database.name} TO {USER}",
    )
    return database


def slot_of(database: Database) -> str:
    """A name that no other database of the server uses."""
    return f"odfbuild_{database.name}"
