"""Prepare steps: processing of raw data before it is read."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from odfbuild.odf.model.record import Record


class CompressionFormat(Enum):
    """Compression of source data."""

    Gzip = 0
    Zip = 1


class PrepStepDecompress(Record):
    """Decompress; `subPath` picks a file of an archive."""

    KIND: ClassVar[str] = "Decompress"

    format: CompressionFormat
    sub_path: str | None = None


class PrepStepPipe(Record):
    """Pipe through a command, without a shell."""

    KIND: ClassVar[str] = "Pipe"

    command: tuple[str, ...]


PrepStep = PrepStepDecompress | PrepStepPipe
"""Preparation of raw data."""
