"""The program in another process, on an engine that starts once and is not the tests' own.

Here and there the clock stands still and keys follow from names, so that equal work gives equal
blocks.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec
import pytest

from odfbuild.engine.settings import EngineSettings, FileAccess
from odfbuild.odf.timestamp import Timestamp
from tests.apply.in_process import Program, Said, Shared

_NOW = Timestamp.parse("2026-01-01T00:00:00Z")
_HOME = Path(__file__).parents[2]


def leave_nothing_to_chance(patch: pytest.MonkeyPatch) -> None:
    """Stop the clock, and derive identities from names."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from odfbuild.store import creation, keys

    create = creation.create_dataset

    @functools.wraps(create)
    def created(*arguments: Any, **named: Any) -> Any:
        given = inspect.signature(create).bind(*arguments, **named).arguments
        name = given["store"].name.encode()
        if given.get("identity") is None:
            key = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name).digest())
            with pytest.MonkeyPatch.context() as inner:
                inner.setattr(Ed25519PrivateKey, "generate", lambda: key)
                given["identity"] = keys.new_pair()
        return create(**given)

    patch.setattr(Timestamp, "now", lambda: _NOW)
    patch.setattr(creation, "create_dataset", created)


@dataclass(frozen=True)
class Served(Program):
    """Runs commands with `variables`: `apply` in another `process`, if there is one.

    What that one cannot do without seeing the project's folder, it has to refuse; then it is done
    here. All that it printed is in `elsewhere`.
    """

    process: subprocess.Popen[str] | None
    variables: Mapping[str, str]
    elsewhere: list[str]

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Said:
        if self.process is None or arguments[0] != "apply":
            return self._here(*arguments, stdin=stdin)
        assert self.process.stdin is not None and self.process.stdout is not None
        asked = {"root": str(self.root), "words": arguments, "variables": dict(self.variables)}
        print(json.dumps(asked), file=self.process.stdin, flush=True)
        said = Said(**json.loads(self.process.stdout.readline()))
        self.elsewhere.append(said.out)
        if "error[E0547]" in said.out + said.err or "error[E0548]" in said.out + said.err:
            return self._here(*arguments, stdin=stdin)
        return said

    def _here(self, *arguments: str, stdin: bytes) -> Said:
        for name, value in self.variables.items():
            self.monkeypatch.setenv(name, value)
        # A client that libraries keep knows the endpoint of the other project.
        fsspec.get_filesystem_class("s3").clear_instance_cache()
        return super().__call__(*arguments, stdin=stdin)


@contextlib.contextmanager
def serving(folder: Path, machine: Path, log: Path) -> Iterator[subprocess.Popen[str]]:
    """Start the process for projects below `folder`, with the configuration of a machine."""
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [sys.executable, "-m", "tests.apply.served", str(folder)],
            cwd=_HOME,
            env={
                **os.environ,
                "PYSPARK_PYTHON": sys.executable,
                "ODFBUILD_CONFIG": str(machine),
                "NO_COLOR": "1",
                "COLUMNS": "160",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        try:
            yield process
        finally:
            assert process.stdin is not None
            process.stdin.close()  # its engine ends with it


def _serve(folder: Path) -> None:
    """Run commands that come as lines, and tell what they said."""
    from odfbuild.cli.main import run
    from odfbuild.engine.spark import start

    answers, sys.stdout = sys.stdout, sys.stderr
    patch = pytest.MonkeyPatch()
    leave_nothing_to_chance(patch)
    start_engine, engines = start.start_engine, list[Any]()

    def shared(settings: EngineSettings, _: object) -> Shared:
        if not engines:
            engines.append(
                start_engine(settings, FileAccess(read=(folder,), write=(folder / "scratch",)))
            )
        return Shared(engines[0])

    patch.setattr(start, "start_engine", shared)
    for line in sys.stdin:
        asked = json.loads(line)
        os.chdir(asked["root"])
        os.environ.update(asked["variables"])
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(asked["words"])
        said = {"code": code, "out": out.getvalue(), "err": err.getvalue()}
        print(json.dumps(said), file=answers, flush=True)
    for each in engines:
        each.stop()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
