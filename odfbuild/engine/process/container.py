"""An engine in a container: one for each step, without network, which reads what it is given.

It writes into one folder, and has limits of memory, processors and processes. How we reach it: by a
unix socket in a folder of ours if it listens on the one that `ODF_ENGINE_SOCKET` names, else by a
relay that enters the container's network and leads to its port there. Source: Open Data Fabric,
"Execution Model"; how peers run engines.
"""

from __future__ import annotations

import csv
import io
import os
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from odfbuild.engine.process import relay
from odfbuild.engine.process.accused import Accused
from odfbuild.engine.process.files import StepFiles
from odfbuild.engine.process.programs import (
    end_child,
    is_gone,
    owner,
    socket_folder,
    start_child,
    sweep_folders,
)
from odfbuild.engine.process.wire import PORT, SOCKET_VARIABLE, SPECIFIED_PORT
from odfbuild.errors import Code, EngineError
from odfbuild.sql.translate.named import RemoteEngine
from odfbuild.values import Value

_IN, _OUT, _RUN = "/opt/engine/in", "/opt/engine/out", "/opt/engine/run"
_LABEL, _PREFIX = "odfbuild.engine", "odfbuild-engine-"
_RUNTIMES = ("podman", "docker")
_ANSWER_SECONDS = 30
_NETWORK = re.compile(r"--net(work)?(=|$)")


