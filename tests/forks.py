"""Processes that are forked from one which has done the imports of all of them.

There is one such process for each that runs tests, so that one list says what it imports.
"""

from __future__ import annotations

import multiprocessing

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        "deltalake",
        "pandas",
        "pyiceberg.catalog.sql",
        "pytest",
        "s3fs",
        "odfbuild.apply.recorded",
        "odfbuild.cli.main",
        "odfbuild.cli.apply",
        "odfbuild.engine.spark.engine",
        "odfbuild.exchange.repositories.open",
        "odfbuild.exchange.tables.delta",
        "odfbuild.exchange.tables.iceberg",
        "odfbuild.exchange.tables.kartothek.format",
        "odfbuild.exchange.tables.parquet",
        "odfbuild.exchange.tables.publish",
        "tests.apply.imported",
        "tests.apply.plain_engine",
        "tests.cli.real",
        "tests.exchange.repositories.transfers.test_killed_pushes",
        "tests.exchange.tables.processes",
    ]
)
