"""Errors in reading changes of a table. `shown` is the address as messages may show it."""

from __future__ import annotations

from collections.abc import Sequence

from odfbuild.errors import Code, InDefinition, IngestError

_URL = InDefinition.of("fetch", "url")
_THEN = ": the next apply then reads the whole table, and records what is different"


def slot_again(dataset: str) -> str:
    """How the table behind a replication slot is read again."""
    return f"run `odfbuild source create {dataset} --resnapshot`{_THEN}"


def log_again(name: str) -> str:
    """How a table whose changes are in a binary log is read again; `name` is that of `changes`."""
    return f"write another name than `changes={name}` in `fetch.url`{_THEN}"


def unsuitable(shown: str, message: str, help: str) -> IngestError:
    """The error for a table or server that does not tell changes as they are needed."""
    return _problem(message, "E0492", help, "nothing was read, and nothing was changed there")


def named_like_operation(shown: str, called: str, operation: str) -> IngestError:
    """The error for a table with a column that is called like that of operations."""
    return unsuitable(
        shown,
        f"{called} of {shown} has a column '{operation}', which is the name of the column that "
        "says what each change is",
        "give the system column another name by a SetVocab event, `operationTypeColumn`",
    )


def not_created(shown: str, slot: str, dataset: str) -> IngestError:
    """The error for a source whose slot and publication were never created."""
    return _problem(
        f"{shown} has no replication slot and no publication '{slot}'",
        "E0490",
        f"run `odfbuild source create {dataset}`",
    )


def slot_lost(shown: str, slot: str, dataset: str, why: str) -> IngestError:
    """The error for changes that the server does not have any more."""
    return _problem(
        f"the server of {shown} does not have all changes since the last apply: {why}",
        "E0491",
        slot_again(dataset),
        f"the replication slot is '{slot}'; nothing was committed, and nothing was confirmed",
    )


def log_lost(shown: str, name: str, why: str) -> IngestError:
    """The error for changes that a binary log does not have any more."""
    return _problem(
        f"the binary log of {shown} does not have all changes since the last apply: {why}",
        "E0491",
        log_again(name),
        "nothing was committed",
    )


def unreadable_change(shown: str, dataset: str, what: str, lsn: str) -> IngestError:
    """The error for a change from which the records do not follow."""
    return _problem(
        f"{what} in {shown}, in the transaction that committed at {lsn}",
        "E0493",
        slot_again(dataset),
        "the transactions before it are committed, and the server keeps the others",
    )


def log_does_not_fit(error: IngestError, place: str, again: str) -> IngestError:
    """The error for a value in the server's log, where nobody can correct it.

    `error` tells of the value, `place` is where its transaction begins to be read, `again` how the
    whole table is read again.
    """
    note = f"it is in the first transaction behind {place}; those before it are committed"
    help = f"correct the value in the table, then {again}"
    return error.changed(help=help).noted(note)


def slot_in_use(shown: str, slot: str) -> IngestError:
    """The error for a slot that somebody else reads."""
    return _problem(
        f"another process reads the replication slot '{slot}' of {shown}",
        Code.SLOT_IN_USE,
        "wait for it to end, or let each dataset and environment have a slot of its own: "
        "`changes=NAME` in `fetch.url`",
    )


def still_running(shown: str) -> IngestError:
    """The error for transactions that do not end, so that no snapshot shows all before it."""
    return _problem(
        f"transactions on the server of {shown} do not end, so the table cannot be read together "
        "with its changes",
        "E0473",
        "end them (`SELECT pid, xact_start FROM pg_stat_activity ORDER BY 2`), or raise "
        "`ingest.idleSeconds` in odfbuild.yaml",
    )


def may_not(shown: str, what: str, said: Sequence[str], statements: Sequence[str]) -> IngestError:
    """The error for a user who may not do what `what` says, with what somebody else can run."""
    return IngestError(
        f"{what} of {shown} failed",
        code="E0495",
        location=_URL,
        notes=tuple(said),
        help="run as a user who may: " + "; ".join(statements),
    )


def _problem(message: str, code: str, help: str, note: str = "") -> IngestError:
    return IngestError(message, code=code, location=_URL, notes=(note,) if note else (), help=help)
