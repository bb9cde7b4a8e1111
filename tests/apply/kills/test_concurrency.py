"""Two applies of one project exclude each other by dataset and lose nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apply.tiny import NO_JVM, Tiny

pytestmark = pytest.mark.spark


def test_a_dataset_that_another_process_holds_is_named_and_left_alone(tmp_path: Path) -> None:
    tiny = Tiny.fresh(tmp_path / "p")
    with tiny.workspace().claim(["root", "derived"]):
        done = tiny.run("apply", "-y", "--lock-timeout", "0")
    assert done.returncode == 9
    assert "another process holds the lock of 'root'" in done.stderr
    assert tiny.workspace().aliases() == []


def test_two_applies_at_once_record_everything_once(tmp_path: Path) -> None:
    tiny = Tiny.fresh(tmp_path / "p")
    both = [tiny.start("apply", "-y") for _ in range(2)]
    said = [process.communicate(timeout=200) for process in both]
    codes = {process.returncode for process in both}
    assert 0 in codes, said
    assert codes <= {0, 5, 9}, said
    assert tiny.ids("root") == [1, 2, 3] == tiny.ids("derived")
    assert tiny.run("verify").returncode == 0
    tiny.apply(env=NO_JVM)
