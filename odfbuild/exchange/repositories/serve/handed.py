"""Records that somebody pushes over HTTP, and what became of them.

The server takes requests, and something above it (`Taker`) commits those of a dataset together.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from odfbuild.errors import OdfbuildError
from odfbuild.odf.model import ReadStep, ReadStepCsv
from odfbuild.odf.timestamp import Timestamp
from odfbuild.values import Value

FORMATS: dict[str, type[ReadStep]] = {
    each.KIND: each for each in ReadStep.__args__ if each.MEDIA_TYPES
}
"""Formats in which records may come, by the kind of their read step."""


class Handed(Value, kw_only=True):
    """One request: the data in `file`, for the push source `source` (`None`: the only one).

    `format` is a key of `FORMATS`, or `None`: as the source says. Of requests with one of `keys` in
    common only the first counts. `event_time` is that of records without one.
    """

    file: Path
    source: str | None = None
    format: str | None = None
    keys: tuple[str, ...] = ()
    event_time: Timestamp | None = None


class Receipt(Value, kw_only=True):
    """What a request led to: the block that holds its `records`, and how many bad were skipped.

    `block` is `None` where the data had nothing new and no key, so that there is no block for it.
    `repeated`: it was committed before, by a request with the same key.
    """

    block: str | None
    number: int | None
    records: int
    skipped: int = 0
    repeated: bool = False
    warnings: tuple[str, ...] = ()


class Taker(Protocol):
    """Commits requests, whose data lie in files of its `folder`."""

    @property
    def folder(self) -> Path:
        """Where the data of requests are put, and deleted behind the answer."""

    def take(self, dataset: str, batch: Sequence[Handed]) -> Sequence[Receipt | OdfbuildError]:
        """Commit requests for a dataset in their order; what came of each. Raises nothing.

        May be called from several threads at once, for different datasets.
        """


def in_format(read: ReadStep, format: str | None) -> ReadStep | None:
    """The read step of a source for data in another format, with the same columns.

    `None` where the source has records that such a format cannot have.
    """
    if format is None or format == read.KIND:
        return read
    if read.KIND not in FORMATS:
        return None
    form = FORMATS[format]
    shared = {"ddl_schema", "schema", "date_format", "timestamp_format"}
    names = shared & {*read.__struct_fields__} & {*form.__struct_fields__}
    given: dict[str, Any] = {name: getattr(read, name) for name in names}
    if form is ReadStepCsv:
        given["header"] = True
    return form(**given)
