"""The Spark session: pinned configuration, one session for each request, progress, end."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.engine.release import PINNED
from odfbuild.engine.settings import (
    DEFAULTS,
    EngineSettings,
    FileAccess,
    Sandbox,
    bytes_of,
    default_memory,
    in_force,
)
from odfbuild.engine.spark.connect.cluster import await_workers, check_reachable
from odfbuild.engine.spark.connect.workers import Workers
from odfbuild.engine.spark.internals import process
from odfbuild.engine.spark.internals.records import BY_JOBS_ONLY
from odfbuild.engine.spark.internals.status import said
from odfbuild.engine.spark.session import sandbox
from odfbuild.engine.spark.session.gateway import (
    LOOPBACK,
    Gateway,
    did_not_start,
    last_lines,
    launch,
)
from odfbuild.engine.spark.session.java import Java, find_java
from odfbuild.errors import EngineProblem
from odfbuild.store.engine_folders import engine_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from odfbuild.engine.spark.connect.remote import Remote

_COMMON = {
    "spark.app.name": "odfbuild",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.scheduler.mode": "FAIR",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # What stands in VALUES is looked at before it is computed: TIMESTAMP 'now' is the clock.
    "spark.sql.parser.eagerEvalOfUnresolvedInlineTable": "false",
    "spark.submit.deployMode": "client",
    # What takes long can be cancelled where it runs as a job, and nowhere else.
    **BY_JOBS_ONLY,
    "spark.executor.defaultJavaOptions": "-Duser.timezone=UTC -Dfile.encoding=UTF-8",
}
_EMBEDDED = {
    "spark.driver.bindAddress": LOOPBACK,
    "spark.driver.host": LOOPBACK,
    # What a task gives to the driver, which is itself, never goes through a socket: the fences
    # around the JVM do not let it, and what is larger is fetched through one.
    "spark.task.maxDirectResultSize": "1g",
    "spark.rpc.message.maxSize": "1024",
    # A job with a task for each of many slices takes longer than to look at the files here.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
}


_PAGES = 8192
"""How many pages of memory a task of Spark can have."""
_STOP_SECONDS = 2


def small_pages(settings: EngineSettings, memory: str) -> dict[str, str]:
    """Settings for short work in a heap of `memory`; none where `settings` expect long work.

    Every sort and every join takes a page and fills it with zeros: with Spark's own size, 64 MiB in
    most heaps, 80 small datasets take 4 GB. A larger record gets a page of its own, and the pages
    of a task must be able to fill the heap.
    """
    if settings.for_long_work:
        return {}
    return {"spark.buffer.pageSize": f"{max(1 << 20, bytes_of(memory) // _PAGES)}b"}


class Session:
    """A running Spark, with a scratch folder that goes away with it.

    Without `reach` any file may be read and written.
    """

    def __init__(
        self, settings: EngineSettings = DEFAULTS, reach: FileAccess | None = None
    ) -> None:
        self.settings = in_force(settings)
        self.memory = self.settings.memory or default_memory()
        self.reach = reach
        if reach is not None:
            # Fences stand where folders are when Spark starts.
            for folder in (*reach.read, *reach.write):
                if not folder.exists():
                    folder.mkdir(parents=True)
        self.fences = sandbox.fences(self.settings, files=reach is not None)
        self._in_use: int | None
        self.scratch, self._in_use = engine_folder(
            reach.write[0] if reach and reach.write else None
        )
        self._gateway: Gateway | None = None
        self.remote: Remote | None = None
        self._workers: Workers | None = None
        try:
            self.spark = self._start()
            if self._drives_cluster:
                self._workers = Workers(self.spark, self.settings.address)
            if self.settings.remote:
                from odfbuild.engine.spark.connect.remote import Remote

                self.remote = Remote(self.settings, self.spark, self._shared)
        except BaseException:
            self.stop()
            raise
        atexit.register(self.stop)

    def request(self) -> SparkSession:
        """A session of its own for one request: own views, same pinned settings."""
        session: SparkSession = self.spark.newSession()
        process.set_up(session, PINNED)
        return session

    def within_reach(self, file: Path, scratch: Path) -> Path:
        """`file`, or a copy in the folder `scratch` when Spark may not get at it.

        Fences keep the JVM here from it; a server of Spark Connect sees the project only.
        """
        limited = self.fences.files or self.settings.remote
        if not limited or self.reach is None or not sandbox.beyond(file, self.reach):
            return file
        # A hard link would do on one file system, but changes the times of what is not ours.
        copy = scratch / f"source{file.suffix}"
        shutil.copyfile(file, copy)
        return copy

    def check_workers(self, files: Iterable[Path]) -> None:
        """Raise `EngineProblem` E0548 unless workers of a cluster can do a step that reads `files`.

        They have to see these as they are here, and to write where we look for results. Without a
        cluster, nothing is asked.
        """
        if self.remote is not None:
            self.remote.check_workers(files)
        elif self._workers is not None:
            self._workers.check_shared(self._shared)
            self._workers.check_files(files)

    @property
    def _shared(self) -> Path:
        """The folder through which results of other machines come."""
        return self.reach.write[0] if self.reach and self.reach.write else self.scratch

    def exit_code(self, seconds: float) -> int | None:
        """What the JVM ended with, if it does within `seconds`; `None` while it runs."""
        if self._gateway is None:
            return None
        try:
            return self._gateway.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    @property
    def log(self) -> Path | None:
        """What the JVM prints goes there; `None` where none runs."""
        return None if self._gateway is None else self._gateway.log

    @property
    def jvm(self) -> int | None:
        """The process id of the JVM; `None` when none runs."""
        running = self._gateway is not None and self.exit_code(0) is None
        return self._gateway.process.pid if self._gateway is not None and running else None

    def last_words(self) -> tuple[str, ...]:
        """The last lines that the JVM printed."""
        return last_lines(self.log, 3) if self.log is not None else ()

    def stop(self) -> None:
        """End Spark and remove the scratch folder; harmless when done twice."""
        atexit.unregister(self.stop)
        if self.remote is not None:
            self.remote.stop()
        spark, self.spark = getattr(self, "spark", None), None
        gateway, self._gateway = self._gateway, None
        # All that a JVM here has is in the scratch folder, so that nothing waits for its end.
        orderly = gateway is not None and (gateway.leaves_archive or self._drives_cluster)
        if gateway is not None and not orderly:
            gateway.process.kill()
        if spark is not None:
            process.let_go(spark, ended=not orderly)
        if gateway is not None:
            if gateway.process.stdin is not None:
                gateway.process.stdin.close()
            # It may go on to write its class archive, which nobody has to wait for.
            with contextlib.suppress(subprocess.TimeoutExpired):
                gateway.process.wait(_STOP_SECONDS)
        shutil.rmtree(self.scratch, ignore_errors=True)
        if self._in_use is not None:
            os.close(self._in_use)
            self._in_use = None

    def _start(self) -> SparkSession:
        process.silence()
        settings = self.settings
        check_reachable(settings.master)
        conf = {
            **_COMMON,
            **settings.conf,
            **({} if self._drives_cluster else _EMBEDDED | small_pages(settings, self.memory)),
            **PINNED,
            "spark.master": settings.master if self._drives_cluster else "local[*]",
            "spark.local.dir": str(self.scratch / "local"),
            "spark.sql.warehouse.dir": str(self.scratch / "warehouse"),
        }
        self._gateway = self._launched(conf)
        try:
            session = process.connected(self._gateway.port, self._gateway.secret)
        except Exception as error:
            process.forget()
            raise did_not_start(_first_sentence(error), self._gateway.log) from None
        # Each request has a session of its own; this one only takes in records that are at hand.
        session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        session.sparkContext.setLogLevel("OFF")
        if self._drives_cluster:
            await_workers(session.sparkContext, settings.master)
        return session

    @property
    def _drives_cluster(self) -> bool:
        return not (self.settings.embedded or self.settings.remote)

    def _launched(self, conf: dict[str, str]) -> Gateway:
        java = find_java()
        try:
            return self._launch(java, conf)
        except EngineProblem:
            if not self.fences.files or self.settings.sandbox is Sandbox.REQUIRED:
                raise
            # Parts of this Java may lie where nobody looks for them, as on NixOS.
            self.fences = sandbox.without_files(self.fences)
            return self._launch(java, conf)

    def _launch(self, java: Java, conf: dict[str, str]) -> Gateway:
        long = self.settings.for_long_work
        return launch(java, conf, self.scratch, self.memory, self._confine, long)

    def _confine(
        self, command: Sequence[str], programs: Iterable[Path], scratch: Iterable[Path]
    ) -> list[str]:
        reach = self.reach or FileAccess()
        return sandbox.fenced(command, self.fences, programs, reach, scratch)


def _first_sentence(error: Exception) -> str:
    """Why Spark refuses to start; what it goes on to recommend is not how it is done here."""
    return re.sub(r"^\[[\w.]+\] ", "", said(error).split("\n")[0].split(". ")[0])
