"""How a JVM with Spark is started, how its sessions are set up, and how PySpark lets it go."""

from __future__ import annotations

import contextlib
import logging
import os
import struct
import warnings
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from odfbuild.engine.spark.internals.jvm import classes_in
from odfbuild.engine.spark.internals.requests import hand_lists_over, keep_names, release_together
from odfbuild.extras import missing_engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OPENED = """java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio java.util
    java.util.concurrent java.util.concurrent.atomic jdk.internal.ref sun.nio.ch sun.nio.cs
    sun.security.action sun.util.calendar"""
"""Packages of Java that Spark looks into; a package that a Java has not is passed over."""
_VECTORS = "jdk.incubator.vector"
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j")


def spark_home() -> Path:
    """The folder of the installed Spark; nothing of it is imported."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise missing_engine("the engine")
    return Path(found.origin).parent


def has_jars(home: Path) -> bool:
    """Whether the classes of Spark lie where an installation has them."""
    return any((home / "jars").glob("spark-core_*.jar"))


def environment(home: Path, answer: Path) -> dict[str, str]:
    """Variables for a JVM that writes to the file `answer` how it can be reached."""
    return {
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(answer),
        "SPARK_HOME": str(home),
        "SPARK_CONNECT_MODE": "0",
    }


def module_options(java_home: Path) -> list[str]:
    """Options of the JVM without which Spark does not run in the Java at `java_home`."""
    try:
        released = (java_home / "release").read_text(encoding="utf-8")
    except OSError:
        released = ""
    return [
        *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED.split()),
        *([f"--add-modules={_VECTORS}"] if _VECTORS in released else []),
        "-XX:+IgnoreUnrecognizedVMOptions",
        "-Djdk.reflect.useDirectMethodHandle=false",
        "-Dio.netty.tryReflectionSetAccessible=true",
    ]


def program(home: Path, conf: Mapping[str, str]) -> list[str]:
    """What the JVM is to run: Spark with the settings `conf`, waiting for PySpark."""
    return [
        "-cp",
        os.pathsep.join((str(home / "conf"), str(home / "jars" / "*"))),
        *(f"-D{name}={value}" for name, value in conf.items()),
        "org.apache.spark.api.python.PythonGatewayServer",
    ]


def read_answer(answer: Path) -> tuple[int, str]:
    """The port and the secret by which a JVM can be reached."""
    data = answer.read_bytes()
    port, length = struct.unpack_from(">ii", data)
    return port, data[8 : 8 + length].decode()


def connected(port: int, secret: str) -> SparkSession:
    """The session of PySpark in the JVM that waits at `port`."""
    os.environ["PYSPARK_GATEWAY_PORT"] = str(port)
    os.environ["PYSPARK_GATEWAY_SECRET"] = secret
    try:
        from pyspark.sql import SparkSession

        session: SparkSession = SparkSession.builder.getOrCreate()
        release_together(session.sparkContext._gateway)
        keep_names(session._jvm)
        hand_lists_over(session._jvm)
        return session
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]


def set_up(spark: SparkSession, settings: Mapping[str, str]) -> None:
    """Give a session `settings`, in one question to the JVM."""
    known = classes_in(spark._jvm)
    key = frozenset(settings.items())
    given = known.settings.get(key)
    if given is None:
        given = known.new("HashMap")
        for name, value in settings.items():
            given.put(name, value)
        known.settings[key] = given  # only now, because other threads read it meanwhile
    known.sessions.applyModifiableSettings(spark._jsparkSession, given)


def let_run_python(spark: SparkSession, executable: str) -> None:
    """Let tasks of a session run Python, which is called `executable` where they run."""
    context = spark.sparkContext
    context.pythonExec = executable
    # It writes to stderr when the JVM ends before it, which is how sessions end.
    context._accumulatorServer.handle_error = lambda *_: None


def let_go(spark: SparkSession, *, ended: bool) -> None:
    """Let go of a session whose JVM has `ended`, or is to be ended in order."""
    context = spark.sparkContext
    receiver, context._accumulatorServer = context._accumulatorServer, None
    if receiver is not None:
        # Whether it is to end it asks itself twice a second, and nobody has to wait for that.
        Thread(target=receiver.shutdown, daemon=True).start()
    if not ended:
        # A JVM that died is stopped already.
        with contextlib.suppress(Exception), warnings.catch_warnings(action="ignore"):
            spark.stop()
    forget()


def forget() -> None:
    """Let go of all that PySpark keeps of the session of this process, which has ended."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None


def silence() -> None:
    """Keep PySpark from logging: errors themselves reach the user.

    Spark logs each refused query with its stack on stderr, py4j each call to a JVM that ended (also
    that which forgets an object, long after), some of them as the root logger.
    """
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"
