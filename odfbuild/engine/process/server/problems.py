"""Which of the two failures of the protocol an error is, and its text.

A coordinator shows it to whoever wrote the query, who sees neither files nor logs of this engine.
"""

from __future__ import annotations

import traceback

from odfbuild.errors import Code, EngineError, OdfbuildError, QueryError

_OF_THE_MACHINE = frozenset({Code.STEP_TOO_LONG, Code.SPARK_OUT_OF_MEMORY})
"""Errors of queries that are about limits of this machine."""
RESET, TOO_LARGE = Code.CHECKPOINT_RESET, Code.CHECKPOINT_TOO_LARGE
_OF_THE_QUERY = frozenset({RESET, TOO_LARGE})


def is_of_query(error: Exception) -> bool:
    """Whether the author of the query has to do something about all of it."""
    if not isinstance(error, OdfbuildError):
        return False
    for each in error.apart():
        of_query = isinstance(each, QueryError) and each.code not in _OF_THE_MACHINE
        if not (of_query or each.code in _OF_THE_QUERY):
            return False
    return True


def text_of(error: Exception) -> str:
    """All that is known of an error: where, what, why, and what to do."""
    if not isinstance(error, OdfbuildError):
        return f"{type(error).__name__}: {error}".strip()
    return "\n".join(_text_of_one(each) for each in error.apart())


def _text_of_one(error: OdfbuildError) -> str:
    where = f" {error.location}:" if error.location else ""
    lines = [f"{error.code}{where} {error.message}", *error.notes]
    if error.help:
        lines.append(f"help: {error.help}")
    return "\n  ".join(lines)


def backtrace_of(error: Exception) -> str | None:
    """Where in the program an error came about that nobody expected."""
    if isinstance(error, OdfbuildError):
        return None
    return "".join(traceback.format_exception(error))


def malformed(message: str, *notes: str) -> EngineError:
    """The error of a request that is not as the protocol has it."""
    return EngineError(
        message,
        code="E1404",
        notes=notes,
        help="the coordinator has to send it otherwise: see docs/engine-serve.md",
    )
