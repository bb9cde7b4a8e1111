"""What a step that reads changes of a table gives, whatever the kind of database."""

from __future__ import annotations

from pathlib import Path

from odfbuild.odf.timestamp import Timestamp
from odfbuild.values import Value


class Found(Value):
    """A file, the source state behind it, and when its last change was.

    `until` is the end of the log when the run began, `whole` says that the file is the table.
    """

    file: Path | None
    state: str
    until: int
    committed: Timestamp | None = None
    whole: bool = False
    note: str = ""
