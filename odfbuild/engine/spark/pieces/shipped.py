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
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import odfbuild
from odfbuild.engine.spark.internals.process import let_run_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAME = "odfbuild.zip"
_ONE_AT_A_TIME = Lock()
"""Several datasets may need it at once."""
_HAVE_IT: WeakSet[Any] = WeakSet()
"""Sessions that have the package."""


def ship(spark: SparkSession, folder: Path) -> None:
    """Let Python workers of a session import this package, from an archive made in `folder`."""
    context = spark.sparkContext
    with _ONE_AT_A_TIME:
        if context in _HAVE_IT:
            return
        _let_run(spark)
        context.addPyFile(str(_archive(folder)))
        _HAVE_IT.add(context)


def ship_to_server(session: Any, folder: Path) -> None:
    """The same for the session of a server of Spark Connect, which says itself what Python is."""
    with _ONE_AT_A_TIME:
        if session in _HAVE_IT:
            return
        session.addArtifacts(str(_archive(folder)), pyfile=True)
        _HAVE_IT.add(session)


def _let_run(spark: SparkSession) -> None:
    context = spark.sparkContext
    named = context.getConf().get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON")
    here = (context.master or "").startswith("local")
    let_run_python(spark, named or (sys.executable if here else "python3"))


def _archive(folder: Path) -> Path:
    archive, home = folder / _NAME, Path(odfbuild.__file__).parent
    if archive.exists():
        return archive
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as written:
        for file in sorted(home.rglob("*.py")):
            written.write(file, file.relative_to(home.parent))
    return archive
