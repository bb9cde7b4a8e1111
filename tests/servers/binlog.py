"""A MariaDB server whose binary log tells changes, and a user who may read it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from tests.servers.mariadb import USER, Database, MariaDb, mariadb

SETTINGS = ("--log-bin=log", "--binlog-format=ROW", "--binlog-row-metadata=FULL", "--server-id=1")


@contextlib.contextmanager
def mariadb_with_changes(*settings: str) -> Iterator[MariaDb]:
    with mariadb(*SETTINGS, *settings) as server:
        grant(server)
        yield server


def grant(server: MariaDb) -> None:
    run(server, f"GRANT REPLICATION SLAVE ON *.* TO '{USER}'@'127.0.0.1'")


def run(server: MariaDb, *statements: str) -> None:
    with contextlib.closing(server.owner("mysql")) as connection, connection.cursor() as cursor:
        for each in statements:
            cursor.execute(each)


def with_table(server: MariaDb, *statements: str) -> Database:
    database = server.database()
    database.execute(*statements)
    return database


def url_of(database: Database, name: str = "orders_1", table: str = "orders") -> str:
    return database.url(f"?changes={name}#{table}")


def rows(database: Database, sql: str) -> list[dict[str, Any]]:
    import pymysql

    with (
        contextlib.closing(database.server.owner(database.name)) as connection,
        connection.cursor(pymysql.cursors.DictCursor) as cursor,
    ):
        cursor.execute(sql)
        return list(cursor.fetchall())
