"""Definitions of the shapes that the public examples of kamu have are valid as they stand.

Sources by address, by container and from chains of blocks; preparation; queries of DataFusion,
Flink and RisingWave with the same constructs; joins as of a time, windows, several steps.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

from tests.cli.real import NO_JVM, in_pipe

SHAPES = Path(__file__).parent / "shapes"


def test_definitions_of_these_shapes_are_valid_and_read_their_inputs(tmp_path: Path) -> None:
    root = tmp_path / "p"
    shutil.copytree(SHAPES, root)
    said = in_pipe(root, ["validate"], NO_JVM)
    assert said.code == 0, said.text
    assert "27 datasets defined, all valid." in said.text
    found = json.loads(in_pipe(root, ["lint", "--json"], NO_JVM).text)
    rules = Counter(each["rule"] for each in found["findings"])
    assert set(rules) <= {"no-description", "select-star"}, rules


def test_they_can_be_planned(tmp_path: Path) -> None:
    root = tmp_path / "p"
    shutil.copytree(SHAPES, root)
    said = in_pipe(root, ["plan"], {**NO_JVM, "ACCOUNT": "a", "CHAIN_KEY": "k"})
    assert said.code in (0, 2), said.text
    assert "refused" not in said.text
    assert "27 to create" in said.text
