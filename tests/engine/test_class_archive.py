"""The archive of classes that a JVM starts from."""

from __future__ import annotations

import os
from pathlib import Path

from odfbuild.engine.spark.session import class_archive
from odfbuild.engine.spark.session.java import find_java


def test_jars_that_were_installed_again_get_an_archive_of_their_own(tmp_path: Path) -> None:
    java = find_java()
    jars = tmp_path / "jars"
    jars.mkdir()
    before = class_archive.path(java, tmp_path)
    assert class_archive.path(java, tmp_path) == before
    os.utime(jars, (1, 1))
    assert class_archive.path(java, tmp_path) != before
