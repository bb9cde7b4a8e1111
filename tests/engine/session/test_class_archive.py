"""The archive of classes that a JVM starts from."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from odfbuild.engine.spark.session import class_archive
from odfbuild.engine.spark.session.java import Java

DAY = 24 * 3600
COMPLETE, BEGUN = b"\xa8\xab\x0b\xf0 and the classes", bytes(4) + b" and some classes"


@pytest.fixture
def java(tmp_path: Path) -> Java:
    """A Java that can make archives."""
    home = tmp_path / "java"
    (home / "lib" / "server").mkdir(parents=True)
    (home / "lib" / "server" / "classes.jsa").touch()
    return Java(home, "21.0.1", "a test")


@pytest.fixture
def spark(tmp_path: Path) -> Path:
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    return tmp_path / "spark"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    class_archive.folder().mkdir(parents=True)
    return class_archive.folder()


def left(file: Path, days: float, content: bytes = COMPLETE) -> Path:
    """An archive that was used so many days ago; JVMs leave it so that nobody may write it."""
    file.write_bytes(content)
    file.chmod(0o444)
    os.utime(file, (time.time() - days * DAY,) * 2)
    return file


def writes(options: list[str]) -> bool:
    return class_archive.is_left_by(options)


def uses(options: list[str]) -> bool:
    return any(each.startswith("-XX:SharedArchiveFile=") for each in options)


def test_jars_that_were_installed_again_get_an_archive_of_their_own(
    java: Java, spark: Path
) -> None:
    before = class_archive.path(java, spark)
    assert class_archive.path(java, spark) == before
    os.utime(spark / "jars", (1, 1))
    assert class_archive.path(java, spark) != before


def test_what_an_earlier_jvm_left_is_used_when_it_has_settled(
    java: Java, spark: Path, cache: Path
) -> None:
    assert writes(class_archive.options(java, spark))
    archive = class_archive.path(java, spark)
    written = left(archive.with_suffix(".new"), days=0)
    found = class_archive.options(java, spark)
    assert not uses(found) and not writes(found)
    left(written, days=1)
    assert uses(class_archive.options(java, spark))
    assert archive.read_bytes() == COMPLETE


def test_what_a_killed_jvm_began_is_written_anew(java: Java, spark: Path, cache: Path) -> None:
    written = left(class_archive.path(java, spark).with_suffix(".new"), days=1, content=BEGUN)
    assert writes(class_archive.options(java, spark))
    assert not written.exists()


def test_a_new_archive_takes_the_place_of_those_that_nobody_used_for_a_month(
    java: Java, spark: Path, cache: Path
) -> None:
    old, begun = left(cache / "spark-1.jsa", 31), left(cache / "spark-2.new", 31, BEGUN)
    recent, other = left(cache / "spark-3.jsa", 29), left(cache / "notes.jsa", 99)
    assert writes(class_archive.options(java, spark))
    assert [each.exists() for each in (old, begun, recent, other)] == [False, False, True, True]


def test_an_archive_that_is_used_stays(java: Java, spark: Path, cache: Path) -> None:
    archive = left(class_archive.path(java, spark), 31)
    assert uses(class_archive.options(java, spark))
    another = Java(java.home, "21.0.2", "a test")
    assert writes(class_archive.options(another, spark))
    assert archive.exists()


def test_an_archive_of_a_jvm_that_runs_for_months_stays(
    java: Java, spark: Path, cache: Path
) -> None:
    archive = left(class_archive.path(java, spark), 31)
    program = (
        "import sys; from pathlib import Path\n"
        "from odfbuild.engine.spark.session import class_archive\n"
        "from odfbuild.engine.spark.session.java import Java\n"
        f"java = Java(Path({str(java.home)!r}), {java.version!r}, 'a test')\n"
        f"print(class_archive.options(java, Path({str(spark)!r})), flush=True)\n"
        "sys.stdin.read()"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert running.stdout is not None and str(archive) in running.stdout.readline()
        os.utime(archive, (time.time() - 31 * DAY,) * 2)
        another = Java(java.home, "21.0.2", "a test")
        assert writes(class_archive.options(another, spark))
        assert archive.exists()
    finally:
        running.communicate()
    assert writes(class_archive.options(another, spark))
    assert not archive.exists()
