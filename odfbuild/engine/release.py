"""Which engine this is: what a chain pins, so that everybody knows what made its records.

Imports nothing heavy: plans ask for it, too.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import version

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


@cache
def engine_version() -> str:
    """What computes: release of Spark and a digest of the settings that matter."""
    text = "\n".join(f"{name}={value}" for name, value in sorted(PINNED.items()))
    return f"{version('pyspark')}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
