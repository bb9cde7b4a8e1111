#!/usr/bin/env python3
"""Let the next month of flights arrive, from `incoming/` into `data/flights/`.

Standard library only; says what arrived, ends with 1 when no file is waiting.
"""

from __future__ import annotations

import shutil
from pathlib import Path

HERE = Path(__file__).parent


def main() -> int:
    """Copy one file; returns the exit code."""
    flights = HERE / "data" / "flights"
    for waiting in sorted((HERE / "incoming").glob("*.csv.gz")):
        target = flights / waiting.name
        if target.exists():
            continue
        # A reader must never see half a file, so it gets its name when it is complete.
        partial = target.with_suffix(".part")
        shutil.copyfile(waiting, partial)
        partial.replace(target)
        print(f"arrived: {target.relative_to(HERE).as_posix()}")
        return 0
    print("no month is waiting")
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
