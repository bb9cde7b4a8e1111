"""Count the records of a file without parsing them.

CSV and NDJSON: lines that are not blank, without the header. Lines of CSV may also end with a
carriage return alone, and go on within quotes. Parquet: what its footer says.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import IO

from odfbuild.ingest.parquet_rows import rows_of
from odfbuild.odf.model import (
    CompressionFormat,
    PrepStep,
    PrepStepDecompress,
    ReadStep,
    ReadStepCsv,
    ReadStepParquet,
)

_CHUNK = 1 << 20
_MOST_UNPACKED = 512 << 20
_BLANK = re.compile(rb"\n[ \t\r\v\f]*\n")
_SPACE = b" \t\r\n\v\f"
_LINE = "a\r\n"


def count_records(
    steps: Sequence[PrepStep], read: ReadStep, path: str, line_breaks: bool = False
) -> int | None:
    """Records of `path` behind `steps`; `None` where counting is not cheap.

    With `line_breaks`, quoted values of CSV may hold some.

    Raises `OSError`, `EOFError` or `IngestError` for files that cannot be read.
    """
    if isinstance(read, ReadStepParquet):
        return None if steps else _parquet_rows(path)
    encoding = getattr(read, "encoding", None)
    if not read.IS_LINES or (encoding is not None and not _has_plain_line_ends(encoding)):
        return None
    csv = read if isinstance(read, ReadStepCsv) else None
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123  # pathlib costs a third of the time
        if line_breaks and csv is not None:
            chunks = _unpack(steps, file, path) if steps else _chunks(file)
            lines = None if chunks is None else _records(chunks, csv)
        elif not steps:
            first = file.read(_CHUNK)
            # A short read is the whole file, and most files are short.
            lines = (
                _lines_of(first, csv)
                if len(first) < _CHUNK
                else _lines(_chain(first, _chunks(file)), csv)
            )
        else:
            chunks = _unpack(steps, file, path)
            lines = None if chunks is None else _lines(chunks, csv)
    header = csv is not None and bool(csv.header) and lines
    return lines - 1 if lines is not None and header else lines


def _records(chunks: Iterable[bytes], read: ReadStepCsv) -> int | None:
    """Records of CSV, in which quoted values may hold line breaks; `None`: nobody can tell."""
    from odfbuild.engine.csv_records import NotRecordsError, Quoting, folded

    signs = Quoting.of(read)
    try:
        return _lines(chunks if signs is None else folded(chunks, signs), read)
    except NotRecordsError:
        return None


def _has_plain_line_ends(encoding: str) -> bool:
    """Whether lines end with the same bytes as in ASCII; not in UTF-16, for one."""
    try:
        return _LINE.encode(encoding).endswith(_LINE.encode())
    except (LookupError, UnicodeError):
        return False


def _lines_of(data: bytes, csv: ReadStepCsv | None) -> int:
    if not data:
        return 0
    if csv is not None and b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    ends_within = data[-1:] != b"\n"
    if data[:1].isspace() or (ends_within and data[-1:].isspace()) or _BLANK.search(data):
        # Between separators are records, also where these are tabs and nothing else is there.
        blank = _SPACE.replace((csv.separator or ",").encode() if csv else b",", b"")
        return sum(1 for line in data.split(b"\n") if line.strip(blank))
    return data.count(b"\n") + ends_within


def _lines(chunks: Iterable[bytes], csv: ReadStepCsv | None) -> int | None:
    lines = 0
    size = 0
    rest = b""
    for chunk in chunks:
        size += len(chunk)
        if size > _MOST_UNPACKED:
            return None
        # A line feed may follow a carriage return that ends the chunk.
        end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r", 0, -1) if csv is not None else -1) + 1
        if end:
            lines += _lines_of(rest + chunk[:end], csv)
            rest = chunk[end:]
        else:
            rest += chunk
    return lines + _lines_of(rest, csv)


def _chain(first: bytes, rest: Iterable[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk


def _unpack(steps: Sequence[PrepStep], file: IO[bytes], path: str) -> Iterator[bytes] | None:
    chunks: Iterator[bytes] | None = None
    for step in steps:
        if not isinstance(step, PrepStepDecompress):
            return None
        if step.format is CompressionFormat.Gzip:
            chunks = _gunzip(_chunks(file) if chunks is None else chunks)
        elif chunks is None:
            chunks = _unzip(path, step.sub_path)
        else:
            return None  # an archive within a stream would have to be unpacked to disk first
    return chunks


def _gunzip(chunks: Iterator[bytes]) -> Iterator[bytes]:
    stream = zlib.decompressobj(31)
    for chunk in chunks:
        data = chunk
        while data:
            if stream.eof:
                data = data.lstrip(b"\0")
                if not data:
                    break
                stream = zlib.decompressobj(31)
            try:
                yield stream.decompress(data)
            except zlib.error as error:
                raise OSError(str(error)) from None
            data = stream.unused_data
    if not stream.eof:
        raise EOFError("the compressed file ends too early")


def _unzip(path: str, sub_path: str | None) -> Iterator[bytes]:
    import zipfile

    from odfbuild.ingest.prepare import choose_entry

    try:
        with zipfile.ZipFile(path) as archive:
            entry = choose_entry(archive.namelist(), sub_path, path)
            with archive.open(entry) as file:
                yield from _chunks(file)
    except (zipfile.BadZipFile, RuntimeError, zlib.error) as error:
        raise OSError(str(error)) from None


def _parquet_rows(path: str) -> int | None:
    with open(path, "rb") as file:  # noqa: PTH123  # as above
        return rows_of(file)
