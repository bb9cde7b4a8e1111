"""An engine that serves several calls, one after the other, until another one is needed.

PySpark allows one session per process, so there is one shared engine per process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Condition
from typing import Any, cast

from odfbuild.engine.contract import Engine
from odfbuild.engine.settings import EngineSettings, FileAccess, in_force
from odfbuild.errors import EnvironmentProblem

Start = Callable[[EngineSettings, FileAccess], Engine]


@dataclass(slots=True)
class _Kept:
    owner: object
    settings: EngineSettings
    reach: FileAccess
    folders: dict[Path, tuple[int, int] | None]
    engine: Engine
    borrowers: int = 0

    def suits(self, owner: object, settings: EngineSettings, reach: FileAccess) -> bool:
        """Whether it can do what an engine could that is started now."""
        mine, asked = (replace(each, expected_bytes=0) for each in (self.settings, settings))
        return (
            self.owner is owner
            and mine == asked
            and (self.settings.for_long_work or not settings.for_long_work)
            and self.reach.write == reach.write
            and all(self.folders.get(each) == what for each, what in places(reach).items())
        )


_free = Condition()
_kept: _Kept | None = None
_is_called_back = ContextVar("is_called_back", default=False)


@contextmanager
def calling_back() -> Iterator[None]:
    """While code of the user runs that a borrower waits for, and that must not wait for it."""
    token = _is_called_back.set(True)
    try:
        yield
    finally:
        _is_called_back.reset(token)


def lend(owner: object, start: Start, settings: EngineSettings, reach: FileAccess) -> Engine:
    """The kept engine of `owner` if it suits, else a new one, once nobody uses the old one.

    To `stop` what is lent gives it back. `EnvironmentProblem` E0624 for a listener whose apply uses
    the old one.
    """
    global _kept  # noqa: PLW0603  # there is one in a process
    settings = in_force(settings)
    with _free:
        while _kept is not None and not _kept.suits(owner, settings, reach):
            if _kept.borrowers:
                _wait()
            else:
                _end()
        if _kept is None:
            engine = start(settings, reach)
            # Folders that were not there are made by now.
            _kept = _Kept(owner, settings, reach, places(reach), engine)
        _kept.borrowers += 1
        return cast(Engine, _Lent(_kept))


def close(owner: object) -> None:
    """End the kept engine of `owner`, once nobody uses it; harmless when there is none."""
    with _free:
        while _kept is not None and _kept.owner is owner:
            if _kept.borrowers:
                _wait()
            else:
                _end()


class _Lent:
    """An engine that somebody else ends."""

    def __init__(self, kept: _Kept) -> None:
        self._kept: _Kept | None = kept
        self._engine = kept.engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def stop(self) -> None:
        """Give it back."""
        with _free:
            if self._kept is not None:
                self._kept.borrowers -= 1
                self._kept = None
                _free.notify_all()


def _wait() -> None:
    """Wait until an engine is given back; `EnvironmentProblem` E0624 where that never happens."""
    if _is_called_back.get():
        raise EnvironmentProblem(
            "Spark is in use by the apply that waits for this listener",
            code="E0624",
            help="collect what the listener is told, and use it when apply() has returned",
        )
    _free.wait()


def _end() -> None:
    global _kept
    ended, _kept = _kept, None
    if ended is not None:
        ended.engine.stop()


def places(reach: FileAccess) -> dict[Path, tuple[int, int] | None]:
    """What the names stand for: fences keep what was there, whatever has its name later."""
    return {each: _identity(each) for each in (*reach.read, *reach.write)}


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
