"""A PostgreSQL server of Debian's packages, which refuses to run as root."""

import contextlib
import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.servers.programs import free_port, program

USER, PASSWORD = "reader", "s3cret-of-reader"
_OTHER_USER = "nobody"
_numbers = itertools.count(1)


@dataclass
class Postgres:
    folder: Path
    port: int
    bin: Path
    settings: tuple[str, ...] = ()

    def start(self) -> None:
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        options += "".join(f" -c {each}" for each in self.settings)
        self._run("pg_ctl", "start", "-w", "-t", "120", "-l", f"{self.folder}/log", "-o", options)

    def stop(self, mode: str = "fast") -> None:
        """`immediate` is a crash, from which the server recovers when it starts."""
        self._run("pg_ctl", "stop", "-w", "-t", "120", "-m", mode)

    def database(self, encoding: str = "UTF8") -> "Database":
        """A new database, empty."""
        name = f"shop{next(_numbers)}"
        locale = "C.UTF-8" if encoding == "UTF8" else "C"
        with admin(self, "postgres") as execute:
            execute(
                f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LOCALE '{locale}'"
            )
        return Database(self, name)

    def _run(self, name: str, *arguments: str) -> None:
        _as_other_user([str(self.bin / name), "-D", f"{self.folder}/data", *arguments], self.folder)


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
    found = _binaries()
    folder = Path(tempfile.mkdtemp(prefix="odfbuild-postgres-"))
    if os.getuid() == 0:
        shutil.chown(folder, _OTHER_USER)
    server = Postgres(folder, free_port(), found, settings)
    try:
        options = ["-D", f"{folder}/data", "-U", "postgres", "-A", "trust", "--no-sync"]
        _as_other_user(
            [str(found / "initdb"), *options, "--encoding=UTF8", "--locale=C.UTF-8"], folder
        )
        rules = (
            f"host all postgres 127.0.0.1/32 trust\nhost all {USER} 127.0.0.1/32 scram-sha-256\n"
        )
        (folder / "data" / "pg_hba.conf").write_text(rules)
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


def _binaries() -> Path:
    """The folder of a server's programs: Debian puts only the client's on the path."""
    program("psql")  # is of the same package; tells what to do where it is missing
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda each: int(each.parent.name)
    )
    return found[-1] if found else Path(program("postgres")).parent


def _as_other_user(command: list[str], folder: Path) -> None:
    prefix = ["setpriv", f"--reuid={_OTHER_USER}", "--regid=nogroup", "--clear-groups"]
    if os.getuid() != 0:
        prefix = []
    subprocess.run(
        [*prefix, *command], check=True, cwd=folder, stdout=subprocess.DEVNULL, timeout=240
    )
