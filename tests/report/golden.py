"""Whole screens kept as files. `ODFBUILD_UPDATE_GOLDEN=1 pytest` rewrites them for review."""

from __future__ import annotations

import os
from difflib import unified_diff
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "golden"


def assert_golden(name: str, actual: str) -> None:
    """`actual` equals the file of that name, byte for byte."""
    file = FOLDER / name
    if os.environ.get("ODFBUILD_UPDATE_GOLDEN"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(actual + "\n", encoding="utf-8")
    expected = file.read_text(encoding="utf-8")
    changes = unified_diff(expected.splitlines(), (actual + "\n").splitlines(), name, "actual")
    assert actual + "\n" == expected, "\n".join(map(repr, changes))
