"""Find the resident engine for a project, start one, end one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import cast

from odfbuild.engine.contract import Engine
from odfbuild.engine.process.resident import card
from odfbuild.engine.process.resident.card import Card
from odfbuild.engine.process.resident.channel import Lost, ask, dumps
from odfbuild.engine.process.resident.wanted import Wanted, key_of, wanted
from odfbuild.engine.settings import EngineSettings, FileAccess, Resident, in_force
from odfbuild.errors import EngineProblem
from odfbuild.store.lock_holders import is_alive
from odfbuild.values import Value

_START_SECONDS = 60.0
_STOP_SECONDS = 600.0
_ALSO = re.compile(r"JAVA_HOME|ODFBUILD_JAVA_HOME|XDG_\w+|PYTHON\w+")


def engine_for(
    project: Path, settings: EngineSettings, reach: FileAccess, *, alone: bool = False
) -> Engine:
    """The resident engine of a project if there is one, or is to be one; else one for this process.

    `alone`: always one for this process, which ends with all that it read.

    Raises `EnvironmentProblem` as `start_engine` of Spark.
    """

    def own() -> Engine:
        from odfbuild.engine.spark.start import start_engine

        return start_engine(settings, reach)

    now = in_force(settings)
    if alone or not _suits_residents(now):
        return own()
    if now.resident is Resident.NEVER and card.running(key_of(project, reach)) is None:
        return own()
    asked = wanted(project, settings, reach)

    def serving(known: Card | None) -> Card | None:
        """The engine to ask: the known one, or one that came after it."""
        running = card.running(asked.key)
        if running is None and now.resident is Resident.NEVER:
            return None
        return running if running is not None and running == known else _found(asked)

    found = serving(None)
    if found is None:
        return own()
    from odfbuild.engine.process.resident.client import ResidentEngine

    return cast(Engine, ResidentEngine(found, asked, now.step_seconds, own, serving))


def is_warm(project: Path, settings: EngineSettings, reach: FileAccess) -> bool:
    """Whether a resident engine runs that a command would ask."""
    return _suits_residents(in_force(settings)) and card.running(key_of(project, reach)) is not None


def start(project: Path, settings: EngineSettings, reach: FileAccess) -> tuple[Card, bool]:
    """The resident engine of a project, ready for work, and whether it was started just now.

    Raises `EnvironmentProblem` where Spark does not start, and E1510 to E1512 for what is about
    resident engines.
    """
    now = in_force(settings)
    if not now.embedded:
        raise EngineProblem(
            f"a resident engine runs on this machine, and `engine.master` is {now.address}",
            code="E1510",
            help="leave it out: commands reach the cluster themselves",
        )
    if card.folder() is None:
        raise EngineProblem(
            "there is no folder of this user alone for a resident engine",
            code="E1511",
            help="set XDG_STATE_HOME to a folder that only you may open",
        )
    asked = wanted(project, settings, reach)
    before = card.running(asked.key)
    found = _found(asked)
    try:
        if found is not None:
            ask(found, "ready")
            return found, before is None or before.pid != found.pid
    except Lost:
        pass
    raise _did_not_start(asked.key)


def stop(found: Card) -> bool:
    """End a resident engine when it has done the work that it has; whether it is gone now."""
    try:
        ask(found, "leave")
    except Lost:
        return True
    deadline = time.monotonic() + _STOP_SECONDS
    while is_up(found) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not is_up(found)


def is_up(found: Card) -> bool:
    """Whether the process of an engine is there, which may be about to end."""
    return Path(found.socket).parent.exists() and is_alive(found.pid)


class Status(Value):
    """What a resident engine does now.

    `ready` once Spark has started. `processes`: its own id and that of its JVM. `memory` is theirs
    in bytes, 0 where the system does not tell. `calls` are under way, `served` were begun so far.
    """

    card: Card
    ready: bool
    processes: tuple[int, ...]
    calls: int
    served: int
    idle_seconds: float
    idle_minutes: float
    memory: int


def statuses() -> Iterator[Status]:
    """Of all resident engines of this user."""
    for found in card.all_running():
        with suppress(Lost):
            yield Status(found, **ask(found, "status"))


def _suits_residents(settings: EngineSettings) -> bool:
    return settings.embedded and not settings.for_long_work


def _found(asked: Wanted) -> Card | None:
    """The engine that serves, started if need be; `None` where that does not work."""
    for _ in range(2):
        found = card.running(asked.key) or _started(asked)
        if found is None:
            return None
        with suppress(Lost):
            if ask(found, "serves", asked):
                return found
            ask(found, "leave")
    return None


def _started(asked: Wanted) -> Card | None:
    """Start the process, and wait until it, or another of the same name, takes requests."""
    log = card.log_of(asked.key)
    if log is None:
        return None
    card.clear_left()
    path = [str(Path(each).absolute()) for each in sys.path]
    code = f"import sys; sys.path[:] = {path!r}\n"
    code += "from odfbuild.engine.process.resident.server import main; main()"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            cwd="/",
            env=_variables(),
            start_new_session=True,
        )
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin as given:
        given.write(dumps(asked))
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        found = card.running(asked.key)
        if found is not None:
            return found
        if process.poll() not in (None, 0):
            return None
        time.sleep(0.01)
    return None


def _variables() -> dict[str, str]:
    """What a resident engine gets of the environment: no secrets of sources and storages."""
    from odfbuild.engine.spark.session.gateway import passed_on

    found = {name: value for name, value in os.environ.items() if _ALSO.fullmatch(name)}
    return {**found, **passed_on(os.environ)}


def _did_not_start(key: str) -> EngineProblem:
    log = card.log_of(key)
    lines = log.read_text(errors="replace").strip().splitlines()[-5:] if log else ()
    return EngineProblem(
        "the resident engine ended before it took requests",
        code="E1512",
        notes=tuple(lines),
        help="run `odfbuild doctor --deep`, which starts Spark without it",
    )
