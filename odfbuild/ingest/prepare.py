"""Prepare steps: decompress or pipe what was fetched, streamed from file to file.

Source: specification, `PrepStep`; reference behaviour, prepare steps. A `subPath` may be a pattern,
and a ZIP archive without one must hold exactly one file, where the reference takes the first. The
formats are those of the specification's closed list; others go through `Pipe`.
"""

from __future__ import annotations

import fnmatch
import gzip
import stat
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from odfbuild.errors import InDefinition, IngestError, OdfbuildError
from odfbuild.ingest.convert.run import run_conversion
from odfbuild.ingest.convert.words import conversion_of, is_conversion
from odfbuild.ingest.file_kind import packed
from odfbuild.ingest.process import Finished, run_to_file
from odfbuild.ingest.secrets import scrub
from odfbuild.ingest.settings import IngestSettings
from odfbuild.odf.model import CompressionFormat, PrepStep, PrepStepDecompress, PrepStepPipe

_CHUNK = 1 << 20
_SHOWN = 10
_LEFT_BEHIND = ("__MACOSX/*", ".DS_Store", "*/.DS_Store", "Thumbs.db", "*/Thumbs.db")
"""What file managers put into archives beside the files."""
# `RuntimeError` is how `zipfile` speaks of encryption and of methods that it does not know.
_CORRUPT = (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile, RuntimeError)


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def prepare(
    steps: Sequence[PrepStep],
    file: Path,
    name: str,
    scratch: Path,
    root: Path,
    settings: IngestSettings,
) -> tuple[Path, str]:
    """Carry out `steps` one after the other; returns the last file and what messages call it.

    Writes into `scratch` only; without steps it is `file` itself. Programs run in `root`, the
    project's folder. Raises `IngestError`, whose location is a path in the source (`prepare[0]`).
    """
    for number, step in enumerate(steps):
        target = scratch / f"prepared-{number}"
        try:
            if isinstance(step, PrepStepPipe) and is_conversion(step.command):
                run_conversion(step.command[2:], file, target, name, settings)
            elif isinstance(step, PrepStepPipe):
                _pipe(step, file, target, name, root, settings)
            else:
                name = _decompress(step, file, target, name, settings.max_unpacked_bytes)
        except OdfbuildError as error:
            raise error.or_at(InDefinition.of("prepare", number)) from None
        except OSError as error:
            raise IngestError(
                f"cannot prepare '{name}': {error.strerror or error}",
                code="E0400",
                location=InDefinition.of("prepare", number),
                help="correct the permissions, or make room, then run `odfbuild apply` again",
            ) from None
        if number:
            file.unlink()  # of the step before: it may be as large as the disk bears once
        file = target
    return file, name


def choose_entry(names: Sequence[str], sub_path: str | None, archive: str) -> str:
    """The entry of an archive to read: the one called or matching `sub_path`, or the only one."""
    files = [name for name in names if not name.endswith("/")]
    if sub_path is not None and sub_path in files:
        return sub_path
    files = [name for name in files if not any(fnmatch.fnmatchcase(name, p) for p in _LEFT_BEHIND)]
    found = files if sub_path is None else [n for n in files if fnmatch.fnmatchcase(n, sub_path)]
    if len(found) == 1:
        return found[0]
    if not files:
        raise IngestError(
            f"'{archive}' holds no files", code="E0412", help="check what makes the archive"
        )
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


def _decompress(step: PrepStepDecompress, file: Path, target: Path, name: str, limit: int) -> str:
    try:
        if step.format is CompressionFormat.Gzip:
            with gzip.open(file, "rb") as source:
                _copy(source, target, name, limit)
            return name
        with zipfile.ZipFile(file) as archive:
            entry = choose_entry(archive.namelist(), step.sub_path, name)
            _refuse_escape(entry, name)
            _refuse_link(archive.getinfo(entry), name)
            inside = f"{name}!{entry}"
            with archive.open(entry) as source:
                _copy(source, target, inside, limit)
        return inside
    except _CORRUPT as error:
        raise _corrupt(name, file, step.format, error) from None


