"""A server of Spark Connect on loopback, as the pyspark package has it."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyspark

from odfbuild.engine.spark.internals.process import module_options
from odfbuild.engine.spark.session.java import find_java
from tests.servers.cluster import ELSEWHERE

_SPARK_HOME = Path(pyspark.__file__).parent
_SECONDS = 300
_STARTED = re.compile(r"Spark Connect server started at: \S*?:(\d+)\b")


@contextmanager
def connect_server(
    folder: Path,
    conf: Mapping[str, str] | None = None,
    *,
    hidden: Sequence[Path] = (),
    variables: Mapping[str, str] | None = None,
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Start a server in one JVM with further settings; gives its address and its process.

    It finds nothing in folders that are `hidden`.
    """
    java = find_java()
    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "spark.master": "local[2]",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **(conf or {}),
    }
    command = [
        *(["unshare", "-m", "sh", "-c", ELSEWHERE, "sh"] if hidden else []),
        str(java.executable),
        "-Xmx1g",
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        *module_options(java.home),
        "-cp",
        os.pathsep.join((str(_SPARK_HOME / "conf"), str(_SPARK_HOME / "jars" / "*"))),
        *(f"-D{name}={value}" for name, value in settings.items()),
        "org.apache.spark.sql.connect.service.SparkConnectServer",
    ]
    log = folder / "connect.log"
    environment = {
        **os.environ,
        "SPARK_HOME": str(_SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "HIDDEN": " ".join(map(str, hidden)),
        **(variables or {}),
    }
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    try:
        yield f"sc://127.0.0.1:{_port(process, log)}", process
    finally:
        process.kill()
        process.wait(_SECONDS)


def _port(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        found = _STARTED.search(log.read_text())
        if found:
            return found.group(1)
        time.sleep(0.05)
    raise AssertionError(f"the server did not start:\n{log.read_text()[-3000:]}")
