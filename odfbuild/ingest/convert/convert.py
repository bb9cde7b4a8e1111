"""Convert a stream of bytes, as a conversion says."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from typing import IO

from odfbuild.ingest.convert.words import Conversion


def convert(source: IO[bytes], sink: IO[bytes], wanted: Conversion, most_bytes: int) -> None:
    """Write what `source` holds to `sink`. Raises `OdfbuildError`."""
    if source.seekable():
        _convert(source, sink, wanted, most_bytes)
        return
    with tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(source, copy)
        _convert(copy, sink, wanted, most_bytes)


def _convert(source: IO[bytes], sink: IO[bytes], wanted: Conversion, most_bytes: int) -> None:
    for line in _lines(source, wanted, most_bytes):
        sink.write(line.encode("utf-8", "surrogatepass"))
    sink.flush()


def _lines(source: IO[bytes], wanted: Conversion, most_bytes: int) -> Iterator[str]:
    from odfbuild.ingest.convert.spreadsheet import lines_of

    return lines_of(source, wanted, most_bytes)
