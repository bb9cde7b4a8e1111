"""`kill -9` before every change of a file of a table, then a rerun: readers see whole states."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apply.killer import Killer
from tests.apply.tiny import Tiny
from tests.exchange.tables.tables import FORMATS, Format

pytestmark = pytest.mark.long

KILLED = -9
STEPPED = [each for each in FORMATS if each.has_steps]
BEFORE, AFTER = [1, 2, 3], [1, 2, 3, 4]


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    with Killer("odfbuild.exchange.tables.publish", "pandas", "duckdb") as started:
        yield started


def ids(format: Format, root: Path) -> list[int] | None:
    """What each reader sees, which has to be the same; `None`: no table is there."""
    folder = root / "lake" / "root"
    if not format.is_there(folder):
        return None
    found = [sorted(reader(folder)["id"].to_pylist()) for reader in format.readers.values()]
    assert all(each == found[0] for each in found)
    return found[0]


@pytest.mark.parametrize("format", STEPPED, ids=lambda each: each.name)
@pytest.mark.parametrize("first", [True, False], ids=["creation", "increment"])
@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_a_publication_that_is_killed_anywhere_leaves_the_old_state_and_is_done_by_the_next_apply(
    killer: Killer, tmp_path: Path, format: Format, first: bool, every: int
) -> None:
    tiny = Tiny.fresh(tmp_path / "before")
    config = tiny.root / "odfbuild.yaml"
    entry = f"{{match: [root], {format.settings}, location: lake, partitionBy: [id]}}"
    declared = f"{config.read_text()}  tables: [{entry}]\n"
    if first:
        assert killer.run(tiny.root, "apply", "-y")[0] == 0
        config.write_text(declared)
    else:
        config.write_text(declared)
        assert killer.run(tiny.root, "apply", "-y")[0] == 0
        # The records are committed, and the table is behind.
        config.write_text(declared.replace("tables:", "vars:").replace(f"[{entry}]", "{}"))
        tiny.arrive(2)
        assert killer.run(tiny.root, "apply", "-y")[0] == 0
        config.write_text(declared)
    old, new = (None, BEFORE) if first else (BEFORE, AFTER)
    counted = tmp_path / "counted"
    shutil.copytree(tiny.root, counted, symlinks=True)
    code, steps = killer.run(counted, "apply", "-y", also="lake")
    assert code == 0
    assert steps > 3
    assert ids(format, counted) == new
    seen = set()
    for step in range(0, steps, every):
        root = tmp_path / f"killed-{step}"
        shutil.copytree(tiny.root, root, symlinks=True)
        assert killer.run(root, "apply", "-y", kill_at=step, also="lake")[0] == KILLED
        state = ids(format, root)
        assert state in (old, new)
        seen.add(str(state))
        assert killer.run(root, "apply", "-y")[0] == 0
        assert ids(format, root) == new
        shutil.rmtree(root)
    assert str(old) in seen
