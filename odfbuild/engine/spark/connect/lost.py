"""Tell errors of a server of Spark Connect that is gone from those of what it is asked."""

from __future__ import annotations

import re

from odfbuild.errors import EngineProblem

_LOST = re.compile(
    r"INVALID_(HANDLE|CURSOR)\.|RETRIES_EXCEEDED|RESPONSE_ALREADY_RECEIVED|SESSION_NOT_SAME"
    r"|NO_ACTIVE_SESSION"
)
"""Conditions that tell of the server, not of a query."""
_KINDS = re.compile("Rpc|Grpc|UnknownException")
"""Errors of the connection, and of a server that fails otherwise, as while it shuts down."""


class SessionLost(EngineProblem):
    """E0529: a server, or what it held for us, is gone; another session may do."""


def refused_by(error: Exception, address: str, dataset: str | None = None) -> SessionLost | None:
    """The error for people when a server is gone or refuses to work; `None` for any other."""
    condition, text = _condition(error), " ".join(str(error).split())
    # What a query fails with has a condition of its own, but for want of memory.
    said = _LOST.match(condition) if condition else _KINDS.search(type(error).__name__)
    if not said or "OutOfMemoryError" in text:
        return None
    found = re.search(r'details = "([^"]*)"', text)
    return SessionLost(
        f"the Spark Connect server at {address} is gone, or does not take work",
        code="E0529",
        dataset=dataset,
        notes=(
            *((found[1] if found else text[:600],)),
            *(
                ("nothing of it was committed", "a server whose memory is full ends: see its log")
                if dataset
                else ()
            ),
        ),
        help="start it, or correct `engine.master`; a token is taken from "
        "SPARK_CONNECT_AUTHENTICATE_TOKEN; then run `odfbuild apply` again",
    )


def _condition(error: Exception) -> str:
    asked = getattr(error, "getCondition", None)
    return str(asked() or "") if asked else ""
