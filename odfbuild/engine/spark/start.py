"""Start the engine: a JVM comes up while Python reads what talks to it.

Imports nothing that takes long: of all that happens between a command and the result of its first
step, the start of the JVM is what everything else waits for.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import TYPE_CHECKING

from odfbuild.engine.settings import DEFAULTS, EngineSettings, FileAccess
from odfbuild.engine.spark.session.recovery import Recovery
from odfbuild.engine.spark.session.session import Session

if TYPE_CHECKING:
    from odfbuild.engine.spark.engine import SparkEngine


def start_engine(
    settings: EngineSettings = DEFAULTS, reach: FileAccess | None = None
) -> SparkEngine:
    """Start Spark as `settings` say, fenced in to `reach`; takes seconds.

    Raises `EnvironmentProblem` when there is no usable Java, or no such cluster.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="imports of the engine") as imports:
        imports.submit(import_module, "odfbuild.engine.spark.engine")
        session = Session(settings, reach)
    from odfbuild.engine.spark.engine import SparkEngine

    return SparkEngine(Recovery(session))
