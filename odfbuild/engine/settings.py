"""`engine:` in `odfbuild.yaml`: where Spark runs, its resources, and its sandbox.

Belongs to the machine and the team, not to a dataset, so it stays out of definitions and chains.
Nothing that is set here may change a result: settings that can are pinned (`release.PINNED`), and
refused here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

from odfbuild.declared_settings import Fits, setting
from odfbuild.errors import EngineProblem
from odfbuild.sql.sql_words import Quote
from odfbuild.values import Value

_Choice = TypeVar("_Choice", bound=StrEnum)


class Sandbox(StrEnum):
    """What becomes of the fences of the operating system around Spark.

    `auto` takes what the machine offers, `required` refuses to start with less than all of it.
    """

    AUTO = "auto"
    REQUIRED = "required"
    OFF = "off"


class Resident(StrEnum):
    """Whether commands start an engine that stays for the next ones; they use one that runs."""

    AUTO = "auto"
    NEVER = "never"


class AnsweredBy(StrEnum):
    """What answers `odfbuild sql`."""

    SPARK = "spark"
    DUCKDB = "duckdb"

    @property
    def quote(self) -> Quote:
        """What its dialect puts around names."""
        return '"' if self is AnsweredBy.DUCKDB else "`"


class SlicesBy(StrEnum):
    """Who reads and writes the slices of a large step.

    `auto`: executors, if the project has a storage and Spark is a cluster.
    """

    AUTO = "auto"
    EXECUTORS = "executors"
    COORDINATOR = "coordinator"


LONG_WORK_BYTES = 256 << 20
"""A step that reads more input than this is long work."""


class EngineSettings(Value, kw_only=True):
    """The defaults are those of an absent `engine:`; `memory` is a size as the JVM reads it.

    `expected_bytes` of input are known to wait for the engine; that is no setting of a project, but
    what a plan found.
    """

    master: Annotated[str, Fits(minLength=1)] = setting(
        "local[*]",
        "Address of a Spark cluster, such as spark://host:7077, or of a server of Spark Connect, "
        "such as sc://host:15002",
    )
    memory: (
        Annotated[str, Fits(minLength=1, pattern=r"^\d+[kKmMgGtT]?$", examples=["2g"])] | None
    ) = setting(
        None,
        "Heap of the JVM beside odfbuild, and memory of a question in DuckDB, such as 2g; default: "
        "half of the machine's memory, up to 4 GiB",
    )
    step_seconds: Annotated[float, Fits(exclusiveMinimum=0)] | None = setting(
        None, "How long one step of a dataset, or a question to Spark, may take; default: no limit"
    )
    question_seconds: Annotated[float, Fits(exclusiveMinimum=0)] = setting(
        600, "How long a question in DuckDB may take"
    )
    questions: AnsweredBy = setting(
        AnsweredBy.SPARK,
        "What answers `odfbuild sql`: spark, or duckdb, which answers at once in its own dialect",
    )
    conf: Mapping[str, str] = setting({}, "More settings of Spark, by name")
    slices: SlicesBy = setting(
        SlicesBy.AUTO,
        "Who reads and writes slices of large steps: executors, in the project's storage, or the "
        "coordinator; auto: executors of a cluster, for steps that read more than `sliceSize`",
    )
    slice_size: Annotated[
        str, Fits(minLength=1, pattern=r"^\d+[kKmMgGtT]?$", examples=["256m"])
    ] = setting("256m", "How much of its input goes into one slice that an executor writes")
    sandbox: Sandbox = setting(Sandbox.AUTO, "Fences of the operating system around Spark")
    resident: Resident = setting(
        Resident.NEVER,
        "Whether commands start an engine that stays for the next ones: auto, or never, where only "
        "`odfbuild engine start` does",
    )
    idle_minutes: Annotated[float, Fits(exclusiveMinimum=0)] = setting(
        30, "After how many minutes without work a resident engine ends"
    )
    expected_bytes: int = 0

    @property
    def for_long_work(self) -> bool:
        """Whether code that runs fast is worth what compiling it takes.

        Measured: without, a session starts with 2 s of CPU instead of 5, and 10^6 rows take the
        same; 10^7 take half with it. A collector with many threads is worth their start there, too.
        """
        return self.expected_bytes > LONG_WORK_BYTES

    @property
    def embedded(self) -> bool:
        """Whether all of Spark is one JVM on this machine."""
        return re.fullmatch(r"local(\[.*\])?", self.master) is not None

    @property
    def remote(self) -> bool:
        """Whether a server of Spark Connect computes what the JVM here has checked."""
        return self.master.startswith("sc://")

    def by_executors(self, bytes: int) -> bool:
        """Whether executors are to read so many bytes of slices; the settings are in force."""
        if self.slices is SlicesBy.AUTO:
            return not self.embedded and bytes > bytes_of(self.slice_size)
        return self.slices is SlicesBy.EXECUTORS

    @property
    def address(self) -> str:
        """`master` without the parameters of Spark Connect, which may hold a secret."""
        return self.master.split("/;")[0].rstrip("/") if self.remote else self.master


DEFAULTS = EngineSettings()


def default_memory() -> str:
    """Half of the machine's memory, or of its container's, up to 4 GiB, as `memory` is written."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    total = min((machine, *_container_limits()))
    return f"{min(4096, total // 2 // (1 << 20))}m"


