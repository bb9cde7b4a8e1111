"""Applies in processes of their own, forked from one that has done all imports."""

from __future__ import annotations

import os
from collections.abc import Mapping
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from tests.forks import FORKS

SECONDS = 60


def start(
    root: Path, variables: Mapping[str, str] | None = None, *, meet: Barrier | None = None
) -> BaseProcess:
    """An apply of the project in `root`; with `meet` it waits there before it commits a table."""
    environment = {**os.environ, **(variables or {})}
    process = FORKS.Process(target=_apply, args=(environment, root, meet))
    process.start()
    return process


def ended(process: BaseProcess) -> int | None:
    """How a process ended."""
    process.join(SECONDS)
    return process.exitcode


def _apply(environment: dict[str, str], root: Path, meet: Barrier | None) -> None:
    from odfbuild.cli.main import run
    from odfbuild.engine.spark import start as module
    from odfbuild.exchange.tables import publish
    from tests.apply.plain_engine import PlainEngine

    os.environ.update(environment)
    os.chdir(root)
    log = os.open(root / f"run-{os.getpid()}.log", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    used: Any = PlainEngine()
    module.start_engine = lambda *_: used
    if meet is not None:
        publishing: Any = publish
        publishing.open_table = _meeting(publishing.open_table, meet)
    os._exit(run(["apply", "-y"]))


def _meeting(open_table: Any, barrier: Barrier) -> Any:
    """Tables whose writers have all read the present state before the first of them commits."""

    def opened(spec: Any) -> Any:
        table = open_table(spec)
        commit = table.commit

        def together(*given: Any) -> Any:
            barrier.wait(SECONDS)
            return commit(*given)

        table.commit = together
        return table

    return opened
