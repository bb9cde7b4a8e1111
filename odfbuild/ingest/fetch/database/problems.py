"""Errors in talking to a database. `shown` is the address as messages may show it."""

from __future__ import annotations

from collections.abc import Sequence

from odfbuild.errors import Code, InDefinition, IngestError
from odfbuild.ingest.fetch.context import FetchContext
from odfbuild.ingest.secrets import scrub
from odfbuild.wording import did_you_mean

_URL = InDefinition.of("fetch", "url")
_LOGIN = (
    "correct user, password and name of the database in `fetch.url`, "
    "or let the server accept this login"
)
_TIMEOUTS = {"57014", "55P03", "40001"}
"""Cancelled, no lock, and on a replica: the rows that are read were removed meanwhile."""

_MISSING_TABLE = {"42P01", "3F000", "3D000"}
_MISSING_COLUMN = {"42703"}
_NO_RIGHT = {"42501"}
_IN_USE = "55006"
_CUT_OFF = ("08", "57P")
"""What codes of a lost connection or of a server that stops begin with (SQLSTATE)."""


def not_connected(shown: str, said: str, *, answered: bool = False) -> IngestError:
    """The error for a server that did not answer, or that `answered` and refused who asks."""
    said = _one_line(said)
    # PostgreSQL answered if this word is there, whatever its language.
    if answered or "FATAL" in said:
        return _problem(f"the server of {shown} refuses the login", "E0462", said, _LOGIN)
    return _problem(
        f"cannot connect to {shown}",
        Code.DATABASE_UNREACHABLE,
        said,
        "correct host and port in `fetch.url`, start the server, or run `odfbuild apply` again",
    )


def refused(shown: str, called: str, said: str, code: str | None) -> IngestError:
    """The error for a statement that failed; `code` is its SQLSTATE, `None` where none came."""
    said, of = _one_line(said), f"{called} of {shown}"
    if code is None or code.startswith(_CUT_OFF):
        return _problem(
            f"the connection to {shown} was lost while {called} was read",
            Code.DATABASE_UNREACHABLE,
            said,
            "run `odfbuild apply` again: nothing was committed, and nothing is lost",
        )
    if code in _TIMEOUTS:
        return _problem(
            f"reading {of} takes too long",
            "E0473",
            said,
            "wait for who holds its lock, or raise `ingest.totalSeconds` in odfbuild.yaml",
        )
    if code in _MISSING_TABLE:
        help = "correct the name behind `#`, with its schema: #public.orders"
        return _problem(f"{of} is not there", Code.NO_SUCH_TABLE, said, help)
    if code in _NO_RIGHT:
        help = "grant the user the right: GRANT SELECT ON … TO …"
        return _problem(f"{of} may not be read by this user", Code.NO_SUCH_TABLE, said, help)
    if code in _MISSING_COLUMN:
        help = "correct `query` in `fetch.url`, or restore the column"
        return _problem(f"{of} names a column that is not there", "E0464", said, help)
    if code == _IN_USE:
        return _problem(
            f"another process reads the changes of {of}", Code.SLOT_IN_USE, said, "wait for it"
        )
    help = "correct `fetch.url`, or the rows that the note is about"
    return _problem(f"{of} fails", "E0472", said, help)


def missing_table(shown: str, called: str, tables: Sequence[str], name: str) -> IngestError:
    """The error for a file without the table."""
    help = did_you_mean(name, tables, f"the tables are: {', '.join(tables) or 'none'}")
    return _problem(f"{called} of {shown} is not there", Code.NO_SUCH_TABLE, "", help)


def check_columns(context: FetchContext, shown: str, called: str, columns: Sequence[str]) -> None:
    """Raise `IngestError` E0420 where a declared column is missing, unless a policy lets it be.

    The read step knows only the columns that are read.
    """
    if context.settings.schema_policy(context.dataset) == "ignore":
        return
    *declared, operation = context.columns or ("",)
    known = {*columns, operation}
    name = next((each for each in declared if each not in known), None)
    if name is None:
        return
    raise IngestError(
        f"{called} of {shown} has no column '{name}'",
        code="E0420",
        location=InDefinition.of("read", "schema"),
        notes=(f"its columns are: {', '.join(columns)}",),
        help=did_you_mean(
            name,
            columns,
            "correct `read.schema`, or the table; with `ingest.onSchemaChange: ignore` in "
            "odfbuild.yaml a missing column is empty",
        ),
    )


def missing_file(shown: str) -> IngestError:
    """The error for a database that is a file, where there is none."""
    return IngestError(
        f"there is no file for {shown}",
        code="E0404",
        location=_URL,
        help="put the file there, or correct `fetch.url` in the definition",
    )


def missing_cursor(shown: str, called: str, name: str, columns: Sequence[str]) -> IngestError:
    """The error for a cursor that is no column."""
    help = did_you_mean(name, columns, f"the columns are: {', '.join(columns)}")
    return _problem(f"the cursor '{name}' is no column of {called} of {shown}", "E0464", "", help)


def no_cursor(shown: str, name: str, declared: str, why: str) -> IngestError:
    """The error for a column, or an overlap, with which a cursor cannot be."""
    return _problem(
        f"'{name}' ({declared}) of {shown} cannot be the cursor: {why}",
        "E0465",
        "",
        "use a column of whole numbers, dates or times that grows with each change, or leave "
        "`cursor` out and use `merge: {kind: Snapshot}`",
    )


def wrong_overlap(shown: str, name: str, declared: str, form: str) -> IngestError:
    """The error for an overlap that is no difference of values of the cursor."""
    return _problem(
        f"the overlap of {shown} does not fit the cursor '{name}' ({declared})",
        "E0465",
        "",
        f"write {form}",
    )


def null_cursor(shown: str, called: str, name: str) -> IngestError:
    """The error for rows that a cursor would never reach."""
    return _problem(
        f"the cursor '{name}' is NULL in rows of {called} of {shown}",
        "E0467",
        "such rows would never be read",
        f"give these rows a value and declare the column NOT NULL, or leave them out: "
        f"query=SELECT … WHERE {name} IS NOT NULL",
    )


def cursor_went_back(shown: str, name: str, newest: str, read: str) -> IngestError:
    """The error for a table whose newest row is older than what was read."""
    return _problem(
        f"the cursor '{name}' of {shown} went back: its largest value is {newest}, and rows up to "
        f"{read} were read",
        "E0468",
        "the table was restored or filled anew, or a sequence was reset: new rows with smaller "
        "values would never be read",
        "restore the values, or run `odfbuild reset` for this dataset and read the table again",
    )


def unfit(shown: str, name: str, declared: str, why: str) -> IngestError:
    """The error for a value that no type of a dataset can hold."""
    return _problem(
        f"column '{name}' ({declared}) of {shown} has a value that does not fit: {why}",
        Code.VALUE_DOES_NOT_FIT,
        "",
        "correct the value, or read the column as text: query=SELECT …, "
        f"CAST({name} AS TEXT) AS {name} FROM …",
    )


def _problem(message: str, code: str, said: str, help: str) -> IngestError:
    notes = (scrub(said),) if said else ()
    return IngestError(message, code=code, notes=notes, location=_URL, help=help)


def _one_line(said: str) -> str:
    """The first lines of what a library says, without the statement that it repeats."""
    text = said.partition("\n\nQuery was:")[0].partition("Query was:")[0]
    return " ".join(text.split())
