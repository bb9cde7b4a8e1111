"""A Spark standalone cluster on loopback: master and workers, as the pyspark package has them."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from odfbuild.engine.spark.internals.process import module_options
from odfbuild.engine.spark.session.java import Java, find_java

_SPARK_HOME = Path(pyspark.__file__).parent
_SECONDS = 300
_PACKAGE = "org.apache.spark.deploy"
# Workers start their executors as Spark does, with a module that a reduced Java lacks.
_SHIM = """#!/bin/sh
for each do
  shift
  [ "$each" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$each"
done
exec {java} "$@"
"""


# What a worker sees that does not share some folders: nothing in them, or files of the same size
# and time with two records on each line.
ELSEWHERE = r"""
set -e
for each in $HIDDEN; do mount -t tmpfs none "$each"; done
for each in $JOINED; do
  kept=$(mktemp -d)
  for file in "$each"/*; do
    sed 'N;s/\n/ /' "$file" > "$kept/${file##*/}"
    touch -r "$file" "$kept/${file##*/}"
  done
  mount -t tmpfs none "$each"
  cp -p "$kept"/* "$each"
  rm -r "$kept"
done
exec "$@"
"""
# A worker that is killed starts again, as those who run clusters have it.
_AGAIN = """
trap 'kill $worker; wait $worker; exit' TERM
while :; do "$@" & worker=$!; wait $worker; sleep 0.2; done
"""


def why_nothing_can_be_hidden() -> str | None:
    """Why no program can run in a mount namespace of its own here; `None` where it can."""
    test = ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"]
    try:
        done = subprocess.run(test, capture_output=True, text=True, check=False)
    except OSError as error:
        return f"unshare: {error.strerror}"
    return f"unshare -m: {done.stderr.strip()}" if done.returncode else None


@contextmanager
def spark_cluster(
    folder: Path,
    workers: int = 2,
    *,
    memory: str = "1g",
    hidden: Sequence[Path] = (),
    hidden_from_last: Sequence[Path] = (),
    joined: Sequence[Path] = (),
) -> Iterator[str]:
    """Start a cluster of `workers` with two cores and `memory` each; gives its address.

    Workers find nothing in folders that are `hidden`, or hidden from the last of them; in files of
    `joined` ones two lines are one, of as many bytes.
    """
    java = find_java()
    folder.mkdir(exist_ok=True)
    home = folder / "java"
    (home / "bin").mkdir(parents=True)
    shim = home / "bin" / "java"
    shim.write_text(_SHIM.format(java=java.executable))
    shim.chmod(0o755)
    with ExitStack() as stack:
        log = folder / "master.log"
        stack.enter_context(
            _started(java, home, log, "master.Master", "--host", "127.0.0.1", "--port", "0")
        )
        address = _awaited(log, r"Starting Spark master at (spark://\S+)")
        for number in range(workers):
            options = ("--host", "127.0.0.1", "--cores", "2", "--memory", memory)
            place = ("--work-dir", str(folder / f"worker-{number}"), address)
            log = folder / f"worker-{number}.log"
            elsewhere = {}
            if hidden or hidden_from_last or joined:
                last = hidden_from_last if number == workers - 1 else ()
                elsewhere["HIDDEN"] = " ".join(map(str, (*hidden, *last)))
                elsewhere["JOINED"] = " ".join(map(str, joined))
                # What tasks put aside can be seen there.
                elsewhere["SPARK_LOCAL_DIRS"] = str(folder / "local")
            worker = _started(
                java, home, log, "worker.Worker", *options, *place, elsewhere=elsewhere
            )
            stack.enter_context(worker)
        for number in range(workers):
            _awaited(folder / f"worker-{number}.log", r"(Successfully registered with master)")
        yield address


@contextmanager
def _started(
    java: Java,
    home: Path,
    log: Path,
    name: str,
    *arguments: str,
    elsewhere: Mapping[str, str] | None = None,
) -> Iterator[None]:
    command = [
        *(["unshare", "-m", "sh", "-c", ELSEWHERE, "sh"] if elsewhere else []),
        *(["sh", "-c", _AGAIN, "sh"] if elsewhere else []),
        str(java.executable),
        "-Xmx256m",
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        *module_options(java.home),
        "-cp",
        os.pathsep.join((str(_SPARK_HOME / "conf"), str(_SPARK_HOME / "jars" / "*"))),
        f"{_PACKAGE}.{name}",
        *("--webui-port", "0"),
        *arguments,
    ]
    environment = {
        **os.environ,
        "SPARK_HOME": str(_SPARK_HOME),
        "JAVA_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SCALA_VERSION": "2.13",
        **(elsewhere or {}),
    }
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    try:
        yield
    finally:
        process.terminate()
        process.wait(_SECONDS)


def _awaited(log: Path, pattern: str) -> str:
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        found = re.search(pattern, log.read_text())
        if found:
            return found.group(1)
        time.sleep(0.05)
    raise AssertionError(f"{log.name} never said {pattern}:\n{log.read_text()[-3000:]}")
