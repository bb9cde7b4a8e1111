"""Prepare steps: decompress what was fetched, streamed from file to file.

Source: specification, `PrepStep`; reference behaviour, prepare steps. A `subPath` may be a pattern,
and a ZIP archive without one must hold exactly one file, where the reference takes the first.
"""

from __future__ import annotations

import fnmatch
import gzip
import shutil
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

from odfbuild.errors import IngestError
from odfbuild.ingest.supported import unsupported
from odfbuild.odf.model import CompressionFormat, PrepStep, PrepStepDecompress

_CHUNK = 1 << 20
_SHOWN = 10


def prepare(steps: Sequence[PrepStep], file: Path, name: str, scratch: Path) -> tuple[Path, str]:
    """Carry out `steps` one after the other; returns the last file and what messages call it.

    Writes into `scratch` only; without steps it is `file` itself. Raises `IngestError`.
    """
    for number, step in enumerate(steps):
        if not isinstance(step, PrepStepDecompress):
            raise unsupported("prepare", step.KIND)
        target = scratch / f"prepared-{number}"
        try:
            if step.format is CompressionFormat.Gzip:
                _gunzip(file, target)
            else:
                name = f"{name}!{_unzip(file, target, step.sub_path, name)}"
        except (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile, RuntimeError) as error:
            raise _corrupt(name, step.format, error) from None
        file = target
    return file, name


def choose_entry(names: Sequence[str], sub_path: str | None, archive: str) -> str:
    """The entry of an archive to read: the one called or matching `sub_path`, or the only one."""
    files = [name for name in names if not name.endswith("/")]
    if sub_path is not None and sub_path in files:
        return sub_path
    found = files if sub_path is None else [n for n in files if fnmatch.fnmatchcase(n, sub_path)]
    if len(found) == 1:
        return found[0]
    if sub_path is None:
        message = f"'{archive}' holds {len(files)} files, and `subPath` does not say which"
    else:
        message = f"{len(found) or 'no'} files in '{archive}' match `subPath: {sub_path}`"
    listed = found if len(found) > 1 else files
    rest = (f"and {len(listed) - _SHOWN} more",) if len(listed) > _SHOWN else ()
    raise IngestError(
        message,
        code="E0412",
        notes=(*(f"it has {entry}" for entry in listed[:_SHOWN]), *rest),
        help="name one file in `prepare.subPath`",
    )


def _gunzip(file: Path, target: Path) -> None:
    with gzip.open(file, "rb") as source, target.open("wb") as sink:
        shutil.copyfileobj(source, sink, _CHUNK)


def _unzip(file: Path, target: Path, sub_path: str | None, name: str) -> str:
    with zipfile.ZipFile(file) as archive:
        entry = choose_entry(archive.namelist(), sub_path, name)
        with archive.open(entry) as source, target.open("wb") as sink:
            shutil.copyfileobj(source, sink, _CHUNK)
    return entry


def _corrupt(name: str, format_: CompressionFormat, error: Exception) -> IngestError:
    if isinstance(error, RuntimeError) and "password" in str(error):
        reason = "it is encrypted"
    else:
        reason = str(error) or type(error).__name__
    return IngestError(
        f"'{name}' is not a readable {format_.name.lower()} archive: {reason}",
        code="E0411",
        help="fetch the file again, or correct `prepare` in the definition",
    )
