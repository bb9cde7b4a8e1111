"""Where nothing can be written: what only reads works, the rest says what it could not write."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from odfbuild.engine.spark.session.gateway import passed_on
from odfbuild.ingest.unexpected_errors import unforeseen
from odfbuild.store.disposable import cache_folder
from tests.apply.in_process import Program
from tests.apply.tiny import Tiny


def test_a_read_only_project_is_looked_at_from_a_cache_elsewhere(
    tiny: Tiny, odfbuild: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odfbuild.apply()
    (tiny.root / ".odfbuild").rename(tmp_path / "aside")
    before = sorted(tiny.root.rglob("*"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "mine"))
    allowed = os.access

    def access(path: str | Path, mode: int) -> bool:
        return allowed(path, mode) and not (mode & os.W_OK and Path(path) == tiny.root)

    monkeypatch.setattr(os, "access", access)
    assert cache_folder(tiny.root).parent == tmp_path / "mine" / "odfbuild" / "projects"
    assert "up to date" in odfbuild.ok("status").out
    assert "all blocks and objects are intact" in odfbuild.ok("verify").out
    assert sorted(tiny.root.rglob("*")) == before


@pytest.mark.parametrize(
    ("number", "way_out"),
    [
        (errno.ENOSPC, "make room on the disk"),
        (errno.EDQUOT, "make room on the disk"),
        (errno.EROFS, "let yourself write there"),
        (errno.EACCES, "let yourself write there"),
    ],
)
def test_a_disk_that_takes_nothing_is_no_defect(number: int, way_out: str, tmp_path: Path) -> None:
    error = unforeseen(OSError(number, os.strerror(number), "chains/x"), tmp_path, "doing it")
    assert error.code == "E0910"
    assert error.message == f"chains/x cannot be used: {os.strerror(number)}"
    assert error.help and error.help.startswith(f"{way_out}, then run the same command again")
    assert not list(tmp_path.iterdir())


def test_a_defect_is_told_whole_where_no_file_can_be_written(tmp_path: Path) -> None:
    error = unforeseen(ValueError("odd"), tmp_path / "nowhere", "doing it")
    assert (error.code, error.message) == (
        "E0999",
        "internal error while doing it: ValueError: odd",
    )
    assert error.notes == ("ValueError: odd",)
    assert error.help == "this is a defect of odfbuild; please report it with these lines"


@pytest.mark.parametrize(
    ("verb", "shown"), [("graph", "root\n?? derived\n"), ("plan --json", "Z\\u00fcrich")]
)
def test_text_that_the_terminal_cannot_show_is_replaced(tiny: Tiny, verb: str, shown: str) -> None:
    definition = tiny.root / "datasets" / "root.yaml"
    definition.write_text(
        definition.read_text() + "    - kind: SetInfo\n      description: Zürich\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "odfbuild", *verb.split()],
        cwd=tiny.root,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    )
    assert shown in done.stdout.decode("ascii")


def test_a_jvm_reads_names_of_files_as_utf_8_whatever_the_language() -> None:
    turkish = {"LC_ALL": "tr_TR.ISO-8859-9", "LANG": "tr_TR", "SECRET": "x"}
    assert passed_on(turkish) == {"LC_ALL": "C.UTF-8", "LANG": "tr_TR"}
