"""The address of a table or a query, such as `postgresql://host/shop?cursor=updated_at#orders`.

The table stands behind `#`; parameters of ours are `query` (instead of a table), `cursor`,
`overlap` and `changes`. Others go to the client library, if they only say how to connect. Reads
nothing.
Source: libpq, "Connection URIs"; MySQL, "Connecting Using URI-Like Connection Strings".
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Literal, cast
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from odfbuild.errors import InDefinition, IngestError
from odfbuild.odf.model import (
    MergeStrategy,
    MergeStrategyAppend,
    MergeStrategyChangelogStream,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
)
from odfbuild.values import Value
from odfbuild.wording import did_you_mean

Kind = Literal["postgresql", "mysql", "sqlite", "duckdb"]

SCHEMES: dict[str, Kind] = {
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "mysql": "mysql",
    "mariadb": "mysql",
    "sqlite": "sqlite",
    "duckdb": "duckdb",
}
"""Schemes of addresses, and what kind of database they are about."""

_OURS = ("query", "cursor", "overlap", "changes")
_PLACE = ("query", "cursor", "changes", "host", "socket")
"""Those of which another value means another source."""
_OF_LIBPQ = """host sslmode sslrootcert sslcert sslkey channel_binding gssencmode
    target_session_attrs application_name"""
_OF_CLIENT: dict[Kind, tuple[str, ...]] = {
    "postgresql": tuple(_OF_LIBPQ.split()),
    "mysql": ("socket", "ssl-mode", "ssl-ca", "ssl-cert", "ssl-key"),
}
"""Parameters of clients that say how to connect, and hold no secret."""
_SSL_MODES = ("DISABLED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY")

_SLOT = re.compile(r"[a-z0-9_]{1,63}")
"""Names that PostgreSQL takes for replication slots."""
_CHANGES = re.compile(r"[?&]changes=")
_OVERLAP = re.compile(r"([0-9]{1,15})([smhd]?)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_MOST_DAYS = 36_500


class Overlap(Value):
    """How far before the last position a cursor begins: a time, or a difference of numbers."""

    time: timedelta | None = None
    number: int | None = None

    @property
    def is_none(self) -> bool:
        """Whether nothing is read twice."""
        return not self.time and not self.number


class Wanted(Value):
    """What an address asks for. `place` is what the client library connects to.

    `table` are the parts of its name, with the schema if there is one. `overlap` is `None` where
    the address does not say it. `changes` says that changes of the table are read, not its
    rows: by the replication slot and the publication of that name, or from the binary log of
    MariaDB, where another name means another beginning.
    """

    kind: Kind
    place: str
    table: tuple[str, ...] = ()
    query: str | None = None
    cursor: str | None = None
    overlap: Overlap | None = None
    changes: str | None = None

    @property
    def relation(self) -> str:
        """What is read, as it stands behind FROM."""
        if self.query is not None:
            return f"(\n{self.query}\n) AS source"
        return ".".join(map(quoted, self.table))

    @property
    def called(self) -> str:
        """What is read, as messages name it."""
        return "the query" if self.query is not None else f"the table '{'.'.join(self.table)}'"


def quoted(name: str) -> str:
    """A name as SQL takes it literally."""
    return '"' + name.replace('"', '""') + '"'


def is_database(url: str) -> bool:
    """Whether `url` is the address of a table or query, as far as its scheme tells."""
    return url.partition(":")[0].lower() in SCHEMES


def reads_changes(url: str) -> bool:
    """Whether `url` asks for changes of a table, as far as its text tells.

    Its beginning may be a variable of the environment.
    """
    return (is_database(url) or url.startswith("${{")) and _CHANGES.search(url) is not None


def keeps_slot(url: str) -> bool:
    """Whether the server keeps a replication slot for the changes that `url` asks for."""
    return reads_changes(url) and SCHEMES[url.partition(":")[0].lower()] == "postgresql"


def wanted(url: str, shown: str) -> Wanted:
    """What `url` asks for, which messages may show as `shown`. Raises `IngestError` E0470."""
    if not is_database(url):
        raise _wrong(shown, "it has no scheme of a database", f"use {', '.join(SCHEMES)}")
    # Line breaks of a query would get lost in an address.
    parts = urlsplit(url.replace("\r", "").replace("\n", "%0A"))
    kind = SCHEMES[parts.scheme.lower()]
    given = _parameters(parts.query, kind, shown)
    query = (given.get("query") or "").strip().rstrip(";").strip()
    if "query" in given and not query:
        raise _wrong(shown, "its `query` is empty", "write a SELECT, or a table behind `#`")
    if bool(query) == bool(parts.fragment):
        what = "it has a table and a query" if query else "it names no table and no query"
        raise _wrong(shown, what, "write a table behind `#`, or a SELECT as `query=`")
    table = tuple(map(unquote, parts.fragment.split("."))) if parts.fragment else ()
    if not all(table) or len(table) > (1 if kind == "sqlite" else 2):
        form = "#orders" if kind == "sqlite" else "#orders or #public.orders"
        raise _wrong(shown, f"'{parts.fragment}' is no name of a table", f"write {form}")
    cursor = given.get("cursor")
    if cursor == "" or (cursor is None and "overlap" in given):
        raise _wrong(shown, "it names no cursor", "write `cursor=COLUMN`, or leave `overlap` out")
    changes = given.get("changes")
    if changes is not None:
        _check_changes(changes, kind, is_alone=not query and cursor is None, shown=shown)
    client = {key: value for key, value in given.items() if key not in _OURS}
    if kind in _OF_CLIENT:
        parameters = urlencode(client, quote_via=quote)
        place = parts._replace(scheme=kind, query=parameters, fragment="").geturl()
    elif parts.netloc or not parts.path:
        raise _wrong(shown, "it names no file", f"write {kind}:data/shop.db#orders")
    else:
        place = unquote(parts.path)
    return Wanted(
        kind=kind,
        place=place,
        table=table,
        query=query or None,
        cursor=cursor,
        overlap=None if "overlap" not in given else _overlap(given["overlap"], shown),
        changes=changes,
    )


def named(url: str) -> str:
    """An address as messages name it: without login and parameters."""
    try:
        parts = urlsplit(url.replace("\n", " "))
    except ValueError:
        return url.partition(":")[0] + ":"
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()


def check_merge(asked: Wanted, merge: MergeStrategy, shown: str) -> None:
    """Raise `IngestError` E0469 where a merge would take a part of the rows for something else."""
    kind = merge.KIND
    fits_changes = isinstance(merge, MergeStrategyChangelogStream | MergeStrategyUpsertStream)
    if asked.changes is not None and not fits_changes:
        raise IngestError(
            f"the changes of {named(shown)} do not fit its merge strategy",
            code="E0469",
            location=InDefinition.of("fetch", "url"),
            notes=(f"`merge: {{kind: {kind}}}` takes no updates and deletions of single rows",),
            help="use `merge: {kind: ChangelogStream}`, which records each change, or "
            "`{kind: UpsertStream}`, which records what is different after each apply",
        )
    if asked.cursor is None:
        return
    if isinstance(merge, MergeStrategySnapshot):
        raise _contradiction(
            shown,
            f"`merge: {{kind: {kind}}}` takes rows that do not come for deleted ones, and a cursor "
            "reads new rows only",
            "leave `cursor` out, or use `merge: {kind: UpsertStream}`",
        )
    repeats = isinstance(merge, MergeStrategyAppend | MergeStrategyChangelogStream)
    if repeats and (asked.overlap is None or not asked.overlap.is_none):
        raise _contradiction(
            shown,
            f"`merge: {{kind: {kind}}}` adds each row again that is read again, and a cursor reads "
            "the rows of its overlap again",
            "use `merge: {kind: Ledger}` or `{kind: UpsertStream}` with a key, or `overlap=0`, "
            "with which rows that are committed late are never read",
        )


def place_of(url: str) -> str:
    """What tells a source from others: its address without login and without ways to connect.

    An address of another kind is all of that.
    """
    if not is_database(url):
        return url
    try:
        parts = urlsplit(url.replace("\r", "").replace("\n", "%0A"))
    except ValueError:
        return url
    kept = [each for each in parse_qsl(parts.query) if each[0] in _PLACE]
    where = parts._replace(netloc=parts.netloc.rpartition("@")[2], query=urlencode(sorted(kept)))
    return where.geturl()


def _parameters(text: str, kind: Kind, shown: str) -> dict[str, str]:
    known = (*_OURS, *_OF_CLIENT.get(kind, ()))
    given: dict[str, str] = {}
    for key, value in parse_qsl(text, keep_blank_values=True):
        if key == "password":
            raise _wrong(
                shown,
                "a password does not belong into its parameters",
                "write it before the host: user:${{ env.NAME }}@host",
            )
        if key not in known:
            help = did_you_mean(key, known, f"use {', '.join(known)}")
            raise _wrong(shown, f"'{key}' is no parameter of such an address", help)
        if key in given:
            raise _wrong(shown, f"it has '{key}' twice", "write it once")
        if key == "ssl-mode" and value.upper() not in _SSL_MODES:
            help = did_you_mean(value.upper(), _SSL_MODES, f"use {', '.join(_SSL_MODES)}")
            raise _wrong(shown, f"`ssl-mode` is '{value}'", help)
        given[key] = value
    return given


def _check_changes(slot: str, kind: Kind, *, is_alone: bool, shown: str) -> None:
    if kind not in ("postgresql", "mysql"):
        raise _wrong(
            shown,
            "only PostgreSQL and MariaDB tell changes of their tables",
            "leave `changes` out, and use `merge: {kind: Snapshot}`",
        )
    if not is_alone:
        raise _wrong(
            shown, "changes are those of a table", "leave `query`, `cursor` and `overlap` out"
        )
    if not _SLOT.fullmatch(slot):
        raise _wrong(
            shown,
            f"'{slot}' is no name for `changes`",
            "use lowercase letters, digits and _, such as changes=odfbuild_orders",
        )


def _overlap(text: str, shown: str) -> Overlap:
    found = _OVERLAP.fullmatch(text)
    if found is None:
        raise _wrong(
            shown, f"`overlap` is '{text}'", "write a time, such as 90s, 10m, 2h or 1d, or a number"
        )
    number, unit = int(found[1]), cast(str, found[2])
    if not unit:
        return Overlap(number=number)
    seconds = number * _SECONDS[unit]
    if seconds > _MOST_DAYS * 86_400:
        raise _wrong(shown, f"`overlap` is '{text}'", f"at most {_MOST_DAYS}d are possible")
    return Overlap(time=timedelta(seconds=seconds))


def _contradiction(shown: str, why: str, help: str) -> IngestError:
    return IngestError(
        f"the cursor of {named(shown)} does not fit its merge strategy",
        code="E0469",
        location=InDefinition.of("fetch", "url"),
        notes=(why,),
        help=help,
    )


def _wrong(shown: str, what: str, help: str) -> IngestError:
    return IngestError(
        f"'{named(shown)}' cannot be the address of a table or query: {what}",
        code="E0470",
        help=help,
    )
