"""The archive of Spark's loaded classes, with which a JVM starts in half the time.

The first JVM of each Java and Spark leaves one behind when it ends. One that does not fit is not
used, so a stale archive costs nothing but time.
"""

from __future__ import annotations

import hashlib
import time
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.store.disposable import user_cache

if TYPE_CHECKING:
    from odfbuild.engine.spark.session.java import Java

_SETTLED_SECONDS = 60.0
"""After so long an archive that no longer changes is complete."""


def folder() -> Path:
    """Where archives lie."""
    return user_cache()


def path(java: Java, spark_home: Path) -> Path:
    """The archive for a Java and a Spark, which need not be there.

    A JVM refuses the archive of jars that were installed again, also of the same release.
    """
    jars = spark_home / "jars"
    installed = jars.stat().st_mtime_ns if jars.is_dir() else 0
    key = f"{java.home}|{java.version}|{version('pyspark')}|{spark_home}|{installed}"
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
            written.replace(archive)  # left by the JVM of an earlier run, complete by now
    except OSError:
        pass
    if archive.is_file():
        return [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", *quiet]
    if written.exists() or not can_be_made(java):  # being written, or impossible
        return quiet
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
    except OSError:
        return quiet
    return [f"-XX:ArchiveClassesAtExit={written}", *quiet]


def finish() -> list[Path]:
    """Put what JVMs left behind into use, when they have all ended; gives the archives."""
    for written in folder().glob("spark-*.new"):
        written.replace(written.with_suffix(".jsa"))
    return sorted(folder().glob("spark-*.jsa"))