_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")
"""What a group of processes may take, in both versions of Linux's control groups."""


def _container_limits() -> Iterator[int]:
    for name in _LIMITS:
        try:
            yield int(Path("/sys/fs/cgroup", name).read_text())
        except (OSError, ValueError):
            continue  # it is not there, or `max`


def bytes_of(size: str) -> int:
    """The bytes of a `memory`, as the JVM reads it."""
    unit = "kmgt".find(size[-1].lower()) + 1
    return int(size[:-1] if unit else size) << 10 * unit


def duckdb_memory(settings: EngineSettings) -> str:
    """How much memory DuckDB may take, as it writes sizes; `settings` are those in force."""
    memory = settings.memory or default_memory()
    return f"{memory}B" if memory.isdigit() else f"{memory.upper()}iB"


class FileAccess(Value):
    """What Spark may touch of the file system, besides its own programs and scratch folder.

    Folders that are not there yet are made when it starts.
    """

    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()


MASTER, MEMORY, STEP_SECONDS, QUESTION_SECONDS, SANDBOX, RESIDENT, IDLE_MINUTES = (
    f"ODFBUILD_{name}"
    for name in (
        *("SPARK_MASTER", "SPARK_MEMORY", "STEP_SECONDS", "QUESTION_SECONDS"),
        *("SANDBOX", "RESIDENT", "IDLE_MINUTES"),
    )
)
"""Variables of the environment that go before `odfbuild.yaml`."""


def in_force(settings: EngineSettings) -> EngineSettings:
    """`settings` with what variables of the environment say instead.

    Raises `EngineProblem` E0544 or E0905 when one of them says nothing sensible.
    """
    master = os.environ.get(MASTER) or settings.master
    problem = _wrong_master(master)
    if problem is not None:
        said = f"{MASTER} is '{master.split('/;')[0]}': {problem[0]}"
        raise EngineProblem(said, code="E0905", help=problem[1])
    return replace(
        settings,
        master=master,
        memory=os.environ.get(MEMORY) or settings.memory,
        step_seconds=_number(STEP_SECONDS, "seconds") or settings.step_seconds,
        question_seconds=_number(QUESTION_SECONDS, "seconds") or settings.question_seconds,
        sandbox=_choice(SANDBOX, Sandbox) or settings.sandbox,
        resident=_choice(RESIDENT, Resident) or settings.resident,
        idle_minutes=_number(IDLE_MINUTES, "minutes") or settings.idle_minutes,
    )


def _number(variable: str, unit: str) -> float | None:
    text = os.environ.get(variable)
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not number > 0:
        raise EngineProblem(
            f"{variable} is '{text}', which is no number of {unit}",
            code="E0544",
            help=f"set it to a number above 0, or leave it out: unset {variable}",
        )
    return number


