"""What is known about a source before it is read.

Probing a source is I/O and belongs to ingestion; deciding whether it makes a dataset stale is a
decision and belongs to planning. This value is all that passes between the two.
"""

from __future__ import annotations

from typing import Literal

from odfbuild.values import Value

SourceStatus = Literal["news", "unchanged", "unknown", "unanswered", "missing"]
"""`news`: there is something to read. `unchanged`: what is there was read already. `unknown`:
cannot be told without the network or without running something. `unanswered`: a server was asked,
and gave no answer that tells. `missing`: a local file that is not there."""


class SourceFacts(Value):
    """State of a polling source, compared with what the chain says was read of it last.

    `files` are the files that will be read, in order, as the user would name them. `records` counts
    the records in them; `None` when counting would mean reading everything, and `exact` is false
    when it is an estimate. `bytes` is their size on disk. `message` is one sentence for people that
    names the evidence (a file name, a modification time), without a full stop.
    """

    status: SourceStatus
    files: tuple[str, ...] = ()
    records: int | None = None
    exact: bool = True
    bytes: int | None = None
    message: str = ""
