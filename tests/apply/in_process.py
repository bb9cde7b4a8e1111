"""The program in this process, on the engine that all tests share."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from odfbuild.cli.main import run
from odfbuild.engine.contract import Engine
from tests.apply.tiny import NO_JVM, Tiny


class Shared:
    """An engine that outlives those who start and stop it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def stop(self) -> None:
        """Leave it running for the next one."""


@dataclass(frozen=True)
class Said:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


class _Stdin(io.TextIOWrapper):
    def isatty(self) -> bool:
        return False


@dataclass(frozen=True)
class Program:
    """Runs commands on the project in `root`."""

    root: Path
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Said:
        self.monkeypatch.chdir(self.root)
        self.monkeypatch.setattr(sys, "stdin", _Stdin(io.BytesIO(stdin)))
        self.capsys.readouterr()
        code = run(list(arguments))
        said = self.capsys.readouterr()
        return Said(code, said.out, said.err)

    def ok(self, *arguments: str, stdin: bytes = b"") -> Said:
        """Run a command that must succeed."""
        said = self(*arguments, stdin=stdin)
        assert said.code == 0, said.out + said.err
        return said

    def apply(self) -> Said:
        """Apply without asking."""
        return self.ok("apply", "-y")


def share(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every command of this process run on `engine`."""
    pytest.importorskip("pyspark", reason="the quick tests do without PySpark")
    from odfbuild.engine.spark import start as module

    monkeypatch.setattr(module, "start_engine", lambda *_: Shared(engine))


@dataclass(frozen=True)
class NearTiny(Tiny):
    """The project whose commands run in this process: on `engine`, or on none with `NO_JVM`."""

    engine: Engine
    capsys: pytest.CaptureFixture[str]

    def run(
        self, *arguments: str, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the program to its end."""
        assert env in (None, NO_JVM)
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {"NO_COLOR": "1", "COLUMNS": "160", **(env or {})}.items():
                patch.setenv(name, value)
            if env is None:
                share(self.engine, patch)
            said = Program(self.root, patch, self.capsys)(*arguments)
        return subprocess.CompletedProcess(arguments, said.code, said.out, said.err)
