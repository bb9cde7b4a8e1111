"""Errors about an engine: which one, in which version, for which dataset, and what it said last."""

from __future__ import annotations

from pathlib import Path

from odfbuild.errors import EngineError
from odfbuild.values import Value

_LINES, _LONGEST = 8, 300


class Accused(Value):
    """An engine at work for `dataset`; `log` is the file with all that it prints."""

    engine: str
    version: str
    dataset: str
    log: Path | None = None

    def error(self, what: str, code: str, help: str, *notes: str) -> EngineError:
        """The error that this engine `what`."""
        said = last_lines(self.log)
        return EngineError(
            f"engine '{self.engine}' {what}",
            code=code,
            dataset=self.dataset,
            notes=(
                f"its version: {self.version}",
                *notes,
                *(f"it printed: {line}" for line in said),
                *((f"all that it printed: {self.log}",) if said else ()),
                "nothing of it was committed",
            ),
            help=help,
        )

    def broken(self, what: str, code: str, *notes: str) -> EngineError:
        """The error that its answer breaks the contract."""
        help = "report it to those who make the engine, or go back to an earlier version of it"
        return self.error(f"breaks the contract: {what}", code, help, *notes)


def last_lines(log: Path | None) -> tuple[str, ...]:
    """The end of a log, in lines that are not too long."""
    if log is None:
        return ()
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - 16384))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ()
    return tuple(line[:_LONGEST] for line in lines if line.strip())[-_LINES:]
