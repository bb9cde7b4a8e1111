"""Start a JVM with Spark's gateway in it.

Our own launcher instead of Spark's scripts: it works with a JRE that lacks optional modules, needs
no shell, and can use a class-data archive, which halves the start.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from odfbuild.engine.spark.internals import process as spark_process
from odfbuild.engine.spark.session import class_archive
from odfbuild.engine.spark.session.java import Java
from odfbuild.errors import EngineProblem
from odfbuild.values import Value

LOOPBACK = "127.0.0.1"
_START_SECONDS = 120
_LOOK_SECONDS = 0.005


class Gateway(Value):
    """A running JVM that waits for commands on `port`; ends when its standard input closes.

    One that leaves something behind does so then.
    """

    process: subprocess.Popen[bytes]
    port: int
    secret: str
    log: Path
    leaves_archive: bool


def _for_work(long: bool) -> list[str]:
    if long:
        return ["-XX:+UseParallelGC", "-XX:-UseGCOverheadLimit"]
    return ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]


Confine = Callable[[Sequence[str], Iterable[Path], Iterable[Path]], list[str]]
"""Makes of a command, the folders of its programs and those it writes to, one that is fenced in."""

_PASSED_ON = re.compile(
    r"(PATH|HOME|USER|LOGNAME|LANG|LC_\w+|TZ|LD_LIBRARY_PATH|TMPDIR|JAVA_TOOL_OPTIONS"
    r"|JDK_JAVA_OPTIONS|_?SPARK_\w+|HADOOP_\w+|YARN_\w+|KUBECONFIG|KRB5\w+)"
)
"""Variables that Spark and Java know. Secrets of sources are not its business."""


def passed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that a JVM gets of those of this process.

    Names of files are UTF-8, and case is that of no language, whatever the user speaks.
    """
    kept = {name: value for name, value in environment.items() if _PASSED_ON.fullmatch(name)}
    return {**kept, "LC_ALL": "C.UTF-8"}


def launch(
    java: Java,
    conf: dict[str, str],
    scratch: Path,
    memory: str,
    confine: Confine,
    for_long_work: bool = False,
) -> Gateway:
    """Start a JVM with Spark's gateway; raises `EngineProblem` when it does not come up.

    It compiles better, and longer, `for_long_work`.
    """
    home = spark_process.spark_home()
    exchange = Path(tempfile.mkdtemp(dir=scratch))
    answer = exchange / "connection"
    log = scratch / "jvm.log"
    environment = {
        **passed_on(os.environ),
        **spark_process.environment(home, answer),
        "JAVA_HOME": str(java.home),
    }
    if conf.get("spark.driver.host") == LOOPBACK:
        environment["SPARK_LOCAL_IP"] = LOOPBACK
    archive = class_archive.options(java, home)
    command = [
        str(java.executable),
        f"-Xmx{memory}",
        "-Duser.timezone=UTC",
        "-Dfile.encoding=UTF-8",
        f"-Djava.io.tmpdir={scratch}",
        *_for_work(for_long_work),
        # With one compiler the default is 48 MB, which the code of a few hundred queries fills;
        # the JVM fails then. What is reserved is only used when it is needed.
        "-XX:ReservedCodeCacheSize=256m",
        # What goes on after it is in no known state; `recovery` starts another JVM.
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:-UsePerfData",  # would write to /tmp
        # By default it looks through the whole heap for classes to unload, twice before the first
        # step ends, because Spark has so many.
        "-XX:MetaspaceSize=128m",
        *archive,
        *spark_process.module_options(java.home),
        *spark_process.program(home, conf),
    ]
    programs = (java.home, home, class_archive.folder())
    written = (scratch, *class_archive.written_to(java, home))
    with log.open("wb") as output:
        process = subprocess.Popen(
            confine(command, programs, written),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=environment,
            # Ctrl-C belongs to the coordinator, which lets running work finish: the JVM stands in
            # a process group of its own, and ends when its standard input closes.
            process_group=0,
        )
    _await(process, answer, log)
    port, secret = spark_process.read_answer(answer)
    return Gateway(process, port, secret, log, class_archive.is_left_by(archive))


def _await(process: subprocess.Popen[bytes], answer: Path, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not answer.is_file():
        if process.poll() is not None:
            raise did_not_start(f"the JVM ended with code {process.returncode}", log)
        if time.monotonic() > deadline:
            process.kill()
            raise did_not_start(f"the JVM did not answer in {_START_SECONDS} s", log)
        time.sleep(_LOOK_SECONDS)


def did_not_start(why: str, log: Path) -> EngineProblem:
    """The error for a JVM or a session that does not come up, with the last lines of `log`."""
    lines = last_lines(log, 5)
    return EngineProblem(
        f"Spark could not be started: {why}",
        code="E0902",
        notes=lines,
        help="check the Java that is used (ODFBUILD_JAVA_HOME), and engine.memory in odfbuild.yaml "
        "(ODFBUILD_SPARK_MEMORY goes before it)",
    )


def last_lines(log: Path, count: int) -> tuple[str, ...]:
    """The last `count` lines of what a JVM printed, none when that is gone."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    return tuple(text.strip().splitlines()[-count:])
