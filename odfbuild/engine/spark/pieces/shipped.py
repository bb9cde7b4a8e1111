"""Give executors this package: the same code as the coordinator's, whatever is installed there.

Their Python is the one that `spark.pyspark.python` or PYSPARK_PYTHON name, else `python3`; on this
machine it is the one that runs odfbuild.
"""

from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import odfbuild
from odfbuild.engine.spark.internals.process import let_run_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAME = "odfbuild.zip"
_ONE_AT_A_TIME = Lock()
"""Several datasets may need it at once."""


def ship(spark: SparkSession, folder: Path) -> None:
    """Let Python workers of a session import this package, from an archive made in `folder`."""
    with _ONE_AT_A_TIME:
        _ship(spark, folder / _NAME)


def _ship(spark: SparkSession, archive: Path) -> None:
    if archive.exists():
        return
    context = spark.sparkContext
    named = context.getConf().get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON")
    here = (context.master or "").startswith("local")
    let_run_python(spark, named or (sys.executable if here else "python3"))
    home = Path(odfbuild.__file__).parent
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as written:
        for file in sorted(home.rglob("*.py")):
            written.write(file, file.relative_to(home.parent))
    context.addPyFile(str(archive))
