"""The error of a block that breaks a rule of the chain.

Every rule has a code of its own; docs/reference/chain-rules.md lists them.
"""

from __future__ import annotations

from typing import NoReturn

from odfbuild.errors import ChainError

_NAMES = {
    "E0601": "FirstBlockMustBeSeed",
    "E0602": "AppendingSeedBlockToNonEmptyChain",
    "E0603": "PrevBlockNotFound",
    "E0604": "SequenceIntegrity",
    "E0605": "SystemTimeIsNotMonotonic",
    "E0606": "WatermarkIsNotMonotonic",
    "E0607": "OffsetsAreNotSequential",
    "E0609": "NoOpEvent",
    "E0611": "HashMismatch",
    "E0615": "NoOpEvent",
    "E0617": "NoOpEvent",
    "E0648": "NoOpEvent",
    "E0649": "NoOpEvent",
    "E0650": "NoOpEvent",
    "E0655": "NoOpEvent",
}


def name_of(code: str) -> str:
    """The reference's name of the kind of error behind a code."""
    return _NAMES.get(code, "InvalidEvent")


def refuse(code: str, message: str, *notes: str, help: str | None = None) -> NoReturn:
    """Raise the `ChainError` of the rule with that code."""
    raise ChainError(message, code=code, notes=notes, help=help, rule=name_of(code))
