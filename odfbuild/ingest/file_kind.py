"""Detect the type of a file from its first bytes, if a step expects another one.

A compressed file or a spreadsheet that is read as text fails at some byte of it, which says little;
its first bytes say what it is, and so what to do.
"""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path

from odfbuild.errors import IngestError, Location
from odfbuild.odf.model import ReadStep

_PACKED = (
    ("Gzip", re.compile(rb"\x1f\x8b\x08"), "kind: Decompress, format: Gzip"),
    ("Zip", re.compile(rb"PK\x03\x04"), "kind: Decompress, format: Zip"),
    ("bzip2", re.compile(rb"BZh[1-9]1AY&SY"), "kind: Pipe, command: [bzip2, -dc]"),
    ("zstd", re.compile(rb"\x28\xb5\x2f\xfd"), "kind: Pipe, command: [zstd, -dc]"),
    ("xz", re.compile(rb"\xfd7zXZ\x00"), "kind: Pipe, command: [xz, -dc]"),
    ("tar", re.compile(rb".{257}ustar", re.DOTALL), "kind: Pipe, command: [tar, -xOf, -]"),
)
"""What files begin with, and the step that unpacks them."""
_OFFICE = re.compile(
    rb"PK\x03\x04.{26}(\[Content_Types\]\.xml|_rels/\.rels|docProps/|xl/"
    rb"|mimetypeapplication/vnd\.oasis)"
    rb"|\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
    re.DOTALL,
)
_UTF_16 = re.compile(rb"\xff\xfe[^\0]\0|\xfe\xff\0[^\0]")
_PARQUET = b"PAR1"


_LEFT_BEHIND = ("__MACOSX/*", ".DS_Store", "*/.DS_Store", "Thumbs.db", "*/Thumbs.db")


def is_left_behind(name: str) -> bool:
    """Whether file managers put a file of that name into archives beside the files."""
    return any(fnmatch.fnmatchcase(name, each) for each in _LEFT_BEHIND)


def packed(file: Path) -> tuple[str, str] | None:
    """The format in which a file is compressed or archived and the step that unpacks it, if any."""
    head = _head(file)
    return next(((name, step) for name, start, step in _PACKED if start.match(head)), None)


def refuse_other_kind(file: Path, read: ReadStep, name: str, dataset: str) -> None:
    """Raise `IngestError` when a file, called `name`, is evidently not what `read` reads."""
    found = None if read.IS_PACKED else _other_kind(file, read)
    if found is not None:
        what, help = found
        raise IngestError(
            f"'{name}' is {what}",
            code="E0450",
            location=Location(name),
            help=help,
            dataset=dataset,
        )


def _other_kind(file: Path, read: ReadStep) -> tuple[str, str] | None:
    head = _head(file)
    if _OFFICE.match(head):
        step = "kind: Pipe, command: [odfbuild, convert, spreadsheet]"
        return "an Office document", f"convert its table: `{step}` in `prepare`"
    archive = packed(file)
    if archive is not None:
        return f"a {archive[0]} file", f"unpack it: `{archive[1]}` in `prepare`"
    if read.IS_BINARY:
        return None
    if head.startswith(_PARQUET) and _tail(file) == _PARQUET:
        return "a Parquet file", "read it with `kind: Parquet`"
    if _UTF_16.match(head) and getattr(read, "encoding", "utf8") in (None, "utf8", "utf-8"):
        if hasattr(read, "encoding"):
            return "text in UTF-16", "set `read.encoding: utf-16`"
        return "text in UTF-16", "convert it: `kind: Pipe, command: [iconv, -f, utf-16, -t, utf-8]`"
    return None


def _head(file: Path) -> bytes:
    with file.open("rb") as source:
        return source.read(512)


def _tail(file: Path) -> bytes:
    with file.open("rb") as source:
        source.seek(-min(4, file.stat().st_size), 2)
        return source.read()
