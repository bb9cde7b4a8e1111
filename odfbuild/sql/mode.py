"""How a transformation is kept up to date, in the words of plans and outcomes.

Sources: Open Data Fabric, "Derivative Transformations"; RFC-015.
"""

from __future__ import annotations

from enum import Enum

from odfbuild.values import Value


class Mode(Enum):
    """How a transformation is kept up to date; the value is what plans say."""

    MAP = "map"
    """Record by record: reads what is new, keeps the order of records and their operations."""
    STREAM = "stream"
    """Appends what is final: windows that a watermark closed, pairs that new records make."""
    CHANGELOG = "changelog"
    """Computes over the whole history and appends how the result differs from the one before."""
    CHECKPOINT = "checkpoint"
    """A program that is an engine reads what is new, and what it kept in its own checkpoint."""


class Choice(Value):
    """A mode and the reason for it, as it is shown to people."""

    mode: Mode
    reason: str


RECORD_BY_RECORD = Choice(Mode.MAP, "every record is handled alone")
WINDOWS = Choice(Mode.STREAM, "a window is final when the watermark passes its end")
PAIRS = Choice(Mode.STREAM, "new records only make further pairs")

BY_CHECKPOINT = Choice(
    Mode.CHECKPOINT, "its engine keeps what it needs of earlier records in its checkpoint"
)

AGGREGATION = "aggregation (GROUP BY, COUNT, SUM …)"
JOIN = "a join"
OVER = "a window function (OVER)"
SUBQUERY = "a subquery"
