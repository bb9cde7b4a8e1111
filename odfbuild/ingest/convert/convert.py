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
    if wanted.kind == "orc":
        from odfbuild.ingest.convert.orc import convert_orc

        convert_orc(source, sink)
    elif wanted.kind == "archive":
        from odfbuild.ingest.convert.archive import chunks_of

        sink.writelines(chunks_of(source, wanted, most_bytes))
    else:
        lines = _lines(source, wanted, most_bytes)
        sink.writelines(line.encode("utf-8", "surrogatepass") for line in lines)
    sink.flush()


def _lines(source: IO[bytes], wanted: Conversion, most_bytes: int) -> Iterator[str]:
    # Each kind may need a library that the others do not.
    if wanted.kind == "spreadsheet":
        from odfbuild.ingest.convert import spreadsheet

        return spreadsheet.lines_of(source, wanted, most_bytes)
    if wanted.kind == "fixed-width":
        from odfbuild.ingest.convert import fixed_width

        return fixed_width.lines_of(source, wanted)
    if wanted.kind == "xml":
        from odfbuild.ingest.convert import xml_records

        return xml_records.lines_of(source, wanted)
    from odfbuild.ingest.convert import avro

    return avro.lines_of(source)
