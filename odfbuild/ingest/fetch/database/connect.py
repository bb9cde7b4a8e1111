"""Connect to a database, with the library of its kind."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from odfbuild.ingest.fetch.database.address import Wanted
from odfbuild.ingest.fetch.database.contract import Database
from odfbuild.ingest.settings import IngestSettings


def open_database(
    asked: Wanted, settings: IngestSettings, root: Path, shown: str
) -> AbstractContextManager[Database]:
    """Connect, and begin a snapshot that ends with the context. Raises `OdfbuildError`.

    `root` is the project's folder, `shown` the address as messages name it.
    """
    if asked.kind == "postgresql":
        from odfbuild.ingest.fetch.database.postgresql import open_postgresql

        return open_postgresql(asked, settings, shown)
    if asked.kind == "mysql":
        from odfbuild.ingest.fetch.database.mysql import open_mysql

        return open_mysql(asked, settings, shown)
    if asked.kind == "sqlite":
        from odfbuild.ingest.fetch.database.sqlite import open_sqlite

        return open_sqlite(asked, root, shown)
    from odfbuild.ingest.fetch.database.duckdb import open_duckdb

    return open_duckdb(asked, root, shown)
