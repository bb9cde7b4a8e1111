"""Several files of one archive, one after the other, in the order of their names."""

from __future__ import annotations

import fnmatch
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from lzma import LZMAError
from typing import IO

from odfbuild.ingest.convert.problems import mixed, no_table, too_large, unreadable
from odfbuild.ingest.convert.words import Conversion

_CHUNK = 1 << 20
_HEADER = 1 << 20
_CORRUPT = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, LZMAError, OSError)
_LEFT_BEHIND = ("__MACOSX/*", ".DS_Store", "*/.DS_Store", "Thumbs.db", "*/Thumbs.db")

Open = Callable[[], IO[bytes]]


def chunks_of(source: IO[bytes], wanted: Conversion, most_bytes: int) -> Iterator[bytes]:
    """The bytes of the files that match, each with a line break at its end.

    With `same-header`, the first line of all files is the same, and comes once. Raises
    `IngestError`.
    """
    pattern = wanted.one("match") or "*"
    try:
        with closing(_opened(source)) as archive:
            entries = _entries(archive)
            found = [
                name
                for name in sorted(entries)
                if fnmatch.fnmatchcase(name, pattern)
                and not any(fnmatch.fnmatchcase(name, each) for each in _LEFT_BEHIND)
            ]
            if not found:
                shown = ", ".join(sorted(entries)[:10]) or "none"
                raise no_table(
                    f"no file of the archive matches '{pattern}'",
                    "correct --match",
                    f"its files are: {shown}",
                )
            size = 0
            for chunk in _joined({name: entries[name] for name in found}, wanted):
                size += len(chunk)
                if size > most_bytes:
                    raise too_large(
                        f"the files unpack to more than {most_bytes:,} bytes",
                        "raise `ingest.maxUnpackedBytes` in odfbuild.yaml if that much is "
                        "expected; an archive made to fill disks looks like this too",
                    )
                yield chunk
    except (*_CORRUPT, RuntimeError, NotImplementedError) as error:
        said = "it is encrypted" if "password" in str(error) else str(error) or "it is broken"
        raise unreadable(
            f"this is not a readable archive: {said}",
            "give a ZIP or tar archive, without a password",
        ) from None


def _opened(source: IO[bytes]) -> zipfile.ZipFile | tarfile.TarFile:
    is_zip = source.read(2) == b"PK"
    source.seek(0)
    return zipfile.ZipFile(source) if is_zip else tarfile.open(fileobj=source)


def _entries(archive: zipfile.ZipFile | tarfile.TarFile) -> dict[str, Open]:
    """How each regular file is opened; links lead elsewhere, and are none."""
    if isinstance(archive, zipfile.ZipFile):
        return {
            each.filename: _of_zip(archive, each)
            for each in archive.infolist()
            if not each.is_dir() and (each.external_attr >> 28) != 0xA
        }
    return {each.name: _of_tar(archive, each) for each in archive if each.isfile()}


def _of_zip(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Open:
    return lambda: archive.open(entry)


def _of_tar(archive: tarfile.TarFile, entry: tarfile.TarInfo) -> Open:
    def opened() -> IO[bytes]:
        file = archive.extractfile(entry)
        assert file is not None  # it is a regular file
        return file

    return opened


def _joined(entries: dict[str, Open], wanted: Conversion) -> Iterator[bytes]:
    header: bytes | None = None
    for name, opened in entries.items():
        last = b""
        with opened() as file:
            if wanted.has("same-header"):
                first = file.readline(_HEADER).rstrip(b"\r\n").removeprefix(b"\xef\xbb\xbf")
                if header is None:
                    header = first
                    yield first + b"\n"
                elif first and first != header:
                    raise mixed(
                        f"the first line of '{name}' in the archive differs from that of "
                        f"'{next(iter(entries))}'",
                        "choose files with the same columns by --match",
                    )
            while chunk := file.read(_CHUNK):
                yield chunk
                last = chunk[-1:]
        if last not in (b"", b"\n"):
            yield b"\n"
