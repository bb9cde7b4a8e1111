"""Conformance vectors: one JSON file a family, read from `ODFBUILD_CONFORMANCE_DIR`.

Without that variable the copy beside this file, `data/`, is used. A family that is not there has no
cases.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

DEFAULT = Path(__file__).parent / "data"
ASKED: dict[str, set[str]] = {}
"""Kinds of cases that some test asked for, by family."""


def folder() -> Path:
    return Path(os.environ.get("ODFBUILD_CONFORMANCE_DIR") or DEFAULT)


def cases(family: str, *kinds: str) -> list[Any]:
    """Parameters for `pytest.mark.parametrize`, one a case (of the given kinds), by its id."""
    ASKED.setdefault(family, set()).update(kinds)
    file = folder() / f"{family}.json"
    if not file.exists():
        return [pytest.param(None, id=family, marks=pytest.mark.skip(f"no {family}.json"))]
    found = json.loads(file.read_text("utf-8"))["cases"]
    chosen = [case for case in found if not kinds or case["kind"] in kinds]
    return [pytest.param(case, id=case["id"]) for case in chosen]
