"""`log --vintage`: what records were made from, at the blocks that were read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.apply.in_process import Program
from tests.apply.tiny import QUERY, Tiny


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    tiny = Tiny.fresh(tmp_path / "project")
    tiny.derive("second", "SELECT event_time, id, value + 1 AS value FROM source", "derived")
    return tiny


def vintage(odfbuild: Program, dataset: str) -> dict[str, Any]:
    found: dict[str, Any] = odfbuild.ok("log", dataset, "--vintage", "--json").data
    return found


def test_the_tree_goes_down_to_the_roots(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    found = vintage(odfbuild, "second")
    (derived,) = found["inputs"]
    (root,) = derived["inputs"]
    heads = {name: str(p.head) for name, p in tiny.workspace().projections().items()}
    assert [(each["name"], each["block"]) for each in (found, derived, root)] == [
        (name, heads[name]) for name in ("second", "derived", "root")
    ]
    assert (root["inputs"], root["last_offset"], root["behind"]) == ([], 2, 0)


def test_an_upstream_is_shown_as_it_was_read_and_not_as_it_is(
    tiny: Tiny, odfbuild: Program
) -> None:
    odfbuild.apply()
    tiny.arrive(2)
    odfbuild.ok("apply", "-y", "-s", "root derived")
    lines = odfbuild.ok("log", "second", "--vintage").out.splitlines()
    assert lines[0].startswith("second  block #3 ")
    assert lines[1].startswith("└─ derived  block #3 ")
    assert "records 0 to 2" in lines[1] and lines[1].endswith(" (1 newer block not read)")
    assert lines[2].startswith("   └─ root  block #3 ")
    assert lines[2].endswith(" (1 newer block not read)")


def test_two_paths_may_have_read_a_root_at_different_blocks(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    tiny.arrive(2)
    odfbuild.ok("apply", "-y", "-s", "root")
    file = tiny.root / "datasets" / "both.yaml"
    text = (
        (tiny.root / "datasets" / "derived.yaml").read_text().replace("name: derived", "name: both")
    )
    first = "        - datasetRef: root\n          alias: source\n"
    text = text.replace(first, first + "        - datasetRef: derived\n          alias: other\n")
    file.write_text(text)
    odfbuild.ok("apply", "-y", "-s", "both")
    root, other = vintage(odfbuild, "both")["inputs"]
    assert root["behind"] == 0
    assert other["inputs"][0]["behind"] == 1


def test_records_keep_the_query_that_made_them(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    tiny.derive("derived", QUERY.replace("10", "20"))
    tiny.arrive(2)
    odfbuild.apply()
    found = vintage(odfbuild, "derived")["eras"]
    assert [(e["sequence_number"], e["first"], e["last"], e["query"].strip()) for e in found] == [
        (1, 0, 2, QUERY),
        (4, 3, 3, QUERY.replace("10", "20")),
    ]
    shown = odfbuild.ok("log", "derived", "--vintage").out
    assert "0 to 2   SetTransform #1  " in shown
    assert "3 to 3   SetTransform #4  " in shown


def test_a_root_was_made_from_nothing_here(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    found = vintage(odfbuild, "root")
    assert (found["inputs"], found["eras"]) == ([], [])
    assert len(odfbuild.ok("log", "root", "--vintage").out.splitlines()) == 1


def test_a_block_that_was_read_and_is_lost_is_said_to_be(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    odfbuild.ok("reset", "derived", "-y")
    assert "(not part of its chain any more)" in odfbuild.ok("log", "second", "--vintage").out
