"""What code in Spark's JVM can do: `python -m tests.engine.fenced_program SANDBOX PROJECT PORT`.

Prints, as JSON, of each attempt what it gave, or the Java exception that it ended with.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError

from odfbuild.engine.settings import EngineSettings, FileAccess, Sandbox
from odfbuild.engine.spark.start import start_engine
from tests.engine.inputs import read, rows, slices, sql, task


def main(sandbox: str, project: Path, port: int) -> None:
    scratch = project / ".odfbuild" / "scratch"
    reach = FileAccess(read=(project / "chains",), write=(scratch,))
    engine = start_engine(EngineSettings(sandbox=Sandbox(sandbox)), reach)
    session = engine._session
    jvm: Any = session.spark._jvm
    java, keys = jvm.java, project / ".odfbuild-keys" / "key"

    def text(file: Path) -> str:
        return str(jvm.org.apache.commons.io.FileUtils.readFileToString(java.io.File(str(file))))

    def write(file: Path) -> bool:
        jvm.org.apache.commons.io.FileUtils.writeStringToFile(java.io.File(str(file)), "x")
        return file.read_text() == "x"

    def run_program() -> str:
        command = java.util.ArrayList()
        for word in ("cat", str(keys)):
            command.add(word)
        process = java.lang.ProcessBuilder(command).start()
        return str(jvm.org.apache.commons.io.IOUtils.toString(process.getInputStream(), "UTF-8"))

    def end_parent() -> str:
        """Send nothing, as signal 0 does, which takes the same right as any other."""
        command = java.util.ArrayList()
        for word in ("kill", "-0", str(os.getpid())):
            command.add(word)
        return str(java.lang.ProcessBuilder(command).start().waitFor())

    def send() -> bool:
        to = java.net.InetAddress.getByName("127.0.0.1")
        packet = java.net.DatagramPacket(bytearray(b"x"), 1, to, port)
        java.net.DatagramSocket().send(packet)
        return True

    def query() -> int:
        given = slices(project / "chains", rows(0, 7))
        wanted = sql("SELECT event_time, city FROM cities")
        return int(read(engine.run(task(scratch, wanted, given)).parts).num_rows)

    def told(attempt: Callable[[], Any]) -> Any:
        try:
            return attempt()
        except Py4JJavaError as error:
            return error.java_exception.getClass().getSimpleName()

    found = {
        "connect": told(lambda: java.net.Socket("127.0.0.1", port).isConnected()),
        "send": told(send),
        "read a key": told(lambda: text(keys)),
        "read a key by a program": told(run_program),
        "read a chain": told(lambda: text(project / "chains" / "head")),
        "write a chain": told(lambda: write(project / "chains" / "head")),
        "write to the project": told(lambda: write(project / "new")),
        "write to scratch": told(lambda: write(scratch / "new")),
        "secret": java.lang.System.getenv("SECRET_OF_A_SOURCE"),
        "secret of odfbuild": told(lambda: "hush" in text(Path(f"/proc/{os.getpid()}/environ"))),
        "end odfbuild": told(end_parent),
        "query": query(),
        "large result of a task": session.spark.range(300_000, numPartitions=1).toArrow().num_rows,
        "fences": str(session.fences),
        "source": str(session.within_reach(project / "source.csv", scratch).relative_to(project)),
    }
    engine.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
