"""The archive of Spark's loaded classes, with which a JVM starts in half the time.

The first JVM of each Java and Spark leaves one behind when it ends. One that does not fit is not
used, so a stale archive costs nothing but time and room: those that nobody used for a month go when
a new one is made.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from odfbuild.engine.release import release_of_spark
from odfbuild.store.disposable import user_cache

if TYPE_CHECKING:
    from odfbuild.engine.spark.session.java import Java

_LEAVE = "-XX:ArchiveClassesAtExit"
_SETTLED_SECONDS = 60.0
"""After so long an archive that no longer changes is complete, or its writer was killed."""
_UNUSED_SECONDS = 30 * 24 * 3600.0
_held: dict[Path, IO[bytes]] = {}
"""Archives of this process's JVMs, locked, also for other machines that share the folder."""


def folder() -> Path:
    """Where archives lie."""
    return user_cache()


def path(java: Java, spark_home: Path) -> Path:
    """The archive for a Java and a Spark, which need not be there.

    A JVM refuses the archive of jars that were installed again, also of the same release.
    """
    jars = spark_home / "jars"
    installed = jars.stat().st_mtime_ns if jars.is_dir() else 0
    key = f"{java.home}|{java.version}|{release_of_spark()}|{spark_home}|{installed}"
    return folder() / f"spark-{hashlib.sha256(key.encode()).hexdigest()[:16]}.jsa"


def can_be_made(java: Java) -> bool:
    """Whether a Java has the archive of its own classes on which ours would build."""
    return (java.home / "lib" / "server" / "classes.jsa").is_file()


def written_to(java: Java, spark_home: Path) -> tuple[Path, ...]:
    """The folder that a JVM has to write to, if it is to leave an archive behind."""
    return () if path(java, spark_home).is_file() else (folder(),)


def options(java: Java, spark_home: Path) -> list[str]:
    """Options of the JVM that use the archive, or leave one behind."""
    archive = path(java, spark_home)
    written = archive.with_suffix(".new")
    quiet = ["-Xlog:disable", "-Xlog:all=off"]
    try:
        if not archive.is_file() and time.time() - written.stat().st_mtime > _SETTLED_SECONDS:
            if _is_complete(written):  # left by the JVM of an earlier run
                written.replace(archive)
            else:
                written.unlink()
    except OSError:
        pass
    if archive.is_file():
        _hold(archive)
        return [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", *quiet]
    if written.exists() or not can_be_made(java):  # being written, or impossible
        return quiet
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
    except OSError:
        return quiet
    _remove_unused(archive.parent)
    return [f"{_LEAVE}={written}", *quiet]


def is_left_by(options: Sequence[str]) -> bool:
    """Whether a JVM with these `options` leaves an archive behind when it ends in order."""
    return any(each.startswith(_LEAVE) for each in options)


def _is_complete(archive: Path) -> bool:
    """Whether a JVM has finished to write an archive: its first bytes come last."""
    with archive.open("rb") as opened:
        return any(opened.read(4))


def _hold(archive: Path) -> None:
    """Say that an archive is used, from now until this process ends."""
    with suppress(OSError):  # somebody else's, as in an image
        os.utime(archive)
    with suppress(OSError):
        opened = archive.open("rb")
        fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
        _held[archive] = opened


def _remove_unused(folder: Path) -> None:
    """Remove archives, complete or not, that nobody uses or has begun to use for a month."""
    for archive in (*folder.glob("spark-*.jsa"), *folder.glob("spark-*.new")):
        with suppress(OSError):
            if time.time() - archive.stat().st_mtime > _UNUSED_SECONDS:
                archive.chmod(0o600)  # over a network, only who may write can have the lock
                with archive.open("r+b") as opened:
                    fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    archive.unlink()


def finish() -> list[Path]:
    """Put what JVMs left behind into use, when they have all ended; gives the archives."""
    for written in filter(_is_complete, folder().glob("spark-*.new")):
        written.replace(written.with_suffix(".jsa"))
    return sorted(folder().glob("spark-*.jsa"))
