"""Engines as images, run by podman: without network, with limits, and gone afterwards.

The image has next to nothing; Python and this repository are mounted into it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engine.process.project import Remote, remote
from tests.engine.process.test_programs import PLAIN
from tests.servers.containers import Podman, podman_with_image

__all__ = ["remote"]

ROOT = Path(__file__).parents[3]
FOLDERS = sorted({"/usr", "/lib", "/lib64", sys.base_prefix, sys.prefix, str(ROOT), *sys.path[1:]})
# Of `/tmp` only what this Python needs: a clone may lie there, and so do projects of tests.
OURS = (f"{sys.prefix}/", f"{ROOT}/")
HERE = [
    each
    for each in FOLDERS
    if Path(each).is_dir() and (not each.startswith("/tmp") or f"{each}/".startswith(OURS))
]


@pytest.fixture(scope="module")
def podman() -> Iterator[Podman]:
    with podman_with_image() as found:
        yield found


class Engines:
    """Makes images of the engine that behaves in some way, and tells the machine of podman."""

    def __init__(self, podman: Podman, remote: Remote) -> None:
        self.podman, self.remote = podman, remote

    def image(self, mode: str) -> str:
        """The name of an image with its digest."""
        name = f"localhost/fake-{mode}"
        command = [sys.executable, "-m", "tests.engine.process.fake_engine", mode]
        base = self.podman.runtime
        made = subprocess.run(
            [*base, "create", "--network=none", "localhost/odfbuild-test", "sh"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        changes = [f"--change=CMD {json.dumps(command)}", f"--change=ENV PYTHONPATH={ROOT}"]
        subprocess.run(
            [*base, "commit", "--quiet", *changes, made, name], check=True, capture_output=True
        )
        subprocess.run([*base, "rm", made], check=True, capture_output=True)
        shown = ["image", "inspect", "--format", "{{.Digest}}", name]
        found = subprocess.run([*base, *shown], capture_output=True, text=True, check=True)
        return f"{name}@{found.stdout.strip()}"

    def use(self, mode: str, **more: Any) -> None:
        """Let an image that behaves like this compute the derivative."""
        arguments = [each for each in self.podman.arguments if not each.startswith("--network")]
        arguments += [f"--volume={each}:{each}:ro" for each in HERE]
        container = {"runtime": [*self.podman.runtime], "arguments": arguments}
        content = {"kind": "Machine", "version": 1, "content": {"ingest": {"container": container}}}
        self.remote.machine.write_text(json.dumps(content))
        self.remote.engines(mine={"image": self.image(mode), "startTimeout": 60, **more})

    def running(self) -> list[str]:
        found = subprocess.run(
            [*self.podman.runtime, "ps", "--all", "--quiet"],
            capture_output=True,
            text=True,
            check=True,
        )
        return found.stdout.split()

    def log(self) -> str:
        logs = sorted((self.remote.tiny.root / ".odfbuild" / "engines").glob("*.log"))
        return "".join(each.read_text() for each in logs)


@pytest.fixture
def engines(podman: Podman, remote: Remote) -> Engines:
    return Engines(podman, remote)


def test_an_image_computes_and_its_digest_is_recorded(engines: Engines, remote: Remote) -> None:
    engines.use("honest")
    remote.program.apply()
    assert remote.values() == [10, 20, 30]
    [version] = remote.versions()
    assert version.startswith("localhost/fake-honest@sha256:")
    remote.program.ok("verify")
    assert engines.running() == []
    assert not any((remote.tiny.root / ".odfbuild" / "scratch").iterdir())


def test_an_image_that_listens_on_its_port_is_reached_without_network(
    engines: Engines, remote: Remote
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root enters the network of a container that is not rootless")
    engines.use("port")
    remote.program.apply()
    assert remote.values() == [10, 20, 30]


def test_inside_are_no_secrets_no_environment_no_network_and_no_other_files(
    engines: Engines, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines.use("probe")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "tok-wx4711")
    monkeypatch.setenv("http_proxy", "http://user:tok-wx4711@127.0.0.1:9")
    (remote.tiny.root / "secret-wx4711").write_text("TOKEN=tok-wx4711\n")
    assert "logs of what fails are kept" in remote.program("apply", "-y").err
    seen = json.loads(engines.log().partition("SEEN ")[2].splitlines()[0])
    assert "wx4711" not in json.dumps(seen)
    assert set(seen["environment"]) <= {
        *("PATH", "HOME", "HOSTNAME", "TERM", "container", "PYTHONPATH", "ODF_ENGINE_SOCKET"),
        "LC_CTYPE",
    }
    assert seen["others"] == []
    assert "Network is unreachable" in seen["network"] or "Errno 101" in seen["network"]
    assert seen["name"] != "reached"
    assert "Read-only" in seen["input"] and "Read-only" in seen["root"]
    assert seen["capabilities"] == "0000000000000000"


def test_c10_a_container_that_hangs_is_ended(engines: Engines, remote: Remote) -> None:
    engines.use("hang", timeout=3)
    found = remote.program("apply", "-y")
    assert "error[E1436]" in found.out + found.err
    assert engines.running() == []
    assert remote.was_not_touched()


def test_a_container_that_takes_more_memory_than_it_may_is_ended_and_told(
    engines: Engines, remote: Remote
) -> None:
    engines.use("memory", memory="200m")
    found = remote.program("apply", "-y")
    text = found.out + found.err
    assert "error[E1446]: engine 'mine' was ended: it took more than 200m of memory" in text, text
    assert engines.running() == []


def test_a_container_gets_no_more_processes_than_it_may_have(
    engines: Engines, remote: Remote
) -> None:
    engines.use("fork", pids=60)
    found = remote.program("apply", "-y")
    text = found.out + found.err
    assert re.search("Resource temporarily unavailable|can't start new thread", text), text
    assert remote.was_not_touched()


def test_c12_an_image_that_is_not_here_is_told_with_the_command_that_gets_it(
    engines: Engines, remote: Remote
) -> None:
    engines.use("honest")
    gone = f"ghcr.io/acme/engine@sha256:{'1' * 64}"
    remote.engines(mine={"image": gone})
    found = remote.program("apply", "-y")
    text = found.out + found.err
    assert f"error[E1432]: engine 'mine' is not on this machine: {gone}" in text
    assert f"get it: podman pull {gone}" in text


def test_c14_the_container_of_a_killed_run_is_removed_by_the_next_one(
    engines: Engines, remote: Remote
) -> None:
    engines.use("hang")
    process = remote.tiny.start("apply", "-y", env={"PYTHONPATH": str(ROOT)}, script=PLAIN)
    deadline = time.monotonic() + 90
    while "at work" not in engines.log() and time.monotonic() < deadline:
        time.sleep(0.1)
    process.kill()
    process.communicate()
    assert len(engines.running()) == 1
    engines.use("honest")
    remote.program.apply()
    assert engines.running() == []
    assert remote.values() == [10, 20, 30]


def test_c33_a_plan_starts_no_container(engines: Engines, remote: Remote) -> None:
    engines.use("honest")
    trap = remote.tiny.root / "podman"
    trap.write_text(f"#!/bin/sh\ntouch {remote.tiny.root}/ran\n")
    trap.chmod(0o755)
    content = {"ingest": {"container": {"runtime": [str(trap)]}}}
    remote.machine.write_text(json.dumps({"kind": "Machine", "version": 1, "content": content}))
    remote.program.ok("plan")
    assert not (remote.tiny.root / "ran").exists()


def test_c37_each_step_has_a_container_of_its_own(engines: Engines, remote: Remote) -> None:
    engines.use("once")
    remote.program.apply()
    remote.tiny.arrive(2)
    remote.program.apply()
    assert remote.values() == [10, 20, 30, 40]


def test_a_file_outside_of_its_folder_is_out_of_reach(engines: Engines, remote: Remote) -> None:
    engines.use("outside")
    found = remote.program("apply", "-y")
    text = found.out + found.err
    assert "error[E1441]: engine 'mine' breaks the contract: data is a link" in text, text
    assert remote.was_not_touched()