def _choice(variable: str, of: type[_Choice]) -> _Choice | None:
    text = os.environ.get(variable)
    if not text:
        return None
    try:
        return of(text)
    except ValueError:
        raise EngineProblem(
            f"{variable} is '{text}', which is none of {', '.join(of)}",
            code="E0905",
            help=f"set it to one of them, or leave it out: unset {variable}",
        ) from None


_OURS = {
    "spark.master": "write `engine.master`",
    "spark.remote": "write `engine.master`",
    "spark.driver.memory": "write `engine.memory`",
    "spark.submit.deployMode": "the driver runs beside odfbuild",
    "spark.scheduler.mode": "datasets share the cluster fairly",
    "spark.app.name": "it is 'odfbuild'",
}
_TUNING = re.compile(
    r"spark\.sql\.(shuffle\.partitions|adaptive\.(?!custom)\w.*|autoBroadcastJoinThreshold|broadcastTimeout"
    r"|files\.(maxPartitionBytes|openCostInBytes|minPartitionNum))"
)
"""Settings of Spark SQL that change the time that a query takes, not its result."""


def is_tuning(name: str) -> bool:
    """Whether a setting of Spark SQL changes the time that a query takes, and nothing else."""
    return _TUNING.fullmatch(name) is not None


_FOR_PROJECTS = re.compile(
    r"spark\.(executor\.(memory|cores|instances|memoryOverhead(Factor)?)|cores\.max"
    r"|default\.parallelism|task\.(cpus|maxFailures)|memory\.(storageF|f)raction"
    r"|memory\.offHeap\.(enabled|size)|driver\.maxResultSize|network\.timeout|locality\.wait"
    r"|speculation(\.\w+)*)"
)
"""Other settings that a project may make: numbers, sizes and times, nothing that Spark loads."""
_PLAIN = re.compile(r"-?[\w.]+%?")
"""Spark would fill in `${env:NAME}`, and show it in messages."""


def is_for_projects(name: str, value: str) -> bool:
    """Whether a project may make a setting of Spark, which cannot run or reach anything."""
    known = is_tuning(name) or _FOR_PROJECTS.fullmatch(name) is not None
    return known and _PLAIN.fullmatch(value) is not None


def refused(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """What data of `EngineSettings` must not say: where in it, why, and what to do instead."""
    problem = _wrong_master(data.get("master", "local[*]")) or _secret_in(data)
    if problem is not None:
        said = data["master"].split("/;")[0]
        yield ("master",), f"'{said}' cannot be used: {problem[0]}", problem[1]
    for name in data.get("conf") or {}:
        if name in _OURS:
            yield ("conf", name), f"odfbuild sets '{name}' itself", _OURS[name]
        elif not name.startswith("spark."):
            why = f"'{name}' is no setting of Spark: their names begin with 'spark.'"
            yield ("conf", name), why, "remove it"
        elif name.startswith("spark.sql.") and not is_tuning(name):
            why = f"'{name}' may change results, which must be the same everywhere"
            yield ("conf", name), why, "remove it: of spark.sql only settings for speed can be set"


def _wrong_master(master: str) -> tuple[str, str] | None:
    if re.fullmatch(r"local(\[[^\]]+\])?|spark://.+|sc://[^/;]+(/(;.*)?)?", master) is None:
        return (
            "it is no address of a standalone cluster of Spark, or of a server of Spark Connect",
            "write local[*], spark://host:7077 for a standalone cluster, or sc://host:15002 for "
            "Spark Connect",
        )
    return None


def _secret_in(data: Mapping[str, Any]) -> tuple[str, str] | None:
    if ";token=" in data.get("master", ""):
        return (
            "it holds a secret, and this file is kept in Git",
            "leave `token` out, and set SPARK_CONNECT_AUTHENTICATE_TOKEN where odfbuild runs",
        )
    return None
