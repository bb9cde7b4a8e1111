"""A new root that reads a database: the table itself says its columns, key and time of change."""

from __future__ import annotations

from odfbuild.api.authoring.new_request import NewDatasetRequest, check_column, missing
from odfbuild.ingest.fetch.database.address import is_database, named, reads_changes, wanted
from odfbuild.ingest.fetch.database.look import LookedAt, look_at_database
from odfbuild.project.model import Config
from odfbuild.values import Value

_EXAMPLE = "'postgresql://reader:${{ env.SHOP_PASSWORD }}@db.example.org/shop#public.orders'"


class DatabaseRoot(Value, kw_only=True):
    """A root to be begun; `kind` is that of its merge strategy, `columns` have types in DDL.

    `cursor` is the column by which new rows are found; `None`: the whole table is read, or its
    changes.
    """

    name: str
    url: str
    called: str
    kind: str
    columns: tuple[tuple[str, str], ...]
    key: tuple[str, ...]
    cursor: str | None
    event_time: str | None
    has_key_of_its_own: bool
    reads_changes: bool = False
    description: str | None = None


def database_wanted(request: NewDatasetRequest, config: Config) -> DatabaseRoot:
    """The root that is wanted, with what its table looks like. Raises `OdfbuildError`."""
    if request.read or request.sample:
        raise missing("a database tells its columns itself", "leave out --read and --sample")
    if len(request.sources) != 1 or not is_database(request.sources[0]):
        what = f"'{' '.join(request.sources)}' is not one address of a database"
        raise missing(
            what if request.sources else "a root of kind 'database' needs to know the address",
            f"odfbuild new database {request.name} {_EXAMPLE}",
        )
    url = request.sources[0]
    found = look_at_database(url, config.ingest, config.root)
    names = [name for name, _ in found.columns]
    for name in request.key:
        check_column(name, names, "--key")
    key = request.key or found.key
    cursor, kind = _cursor_and_merge(request, url, found)
    if kind != "Append" and not key:
        raise missing(
            f"{named(url)} has no primary key that could be found",
            "name the columns that tell its rows apart with --key",
        )
    event_time = cursor if found.cursor_is_time else None
    return DatabaseRoot(
        name=request.name,
        url=_with_cursor(url, cursor, kind),
        called=named(url),
        kind=kind,
        columns=tuple(
            (name, "TIMESTAMP" if name == event_time else ddl) for name, ddl in found.columns
        ),
        key=() if kind == "Append" else key,
        cursor=cursor,
        event_time=event_time,
        has_key_of_its_own=not request.key,
        reads_changes=reads_changes(url),
        description=request.description,
    )


def _cursor_and_merge(
    request: NewDatasetRequest, url: str, found: LookedAt
) -> tuple[str | None, str]:
    """The cursor, and the merge strategy that fits it."""
    if reads_changes(url):
        if request.merge not in (None, "upsert"):
            raise missing(
                f"'{request.merge}' takes no updates and deletions of single rows",
                "leave --merge out, or use `--merge upsert`",
            )
        return None, "UpsertStream" if request.merge else "ChangelogStream"
    merge = request.merge or ("upsert" if found.cursor else "snapshot")
    if merge == "snapshot":
        if wanted(url, url).cursor is not None:
            raise missing(
                "a snapshot is the whole table, and a cursor reads new rows only",
                "leave `cursor` out of the address, or use another --merge",
            )
        return None, "Snapshot"
    if found.cursor is None:
        raise missing(
            f"'{merge}' reads new rows only, and {named(url)} has no column that looks like the "
            "time of a change",
            "name a column that grows with each new row in the address: ?cursor=COLUMN#TABLE",
        )
    return found.cursor, {"upsert": "UpsertStream"}.get(merge, merge.capitalize())


def _with_cursor(url: str, cursor: str | None, kind: str) -> str:
    """The address, with the cursor and the overlap that goes with the merge strategy."""
    if cursor is None or "cursor=" in url:
        return url
    place, separator, table = url.partition("#")
    parameters = f"cursor={cursor}{'&overlap=0' if kind == 'Append' else '&overlap=10m'}"
    return f"{place}{'&' if '?' in place else '?'}{parameters}{separator}{table}"