def _copy(source: _Readable, target: Path, name: str, limit: int) -> None:
    written = 0
    with target.open("wb") as sink:
        while chunk := source.read(_CHUNK):
            written += len(chunk)
            if written > limit:
                raise IngestError(
                    f"'{name}' unpacks to more than {limit:,} bytes",
                    code="E0409",
                    help="raise `ingest.maxUnpackedBytes` in odfbuild.yaml if that much is "
                    "expected; an archive made to fill disks looks like this too",
                )
            sink.write(chunk)


def _refuse_escape(entry: str, archive: str) -> None:
    # Entries are never written under their names; one that tries to escape is no honest file.
    parts = entry.replace("\\", "/").split("/")
    if ".." in parts or parts[0] == "" or parts[0].endswith(":"):
        raise IngestError(
            f"the file '{entry}' in '{archive}' points outside of the archive",
            code="E0411",
            help="do not trust this archive; ask whoever made it for another one",
        )


def _refuse_link(entry: zipfile.ZipInfo, archive: str) -> None:
    # Its data is where it leads: a file of the machine that made the archive, not of this one.
    if stat.S_ISLNK(entry.external_attr >> 16):
        raise IngestError(
            f"'{entry.filename}' in '{archive}' is a symbolic link, not a file",
            code="E0411",
            help="pack the file that it leads to, or name another one in `prepare.subPath`",
        )


def _pipe(
    step: PrepStepPipe, file: Path, target: Path, name: str, root: Path, settings: IngestSettings
) -> None:
    check_pipe(step)
    shown = " ".join(step.command)
    if not any(fnmatch.fnmatchcase(step.command[0], each) for each in settings.pipes):
        raise IngestError(
            f"this machine does not let the pipe '{shown}' run",
            code="E0172",
            notes=("which programs a project runs is decided by the owner of the machine",),
            help=f"let it run with ODFBUILD_PIPES='{step.command[0]}', or by `ingest.pipes` in "
            "machine.yaml: see docs/configuration.md",
        )
    try:
        finished = run_to_file(
            step.command,
            target,
            source=file,
            folder=root,
            seconds=settings.total_seconds,
            most_bytes=settings.max_unpacked_bytes,
        )
    except OSError as error:
        raise IngestError(
            f"the pipe '{shown}' cannot be started: {error.strerror or error}",
            code="E0414",
            help="install the program, or correct `prepare.command`; it runs without a shell, in "
            "the project's folder",
        ) from None
    if finished.status != 0 or finished.stopped:
        raise _pipe_failed(shown, name, finished)


def check_pipe(step: PrepStepPipe) -> None:
    """Raise `IngestError` when there is nothing to run, or a conversion that cannot be done."""
    if is_conversion(step.command):
        conversion_of(step.command[2:])
    if not step.command:
        raise IngestError(
            "the pipe has no command", code="E0414", help="name a program in `prepare.command`"
        )


def _pipe_failed(shown: str, name: str, finished: Finished) -> IngestError:
    if finished.stopped:
        reason = f"was stopped: {finished.stopped}"
        help = "raise `ingest.totalSeconds` or `ingest.maxUnpackedBytes` in odfbuild.yaml"
    else:
        reason = f"failed with {exit_text(finished.status)}"
        help = f"try it by hand: {shown} < FILE"
    return IngestError(
        f"the pipe '{shown}' {reason}, reading '{name}'",
        code="E0414",
        notes=tuple(scrub(f"it says: {line}") for line in finished.complaints),
        help=help,
    )


def exit_text(status: int) -> str:
    """`status` of a process in words; negative ones are signals."""
    return f"exit status {status}" if status >= 0 else f"signal {-status}"


def _corrupt(name: str, file: Path, format_: CompressionFormat, error: Exception) -> IngestError:
    reason = str(error) or type(error).__name__
    help = "fetch the file again, or correct `prepare` in the definition"
    if isinstance(error, RuntimeError) and "password" in reason:
        reason = "it is encrypted"
    else:
        found = packed(file)
        if found is not None and found[0] != format_.name:
            reason, help = f"it is a {found[0]} file", f"use `{found[1]}` in `prepare`"
    return IngestError(
        f"'{name}' is not a readable {format_.name.lower()} archive: {reason}",
        code="E0411",
        help=help,
    )
