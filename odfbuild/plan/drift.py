"""Drift: differences between a chain and the last definitions and runs.

Four kinds, because each has a way out of its own: the *definition* in a chain is not the one in
the files, its *history* is not the one that was there, its *bytes* are not those that were
committed, its *source* has files that no run reads (again). Values only; `apply.drift` finds them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from odfbuild.odf.multihash import Multihash
from odfbuild.plan.refusal import as_data
from odfbuild.values import Value


class DriftKind(StrEnum):
    """Which part of a dataset drifted: a closed list, part of the output format."""

    DEFINITION = "definition"
    HISTORY = "history"
    BYTES = "bytes"
    SOURCE = "source"


class DriftCause(StrEnum):
    """How it drifted: a closed list, part of the output format."""

    CHANGED_ELSEWHERE = "changed_elsewhere"
    NOT_APPLIED = "not_applied"
    NEVER_APPLIED = "never_applied"
    NOT_DEFINED = "not_defined"
    DIFFERS = "differs"

    MOVED_BACK = "moved_back"
    MOVED_ASIDE = "moved_aside"
    GONE = "gone"
    READ_ELSEWHERE = "read_elsewhere"

    MISSING = "missing"
    SIZE = "size"
    HASH = "hash"
    DAMAGED = "damaged"

    PASSED_OVER = "passed_over"
    EDITED = "edited"


KIND_OF = {
    DriftCause.CHANGED_ELSEWHERE: DriftKind.DEFINITION,
    DriftCause.NOT_APPLIED: DriftKind.DEFINITION,
    DriftCause.NEVER_APPLIED: DriftKind.DEFINITION,
    DriftCause.NOT_DEFINED: DriftKind.DEFINITION,
    DriftCause.DIFFERS: DriftKind.DEFINITION,
    DriftCause.MOVED_BACK: DriftKind.HISTORY,
    DriftCause.MOVED_ASIDE: DriftKind.HISTORY,
    DriftCause.GONE: DriftKind.HISTORY,
    DriftCause.READ_ELSEWHERE: DriftKind.HISTORY,
    DriftCause.MISSING: DriftKind.BYTES,
    DriftCause.SIZE: DriftKind.BYTES,
    DriftCause.HASH: DriftKind.BYTES,
    DriftCause.DAMAGED: DriftKind.BYTES,
    DriftCause.PASSED_OVER: DriftKind.SOURCE,
    DriftCause.EDITED: DriftKind.SOURCE,
}


class ChainDrift(Value, kw_only=True):
    """One way in which a dataset drifted.

    `message` is a sentence, `help` the edit or command that fixes it. `block` and
    `sequence_number` are the block concerned, `commit` is the full hash of a commit of Git that
    proves it, `file` the definition or the object; each `None` where there is none.
    """

    dataset: str
    cause: DriftCause
    message: str
    help: str
    block: Multihash | None = None
    sequence_number: int | None = None
    commit: str | None = None
    file: str | None = None

    @property
    def kind(self) -> DriftKind:
        """Which part of the dataset drifted."""
        return KIND_OF[self.cause]

    def to_data(self) -> dict[str, Any]:
        """The same as plain values, as plans and `drift --json` have it."""
        return {"dataset": self.dataset, "kind": self.kind.value, **as_data(self)}
