"""What is kept of definitions saves reading them again, and is never what the files do not say."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from odfbuild.project import definitions
from odfbuild.project.load import load_project
from odfbuild.project.model import Definition
from tests.project.write_project import derived_yaml, root_yaml, write_project

NAMES = ("aa", "bb", "cc")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {f"{name}.yaml": root_yaml(name) for name in NAMES}
    files |= {f"{name}-next.yaml": derived_yaml(f"{name}-next", name) for name in NAMES}
    root = write_project(tmp_path / "project", files)
    for file in (root / "datasets").iterdir():
        settle(file)
    return root


def settle(file: Path, then: float = 1_000) -> None:
    """As if `file` was written a while ago: what is newer than two seconds is not trusted."""
    os.utime(file, (time.time() - then, time.time() - then))


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that are read and decoded, as they are."""
    found: list[str] = []
    read_file = definitions.read_file

    def spy(config: object, path: str) -> object:
        found.append(Path(path).name)
        return read_file(config, path)  # type: ignore[arg-type]

    monkeypatch.setattr(definitions, "read_file", spy)
    return found


def plain(found: tuple[Definition, ...]) -> list[tuple[object, ...]]:
    return [
        (each.snapshot, each.name, each.folded, each.inputs, str(each.location), each.document)
        for each in found
    ]


def test_files_that_did_not_change_are_not_read_again(project: Path, reads: list[str]) -> None:
    first = load_project(project).definitions
    reads.clear()
    again = load_project(project).definitions
    assert reads == []
    assert plain(again) == plain(first)
    assert again == first
    assert [each.key for each in again] == [each.key for each in first]


def test_another_content_of_the_same_size_and_time_is_read(project: Path, reads: list[str]) -> None:
    load_project(project)
    file = project / "datasets" / "bb.yaml"
    before = file.stat()
    file.write_text(file.read_text().replace("data/*.csv", "data/*.CSV"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (file.stat().st_mtime_ns, file.stat().st_size) == (before.st_mtime_ns, before.st_size)
    reads.clear()
    changed = load_project(project).definitions
    assert reads == ["bb.yaml"]
    assert "data/*.CSV" in repr([each.snapshot for each in changed])


def test_a_file_of_a_moment_ago_is_read_again(project: Path, reads: list[str]) -> None:
    file = project / "datasets" / "bb.yaml"
    ahead = time.time() + 1_000  # whatever the clock says until the second reading
    os.utime(file, (ahead, ahead))
    load_project(project)
    reads.clear()
    load_project(project)
    assert reads == ["bb.yaml"]


def test_a_cache_with_any_damage_is_no_cache(project: Path) -> None:
    right = plain(load_project(project).definitions)
    file = project / ".odfbuild" / "definitions.bin"
    whole = file.read_bytes()
    for place in (0, 30, len(whole) // 3, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert plain(load_project(project).definitions) == right
        file.write_bytes(whole[:place])
        assert plain(load_project(project).definitions) == right


def test_what_is_gone_does_not_stay_in_the_cache(project: Path, reads: list[str]) -> None:
    load_project(project)
    cache = project / ".odfbuild" / "definitions.bin"
    size = cache.stat().st_size
    file = project / "datasets" / "bb.yaml"
    for step in range(1, 40):
        file.write_text(root_yaml("bb", glob=f"data/{step}/*.csv"))
        settle(file, 1_000 - step)
        load_project(project)
    assert cache.stat().st_size < 3 * size
    reads.clear()
    kept = plain(load_project(project).definitions)
    assert reads == []
    cache.unlink()
    assert kept == plain(load_project(project).definitions)
