"""A Spark Connect session with settings under which SQL means the same as locally."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odfbuild.engine.release import PINNED
from odfbuild.engine.settings import EngineSettings, is_tuning
from odfbuild.engine.spark.connect.lost import refused_by
from odfbuild.engine.spark.connect.workers import why_not_shared
from odfbuild.engine.spark.internals.connect import opened
from odfbuild.engine.spark.results.frames import PRUNING
from odfbuild.errors import EngineProblem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HARMLESS = re.compile(
    r"spark\.sql\.(warehouse\.dir|catalogImplementation|artifact\.\w.*|ui\.\w.*|debug\.\w.*"
    r"|execution\.arrow\.\w.*|connect\.\w.*|codegen\.\w.*)"
)
"""Settings of a server that change no result, or none of what it is asked."""
_TRIES = 6
_MOST_MILLIS = 5000


def connected(settings: EngineSettings, planner: SparkSession) -> Any:
    """A new session with the server at `settings.master`, set up as `planner` is.

    Raises `EngineProblem` E0527 without the packages for it, E0528 for a server that may read
    queries otherwise, E0529 for one that does not answer, or does not let us in.
    """
    session = _opened(settings)
    try:
        _check_release(session, planner, settings.address)
        _adopt_settings(session, planner, settings)
    except EngineProblem:
        session.stop()
        raise
    except Exception as error:
        raise refused_by(error, settings.address) or error from None
    return session


def check_sees(session: Any, shared: Path, address: str) -> None:
    """Raise `EngineProblem` E0547 unless the server and we find each other's files in `shared`."""
    why = why_not_shared(session, address, shared)
    if why is not None:
        raise EngineProblem(
            f"the Spark Connect server at {address} does not share {shared}",
            code="E0547",
            notes=(why,),
            help="keep the project's folder on storage that the server, its workers and this "
            "machine see under the same path, and let them read and write there",
        )


def _opened(settings: EngineSettings) -> Any:
    # What it says of its tries is for developers; errors reach the user.
    warnings.filterwarnings("ignore", module=r"pyspark\.sql\.connect\.")
    with warnings.catch_warnings(action="ignore"):
        try:
            return opened(settings.master, _TRIES, _MOST_MILLIS)
        except ImportError as error:
            raise EngineProblem(
                f"the packages for Spark Connect are not installed: {error}".split(". ")[0],
                code="E0527",
                help="pip install 'odfbuild[connect]'",
            ) from None
        except Exception as error:
            raise refused_by(error, settings.address) or error from None


def _check_release(session: Any, planner: SparkSession, address: str) -> None:
    if session.version != planner.version:
        raise _unfit(
            f"the Spark Connect server at {address} runs Spark {session.version}, "
            f"this is odfbuild with Spark {planner.version}",
            "start a server of the same release, which `odfbuild version` names",
        )
    extensions = session.conf.get("spark.sql.extensions", None)
    if extensions:
        raise _unfit(
            f"the Spark Connect server at {address} changes how Spark reads queries",
            "start a server without spark.sql.extensions for odfbuild",
            f"spark.sql.extensions is {extensions}",
        )


def _adopt_settings(session: Any, planner: SparkSession, settings: EngineSettings) -> None:
    """Give `session` the pinned settings, and those of Spark SQL that the server has otherwise."""
    for name, value in settings.conf.items():
        if is_tuning(name):
            session.conf.set(name, value)
    for name, value in PINNED.items():
        session.conf.set(name, value)
    for name in _other(session, planner):
        value = planner.conf.get(name, None)
        try:
            if value is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, value)
        except Exception:  # one that cannot be changed is told below
            continue
    left = _other(session, planner)
    if left:
        raise _unfit(
            f"the Spark Connect server at {settings.address} has settings that may change results",
            f"start it without {', '.join(left)}",
            *(f"{name} is {session.conf.get(name)}" for name in left[:5]),
        )
    session.conf.set(PRUNING, "false")  # see `frames.read_every_row`; all steps share the session


def _other(session: Any, planner: SparkSession) -> list[str]:
    """Names of settings of Spark SQL that differ and may matter."""
    return sorted(
        name
        for name, value in session.conf.getAll.items()
        if name.startswith("spark.sql.")
        and not is_tuning(name)
        and not _HARMLESS.fullmatch(name)
        and planner.conf.get(name, None) != value
    )


def _unfit(message: str, help: str, *notes: str) -> EngineProblem:
    return EngineProblem(message, code="E0528", notes=notes, help=help)
