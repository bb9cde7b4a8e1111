"""Connect to a database, with the library of its kind."""

from __future__ import annotations

from contextlib import AbstractContextManager

from odfbuild.ingest.fetch.context import FetchContext
from odfbuild.ingest.fetch.database.address import Wanted
from odfbuild.ingest.fetch.database.contract import Database


def open_database(
    asked: Wanted, context: FetchContext, shown: str
) -> AbstractContextManager[Database]:
    """Connect, and begin a snapshot that ends with the context. Raises `OdfbuildError`."""
    if asked.kind == "postgresql":
        from odfbuild.ingest.fetch.database.postgresql import open_postgresql

        return open_postgresql(asked, context.settings, shown)
    if asked.kind == "sqlite":
        from odfbuild.ingest.fetch.database.sqlite import open_sqlite

        return open_sqlite(asked, context.root, shown)
    from odfbuild.ingest.fetch.database.duckdb import open_duckdb

    return open_duckdb(asked, context.root, shown)
