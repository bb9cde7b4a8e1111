"""The Containerfile, built over the Python and the packages of this machine, which are mounted.

Only odfbuild itself is installed then, from its wheel, and Java does not start; `test_image`
installs everything, and computes.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import venv
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

import pytest

from tests.docs.environments import ROOT, build_wheel, link_packages, needed
from tests.engine.process.test_containers import HERE
from tests.servers.containers import IMAGE as SMALL
from tests.servers.containers import Podman, podman_with_image

BASE, IMAGE = "localhost/odfbuild-base", "localhost/odfbuild-engine"
LOOKS = """
import os, pwd, sys, odfbuild
name, cache = pwd.getpwuid(os.getuid()).pw_name, os.environ["XDG_CACHE_HOME"]
inside = sys.prefix if odfbuild.__file__.startswith(sys.prefix) else odfbuild.__file__
print(name, inside, sorted(os.listdir("/opt/engine")), os.path.isdir(cache))
"""
MOUNTS = [f"--volume={each}:{each}:ro" for each in HERE]


@pytest.fixture(scope="module")
def podman() -> Iterator[Podman]:
    with podman_with_image() as found:
        yield found


def says(podman: Podman, *words: object) -> str:
    done = subprocess.run(
        [*podman.runtime, *map(str, words)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_containerfile_makes_an_image_that_serves(podman: Podman) -> None:
    with tempfile.TemporaryDirectory(prefix="odf-", dir="/tmp") as name:
        folder = Path(name)
        venv.create(folder / "base" / "python", symlinks=True)
        python = folder / "base" / "python" / "bin" / "python3"
        link_packages(python, [*needed("spark", "jre", "engines"), distribution("pip")])
        (folder / "base" / "etc").mkdir()
        (folder / "base" / "etc" / "passwd").write_text("root:x:0:0::/root:/bin/sh\n")
        (folder / "base" / "Containerfile").write_text(
            f"FROM {SMALL}\nCOPY python /python\nCOPY etc /etc\n"
            "ENV PATH=/python/bin:/usr/local/bin:/usr/bin:/bin\n"
        )
        build = ("build", "--quiet", "--network=none", "--layers=false", *podman.arguments[1:])
        says(podman, *build, "--tag", BASE, folder / "base")
        wheels = folder / "context" / "wheels"
        wheels.mkdir(parents=True)
        shutil.copy(build_wheel(folder), wheels)
        says(
            podman, *build, *MOUNTS, "--build-arg", f"BASE={BASE}",
            "--build-arg", "VERSION=7.8.9", "--file", ROOT / "Containerfile", "--tag", IMAGE,
            folder / "context",
        )  # fmt: skip
    config = json.loads(says(podman, "inspect", "--format={{json .Config}}", IMAGE))
    assert config["Labels"]["org.opencontainers.image.version"] == "7.8.9"
    assert set(config["ExposedPorts"]) == {"2884/tcp", "5544/tcp"}
    run = ("run", "--detach", "--name=engine", "--user=1000", "--read-only", "--tmpfs=/tmp")
    says(podman, *run, "--cap-drop=all", *podman.arguments, *MOUNTS, IMAGE)
    try:
        command = [*podman.runtime, "logs", "--follow", "engine"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as log:
            assert log.stdout is not None
            told = [json.loads(log.stdout.readline())["msg"] for _ in range(2)]
            assert told == ["listens on 0.0.0.0:2884", "listens on 0.0.0.0:5544"]
            looked = says(podman, "exec", "engine", "python3", "-c", LOOKS)
            assert looked == "engine /python ['in', 'out'] True\n"
            says(podman, "kill", "--signal=TERM", "engine")
            assert says(podman, "wait", "engine").strip() == "0"
    finally:
        subprocess.run([*podman.runtime, "rm", "--force", "engine"], check=False)
