"""docs/architecture.md has the rooms that are there, and no room is crowded."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.console import ROOT

PACKAGE = ROOT / "odfbuild"
TEXT = (ROOT / "docs" / "architecture.md").read_text("utf-8")
ROWS = dict(re.findall(r"^\| `([\w.]+)/?` \| (.*) \|$", TEXT, re.MULTILINE))
_MOST_LINES = 600


def _folders(folder: Path) -> list[Path]:
    return sorted(each.parent for each in folder.glob("*/__init__.py"))


def test_the_rooms_are_those_of_the_package() -> None:
    modules = {file.name for file in PACKAGE.glob("*.py")} - {"__init__.py", "__main__.py"}
    assert set(ROWS) == modules | {folder.name for folder in _folders(PACKAGE)}


def test_every_folder_of_a_room_is_described_with_it() -> None:
    missing = [
        str(inner.relative_to(PACKAGE))
        for room in _folders(PACKAGE)
        for inner in _folders(room)
        if f"`{inner.name}/`" not in ROWS[room.name]
    ]
    assert missing == []
    (within,) = re.findall(r"^Within `engine/spark/`: (.*)$", TEXT, re.MULTILINE)
    inner = {folder.name for folder in _folders(PACKAGE / "engine" / "spark")}
    assert {name for name in inner if f"`{name}/`" not in within} == set()


def test_every_module_that_is_named_is_there() -> None:
    named = re.findall(r"`([\w/]+\.py)`", TEXT)
    assert named
    assert [name for name in named if not any(PACKAGE.rglob(name))] == []


def test_no_module_is_longer_than_one_can_read_at_once() -> None:
    lines = {
        str(file.relative_to(ROOT)): len(file.read_text("utf-8").splitlines())
        for file in PACKAGE.rglob("*.py")
    }
    assert {name: count for name, count in lines.items() if count > _MOST_LINES} == {}
