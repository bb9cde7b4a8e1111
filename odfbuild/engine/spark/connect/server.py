"""A Spark Connect session with settings under which SQL means the same as locally."""

from __future__ import annotations

import re
import secrets
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.engine.release import PINNED
from odfbuild.engine.settings import EngineSettings, is_tuning
from odfbuild.engine.spark.internals.connect import opened
from odfbuild.engine.spark.internals.status import message
from odfbuild.errors import EngineProblem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HARMLESS = re.compile(
    r"spark\.sql\.(warehouse\.dir|catalogImplementation|artifact\.\w.*|ui\.\w.*|debug\.\w.*"
    r"|execution\.arrow\.\w.*|connect\.\w.*|codegen\.\w.*)"
)
"""Settings of a server that change no result, or none of what it is asked."""
_LOST = re.compile(
    r"INVALID_(HANDLE|CURSOR)\.|RETRIES_EXCEEDED|RESPONSE_ALREADY_RECEIVED|SESSION_NOT_SAME"
    r"|NO_ACTIVE_SESSION"
)
"""Conditions that tell of the server, not of a query."""
_KINDS = re.compile("Rpc|Grpc|UnknownException")
"""Errors of the connection, and of a server that fails otherwise, as while it shuts down."""
_TRIES = 6
_MOST_MILLIS = 5000


class SessionLost(EngineProblem):
    """E0529: a server, or what it held for us, is gone; another session may do."""


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
    folder = Path(tempfile.mkdtemp(prefix="seen-", dir=shared))
    question, answer = folder / "question", folder / "answer"
    token = secrets.token_hex(8)
    why = f"nothing that it wrote is in {answer}"
    found = None
    try:
        pq.write_table(pa.table({"token": [token]}), question)
        session.read.parquet(question.as_uri()).write.parquet(answer.as_uri())
        parts = [*answer.glob("part-*")] if answer.is_dir() else []
        found = pq.read_table(parts[0])["token"].to_pylist() if parts else None
    except Exception as error:
        lost = refused_by(error, address)
        if lost is not None:
            raise lost from None
        why = message(error)[:200]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if found != [token]:
        raise EngineProblem(
            f"the Spark Connect server at {address} does not share {shared}",
            code="E0547",
            notes=(why,),
            help="keep the project's folder on storage that the server, its workers and this "
            "machine see under the same path, and let them read and write there",
        )


def refused_by(error: Exception, address: str, dataset: str | None = None) -> SessionLost | None:
    """The error for people when a server is gone or refuses to work; `None` for any other."""
    condition, text = _condition(error), " ".join(str(error).split())
    # What a query fails with has a condition of its own, but for want of memory.
    said = _LOST.match(condition) if condition else _KINDS.search(type(error).__name__)
    if not said or "OutOfMemoryError" in text:
        return None
    found = re.search(r'details = "([^"]*)"', text)
    return SessionLost(
        f"the Spark Connect server at {address} is gone, or does not take work",
        code="E0529",
        dataset=dataset,
        notes=(
            *((found[1] if found else text[:600],)),
            *(
                ("nothing of it was committed", "a server whose memory is full ends: see its log")
                if dataset
                else ()
            ),
        ),
        help="start it, or correct `engine.master`; a token is taken from "
        "SPARK_CONNECT_AUTHENTICATE_TOKEN; then run `odfbuild apply` again",
    )


def _condition(error: Exception) -> str:
    asked = getattr(error, "getCondition", None)
    return str(asked() or "") if asked else ""


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
