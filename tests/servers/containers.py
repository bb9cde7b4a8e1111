"""podman with an image that is made from this machine's shell, so that nothing is downloaded."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.servers.programs import must_run, program

IMAGE = "localhost/odfbuild-test"


@dataclass(frozen=True)
class Podman:
    """`runtime` and `arguments` as `ingest.container` takes them."""

    runtime: tuple[str, ...]
    arguments: tuple[str, ...]


def machine_with(folder: Path, podman: Podman, *arguments: str, **engine: object) -> Path:
    """The configuration of a machine that runs containers by `podman`, for ODFBUILD_CONFIG."""
    container = {"runtime": [*podman.runtime], "arguments": [*podman.arguments, *arguments]}
    content = {"ingest": {"container": container}, **({"engine": engine} if engine else {})}
    file = folder / "machine.yaml"
    file.write_text(json.dumps({"kind": "Machine", "version": 1, "content": content}))
    return file


@contextlib.contextmanager
def podman_with_image() -> Iterator[Podman]:
    """A store of its own with one image, which has `sh` and little else.

    Storage and groups as they work inside another container, where tests often run.
    """
    # podman bears only short paths, shorter than those of pytest.
    with tempfile.TemporaryDirectory(prefix="odf-", dir="/tmp", ignore_cleanup_errors=True) as name:
        yield _make(Path(name))


@contextlib.contextmanager
def docker_on(podman: Podman) -> Iterator[Podman]:
    """Docker's own command line, which talks to podman as if that were Docker's daemon."""
    docker = shutil.which("docker") or shutil.which("docker", path=Path(sys.executable).parent)
    if docker is None or Path(docker).resolve().name == "podman":
        pytest.skip("there is no command line of Docker; `make test` gets it from Debian")
    with tempfile.TemporaryDirectory(prefix="odf-", dir="/tmp") as name:
        socket = Path(name) / "api"
        service = ["system", "service", "--time=0", f"unix://{socket}"]
        # It complains of clients that leave.
        process = subprocess.Popen([*podman.runtime, *service], stderr=subprocess.DEVNULL)
        try:
            await_socket(socket, process)
            yield Podman((docker, f"--host=unix://{socket}"), podman.arguments)
        finally:
            process.terminate()
            process.wait(120)


def await_socket(socket: Path, process: subprocess.Popen[bytes]) -> None:
    """Return when `process` listens on `socket`."""
    deadline = time.monotonic() + 120
    while not socket.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            pytest.fail("podman does not serve")
        time.sleep(0.05)


def _make(folder: Path) -> Podman:
    podman, runc = program("podman"), program("runc")
    root = folder / "root"
    for name in ("bin", "tmp", "etc"):
        (root / name).mkdir(parents=True)
    programs = {name: os.path.realpath(program(name)) for name in ("sh", "ln", "mkdir", "mkfifo")}
    for name, file in programs.items():
        shutil.copy(file, root / "bin" / name)
    ldd = ["ldd", *programs.values()]
    libraries = subprocess.run(ldd, capture_output=True, text=True, check=True).stdout
    for library in set(re.findall(r"(?<=\s)/\S+(?= \()", libraries)):
        (root / library[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, root / library[1:])
    archive = shutil.make_archive(str(folder / "image"), "tar", root)
    runtime = (
        podman,
        f"--root={folder / 'store'}",
        f"--runroot={folder / 'run'}",
        "--storage-driver=vfs",
        "--cgroup-manager=cgroupfs",
        f"--runtime={runc}",
        "--log-level=error",
    )
    done = subprocess.run(
        [*runtime, "import", "--quiet", archive, IMAGE],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        report = pytest.fail if must_run() else pytest.skip
        report(f"podman cannot import an image: {done.stderr}")
    arguments = ("--network=none", "--ulimit=nofile=1024:1024", "--ulimit=nproc=4096:4096")
    return Podman(runtime, arguments)
