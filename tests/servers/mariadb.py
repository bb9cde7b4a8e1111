"""A MariaDB server of Debian's packages, with a user who may read and an owner of all."""

import contextlib
import itertools
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pymysql

from tests.servers.programs import free_port, program

USER, PASSWORD = "reader", "s3cret of/reader"
_numbers = itertools.count(1)


@dataclass
class MariaDb:
    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None
    settings: tuple[str, ...] = ("--skip-log-bin",)

    @property
    def socket(self) -> str:
        return f"{self.folder}/socket"

    def start(self) -> None:
        command = [
            program("mariadbd"), "--no-defaults", f"--datadir={self.folder}/data",
            f"--init-file={self.folder}/users.sql",
            f"--socket={self.socket}", f"--port={self.port}", "--bind-address=127.0.0.1",
            *self.settings, *_as_root(),
        ]  # fmt: skip
        log = (self.folder / "log").open("ab")
        self.process = subprocess.Popen(command, stdout=log, stderr=log)
        end = time.monotonic() + 120
        while True:
            with contextlib.suppress(pymysql.Error):
                self.owner("mysql").close()
                return
            assert time.monotonic() < end, (self.folder / "log").read_text()
            time.sleep(0.1)

    def stop(self) -> None:
        """As a crash, from which the server recovers when it starts."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(60)
            self.process = None

    def owner(self, database: str) -> Any:
        """A connection of the owner; it commits when it says so."""
        return pymysql.connect(
            user="owner", password="", unix_socket=self.socket, database=database, autocommit=False
        )

    def database(self) -> "Database":
        """A new database, empty."""
        name = f"shop{next(_numbers)}"
        with contextlib.closing(self.owner("mysql")) as connection:
            with connection.cursor() as cursor:
                cursor.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
                cursor.execute(f"GRANT SELECT ON {name}.* TO '{USER}'@'127.0.0.1'")
            connection.commit()
        return Database(self, name)


@dataclass(frozen=True)
class Database:
    server: MariaDb
    name: str

    def url(self, rest: str = "", *, password: str = PASSWORD, scheme: str = "mysql") -> str:
        login = f"{USER}:{quote(password, safe='')}"
        return f"{scheme}://{login}@127.0.0.1:{self.server.port}/{self.name}{rest}"

    def execute(self, *statements: str) -> None:
        with contextlib.closing(self.server.owner(self.name)) as connection:
            with connection.cursor() as cursor:
                for each in statements:
                    cursor.execute(each)
            connection.commit()


@contextlib.contextmanager
def mariadb(*settings: str) -> Iterator[MariaDb]:
    """A server, without a binary log unless `settings` ask for one."""
    folder = Path(tempfile.mkdtemp(prefix="odfbuild-mariadb-"))
    server = MariaDb(folder, free_port(), settings=settings or ("--skip-log-bin",))
    try:
        (folder / "users.sql").write_text(
            "CREATE USER IF NOT EXISTS 'owner'@'localhost';\n"
            "GRANT ALL ON *.* TO 'owner'@'localhost' WITH GRANT OPTION;\n"
            f"CREATE USER IF NOT EXISTS '{USER}'@'127.0.0.1' IDENTIFIED BY '{PASSWORD}';\n"
        )
        subprocess.run(
            [program("mariadb-install-db"), "--no-defaults", f"--datadir={folder}/data",
             "--auth-root-authentication-method=normal", "--skip-test-db", *_as_root()],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=240,
        )  # fmt: skip
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _as_root() -> list[str]:
    return ["--user=root"] if os.getuid() == 0 else []