class Runtime(Value):
    """A program that runs containers, with arguments that the machine's owner adds."""

    command: tuple[str, ...]
    arguments: tuple[str, ...] = ()

    @classmethod
    def of(cls, command: tuple[str, ...], arguments: tuple[str, ...]) -> Runtime:
        """The one that the machine names, else the first that is there; `EngineError` E1431."""
        for each in [command] if command else [(name,) for name in _RUNTIMES]:
            if shutil.which(each[0]):
                return cls(each, tuple(_without_network(arguments)))
        raise EngineError(
            f"no container runtime is here: {command[0] if command else ' or '.join(_RUNTIMES)}",
            code="E1431",
            help="install podman, or name another one in ODFBUILD_CONTAINER_RUNTIME",
        )

    @property
    def is_podman(self) -> bool:
        """Whether it has what only podman has."""
        return "podman" in Path(self.command[0]).name

    def ask(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one of its commands that answers soon."""
        try:
            return subprocess.run(
                [*self.command, *arguments],
                capture_output=True,
                text=True,
                timeout=_ANSWER_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return subprocess.CompletedProcess(arguments, 1, "", str(error))

    def has(self, image: str) -> bool:
        """Whether an image is on this machine."""
        return self.ask("image", "inspect", "--format", "{{.Id}}", image).returncode == 0

    def sweep(self) -> None:
        """Remove the containers of coordinators that were killed."""
        found = self.ask("ps", "--all", "--filter", f"label={_LABEL}", "--format", "{{.Names}}")
        for name in found.stdout.split():
            if is_gone(name.removeprefix(_PREFIX).rpartition("-")[0]):
                self.remove(name)
        sweep_folders()

    def remove(self, container: str) -> None:
        """End a container at once, and forget it."""
        self.ask("kill", container)
        self.ask("rm", "--force", "--volumes", container)


def _without_network(arguments: Sequence[str]) -> list[str]:
    """Arguments for other containers, which may have a network."""
    kept: list[str] = []
    skip = False
    for each in arguments:
        found = _NETWORK.match(each)
        if not (skip or found):
            kept.append(each)
        skip = found is not None and not found[2]
    return kept


@dataclass(slots=True, eq=False)
class Container:
    """An engine in a container of its own."""

    runtime: Runtime
    name: str
    process: subprocess.Popen[bytes]
    folder: Path
    mounts: dict[Path, str]
    published: bool
    log: Path
    _relay: subprocess.Popen[bytes] | None = field(default=None)
    _port: str | None = field(default=None)

    @property
    def target(self) -> str | None:
        """See `Program`."""
        for name in ("run/engine", "relay"):
            if (self.folder / name).exists():
                return f"unix:{self.folder / name}"
        if self.published:
            self._port = self._port or self._published_port()
            return self._port
        if self._relay is None:
            self._relay = self._start_relay()
        return None

    def inside(self, file: Path) -> str:
        """See `Program`."""
        return f"{self.mounts[file.parent]}/{file.name}"

    def exit_code(self) -> int | None:
        """See `Program`."""
        return self.process.poll()

    def end(self) -> None:
        """See `Program`."""
        if self._relay is not None:
            self._relay.kill()
            self._relay.wait()
        # Killing the client alone leaves a container running that ignores signals.
        self.runtime.remove(self.name)
        end_child(self.process)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _published_port(self) -> str | None:
        found = self.runtime.ask("port", self.name, f"{PORT}/tcp").stdout.split()
        return found[0] if found else None

    def _start_relay(self) -> subprocess.Popen[bytes] | None:
        """A process of ours in the network of the container; `None` while that is not there."""
        found = self.runtime.ask("inspect", "--format", "{{.State.Pid}}", self.name).stdout.strip()
        if not found.isdigit() or found == "0" or shutil.which("nsenter") is None:
            return None
        enter = ["nsenter", "--target", found, "--net"]
        if os.geteuid() != 0:
            if not self.runtime.is_podman:
                return None
            enter = [*self.runtime.command, "unshare", *enter]
        ports = [str(PORT), str(SPECIFIED_PORT)]
        program = [sys.executable, "-I", "-S", relay.__file__, str(self.folder / "relay"), *ports]
        return start_child([*enter, *program], self.folder, self.log)


def start_container(
    engine: RemoteEngine, runtime: Runtime, files: StepFiles, log: Path, accused: Accused
) -> Container:
    """Start the image of an engine over the files of a step; `EngineError` where there is none."""
    image = engine.image or ""
    if not runtime.has(image):
        name = Path(runtime.command[0]).name
        raise accused.error(
            f"is not on this machine: {image}", Code.IMAGE_MISSING, f"get it: {name} pull {image}"
        )
    folder = socket_folder()
    (folder / "run").mkdir()
    (folder / "run").chmod(0o777)  # the program may run as any user; the folder around it is ours
    mounts = {each: f"{_IN}/{number}" for number, each in enumerate(files.read)}
    mounts[files.out] = _OUT
    name = f"{_PREFIX}{owner()}-{uuid.uuid4().hex[:16]}"
    command = [*runtime.command, "run", "--rm", "--name", name, "--pull=never"]
    command += [f"--label={_LABEL}", *runtime.arguments, *limits(engine, runtime)]
    for each, place in mounts.items():
        command.append(f"--mount={_mount(each, place, writable=each == files.out)}")
    command.append(f"--mount={_mount(folder / 'run', _RUN, writable=True)}")
    command += [f"--env={SOCKET_VARIABLE}={_RUN}/engine", image]
    published = engine.network == "published"
    process = start_child(command, folder, log)
    return Container(runtime, name, process, folder, mounts, published, log)


def limits(engine: RemoteEngine, runtime: Runtime) -> list[str]:
    """What a container may take of the machine, and reach."""
    found = [
        f"--memory={engine.memory}",
        f"--memory-swap={engine.memory}",
        f"--pids-limit={engine.pids}",
        "--cap-drop=all",
        "--security-opt=no-new-privileges",
        # Data of the project keeps its labels: two engines may read it at once.
        "--security-opt=label=disable",
    ]
    found += [f"--cpus={engine.cpus:g}"] if engine.cpus else []
    found += [] if engine.writable else ["--read-only", "--tmpfs=/tmp"]
    found += ["--http-proxy=false"] if runtime.is_podman else []
    if engine.network == "published":
        return [*found, f"--publish=127.0.0.1::{PORT}"]
    return [*found, "--network=none"]


def _mount(source: Path, target: str, *, writable: bool) -> str:
    """A mount as runtimes read it: as CSV, so that a path may have a comma in it."""
    parts = ["type=bind", f"source={source}", f"target={target}"]
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(parts if writable else [*parts, "readonly"])
    return text.getvalue()
