"""Conformance vectors: one JSON file a family, read from `ODFBUILD_CONFORMANCE_DIR`.

Without that variable the copy beside this file, `data/`, is used, and `more/`: cases of our own in
the same format, whose expectations follow from the specification. A family that is not there has no
cases.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

DEFAULT = Path(__file__).parent / "data"
MORE = Path(__file__).parent / "more"
ASKED: dict[str, set[str]] = {}
"""Kinds of cases that some test asked for, by family."""


def found(family: str) -> list[Any]:
    """All cases of a family."""
    given = os.environ.get("ODFBUILD_CONFORMANCE_DIR")
    folders = [Path(given)] if given else [DEFAULT, MORE]
    files = [folder / f"{family}.json" for folder in folders]
    return [
        case
        for file in files
        if file.exists()
        for case in json.loads(file.read_text("utf-8"))["cases"]
    ]


def cases(family: str, *kinds: str) -> list[Any]:
    """Parameters for `pytest.mark.parametrize`, one a case (of the given kinds), by its id."""
    ASKED.setdefault(family, set()).update(kinds)
    every = found(family)
    if not every:
        return [pytest.param(None, id=family, marks=pytest.mark.skip(f"no {family}.json"))]
    chosen = [case for case in every if not kinds or case["kind"] in kinds]
    return [pytest.param(case, id=case["id"]) for case in chosen]
