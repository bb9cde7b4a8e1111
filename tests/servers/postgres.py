"""A PostgreSQL server of Debian's packages, which refuses to run as root."""

import contextlib
import itertools
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from examples.shop.postgres_server import Postgres as Server
from examples.shop.postgres_server import programs
from tests.servers.programs import free_port, program

USER, PASSWORD = "reader", "s3cret-of-reader"
_numbers = itertools.count(1)


class Postgres(Server):
    """A server of tests."""

    def database(self, encoding: str = "UTF8") -> "Database":
        """A new database, empty."""
        name = f"shop{next(_numbers)}"
        locale = "C.UTF-8" if encoding == "UTF8" else "C"
        with admin(self, "postgres") as execute:
            execute(
                f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LOCALE '{locale}'"
            )
        return Database(self, name)


@dataclass(frozen=True)
class Database:
    server: Postgres
    name: str

    def url(self, rest: str = "", *, password: str = PASSWORD) -> str:
        return f"postgresql://{USER}:{password}@127.0.0.1:{self.server.port}/{self.name}{rest}"

    def execute(self, *statements: str) -> None:
        """Each statement is a transaction."""
        with admin(self.server, self.name) as execute:
            for each in statements:
                execute(each)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with contextlib.closing(connect(self)) as connection, connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())


def connect(database: Database) -> Any:
    """A connection of the owner, in a transaction that is committed when it says so."""
    from adbc_driver_postgresql.dbapi import connect

    port = database.server.port
    return connect(f"postgresql://postgres@127.0.0.1:{port}/{database.name}", autocommit=False)


@contextlib.contextmanager
def admin(server: Postgres, database: str) -> Iterator[Any]:
    from adbc_driver_postgresql.dbapi import connect

    url = f"postgresql://postgres@127.0.0.1:{server.port}/{database}"
    with (
        contextlib.closing(connect(url, autocommit=True)) as connection,
        connection.cursor() as cursor,
    ):
        yield cursor.execute


@contextlib.contextmanager
def postgres(*settings: str) -> Iterator[Postgres]:
    """A server with a user who may read, and an owner who needs no password."""
    program("psql")  # is of the same package; tells what to do where it is missing
    folder = Path(tempfile.mkdtemp(prefix="odfbuild-postgres-"))
    server = Postgres(folder, free_port(), programs() or Path(program("postgres")).parent, settings)
    try:
        server.create(
            f"host all postgres 127.0.0.1/32 trust\nhost all {USER} 127.0.0.1/32 scram-sha-256\n"
        )
        server.start()
        try:
            with admin(server, "postgres") as execute:
                execute(f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}' IN ROLE pg_read_all_data")
            yield server
        finally:
            with contextlib.suppress(subprocess.CalledProcessError):
                server.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
