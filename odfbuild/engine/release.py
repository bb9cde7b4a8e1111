"""Which engine this is: what a chain pins, so that everybody knows what made its records.

Imports nothing heavy: plans ask for it, too.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

SPARK = "4.3.0"
"""The newest release that `pyproject.toml` allows, which is what an installation gets."""
PINNED = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.variable.substitute": "false",
    "spark.sql.optimizer.disableHints": "true",
    "spark.sql.timeType.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "128",
}
"""Settings that can change a result. They are part of the engine's version."""


_VERSION = re.compile(r"""^__version__\b.*=\s*["']([^"']+)["']""", re.MULTILINE)


@cache
def engine_version() -> str:
    """What computes: release of Spark and a digest of the settings that matter."""
    text = "\n".join(f"{name}={value}" for name, value in sorted(PINNED.items()))
    return f"{release_of_spark()}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def release_of_spark() -> str:
    """As the installed package says it; neither imported nor looked up in the list of packages.

    Where none is installed, the one that the extra `spark` would install: plans are the same then.
    """
    spec = find_spec("pyspark")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        found = _VERSION.search(Path(folder, "version.py").read_text(encoding="utf-8"))
        if found:
            return found.group(1)
    return SPARK
