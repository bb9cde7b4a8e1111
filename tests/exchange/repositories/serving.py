"""`odfbuild serve` as a real process, for a project with an `odfbuild.yaml` and a workspace."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx

from odfbuild.store.workspace import Workspace
from tests.store.chains import workspace

ALICE, BOB = "token-of-alice-0123456789", "token-of-bob-0123456789ab"

ACCESS = f"""\
kind: Machine
version: 1
content:
  serve:
    idleSeconds: 60
    graceSeconds: 60
    access:
      - read: ["net.example.*", "acc/*"]
      - name: alice
        token: {ALICE}
        replace: ["*"]
      - name: bob
        token: ${{{{ env.TOKEN_OF_BOB }}}}
        read: ["secret.*"]
        write: ["net.example.bob.*"]
"""


@dataclass
class Served:
    """A running server."""

    root: Path
    process: subprocess.Popen[str]
    address: str

    @property
    def space(self) -> Workspace:
        """The datasets of its project, read anew."""
        return workspace(self.root)

    def url(self, path: str = "") -> str:
        return f"{self.address}/{path}"

    def log(self) -> str:
        """The access log, with the lines of all requests that were answered before."""
        if self.process.poll() is None:
            httpx.get(self.url("system/health"), trust_env=False)
        return (self.root / "log").read_text()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self, sent: int = signal.SIGTERM, seconds: float = 60) -> int:
        self.process.send_signal(sent)
        return self.process.wait(seconds)


def project(root: Path) -> Workspace:
    """A project without definitions: a place for datasets of others."""
    root.mkdir(parents=True, exist_ok=True)
    text = "kind: Project\nversion: 1\ncontent:\n  name: hub\n"
    (root / "odfbuild.yaml").write_text(text)
    return workspace(root)


@contextlib.contextmanager
def served(
    root: Path,
    *options: str,
    access: str | None = ACCESS,
    env: dict[str, str] | None = None,
    module: str = "odfbuild",
) -> Iterator[Served]:
    """A server for the project in `root`, made if need be."""
    if not (root / "odfbuild.yaml").exists():
        project(root)
    machine = root.parent / f"{root.name}-machine.yaml"
    if access is not None:
        machine.write_text(access)
    with (root / "log").open("a") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", module, "serve", "--port", "0", *options],
            cwd=root,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={
                **os.environ,
                "PYTHONPATH": str(Path(__file__).parents[3]),
                "TOKEN_OF_BOB": BOB,
                "XDG_CONFIG_HOME": str(root.parent / "no-config"),
                **({"ODFBUILD_CONFIG": str(machine)} if access is not None else {}),
                **(env or {}),
            },
        )
    try:
        line = process.stdout.readline()
        assert line.startswith("Serving http://"), (root / "log").read_text()
        address = line.split()[1]
        _answering(process, address)
        yield Served(root, process, address)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def _answering(process: subprocess.Popen[str], address: str) -> None:
    for _ in range(200):
        with contextlib.suppress(httpx.TransportError):
            httpx.get(f"{address}/system/health", trust_env=False)
            return
        assert process.poll() is None
        time.sleep(0.05)
    raise AssertionError("the server does not answer")
