"""The image of the engine: built without a registry and a network, run as coordinators run it."""

from __future__ import annotations

import ensurepip
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import Distribution
from pathlib import Path

import grpc
import pytest
from packaging.tags import sys_tags

from odfbuild.odf.model.messages import TransformRequest, TransformResponseInternalError
from tests.docs.environments import ROOT, build_wheel, needed
from tests.engine.inputs import sql
from tests.engine.process.coordinator import Chain, Line
from tests.engine.process.test_serve_requests import COLUMNS, TENFOLD
from tests.engine.stepwise import Source
from tests.servers.containers import Podman, podman_with_image
from tests.servers.programs import program

# A gigabyte is packed, installed and copied: a minute and a half.
pytestmark = [pytest.mark.spark, pytest.mark.slow]

BASE, IMAGE = "localhost/odfbuild-base", "localhost/odfbuild-engine"
LIMITS = ("--ulimit=nofile=20000:20000", "--ulimit=nproc=4096:4096")
TOOLS = ("sh", "mkdir", "chown", "ls")


@pytest.fixture(scope="module")
def podman() -> Iterator[Podman]:
    with podman_with_image() as found:
        with tempfile.TemporaryDirectory(prefix="odf-", dir="/tmp") as name:
            folder = Path(name)
            root = folder / "root"
            root_with_python(root)
            archive = shutil.make_archive(str(folder / "base"), "tar", root)
            runs(found, "import", "--quiet", archive, BASE)
            Path(archive).unlink()
            wheels(folder / "context" / "wheels")
            runs(
                found, "build", "--quiet", "--network=none", "--layers=false", *LIMITS,
                "--build-arg", f"BASE={BASE}", "--build-arg", "VERSION=7.8.9",
                "--file", ROOT / "Containerfile", "--tag", IMAGE, folder / "context",
            )  # fmt: skip
        yield found


def runs(podman: Podman, *words: object) -> str:
    done = subprocess.run(
        [*podman.runtime, *map(str, words)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def root_with_python(root: Path) -> None:
    """A file system with this Python and pip in /usr/local, a shell, and what they load."""
    here = Path(sys.base_prefix)
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    target = root / "usr" / "local"
    (target / "bin").mkdir(parents=True)
    for each in ("bin", "etc", "tmp", "opt", "proc", "sys", "dev"):
        (root / each).mkdir(exist_ok=True)
    (root / "tmp").chmod(0o1777)
    (root / "etc" / "passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    (root / "etc" / "nsswitch.conf").write_text("hosts: files dns\n")
    shutil.copy(here / "bin" / name, target / "bin" / name)
    (target / "bin" / "python3").symlink_to(name)
    leave = shutil.ignore_patterns("site-packages", "test", "idlelib", "__pycache__", "config-*")
    shutil.copytree(here / "lib" / name, target / "lib" / name, ignore=leave, symlinks=True)
    bundled = next(Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl"))
    with zipfile.ZipFile(bundled) as pip:
        pip.extractall(target / "lib" / name / "site-packages")
    for tool in TOOLS:
        shutil.copy(Path(program(tool)).resolve(), root / "bin" / tool)
    programs = [target / "bin" / name, *(root / "bin" / tool for tool in TOOLS)]
    modules = (target / "lib" / name / "lib-dynload").glob("*.so")
    # Packages with code of their own bring what they need, but for the library of C++.
    needs = ["libstdc++.so.6", "libgcc_s.so.1", "librt.so.1", "libpthread.so.0", "libdl.so.2"]
    ldd = subprocess.run(["ldd", *programs, *modules], capture_output=True, text=True, check=False)
    known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True)
    found = set(re.findall(r"(?<=\s)/\S+(?= \()", ldd.stdout))
    found |= {
        line.split()[-1]
        for line in known.stdout.splitlines()
        if (line.split() and line.split()[0] in needs and "x86-64" in line) or "aarch64" in line
    }
    for library in found:
        copy = root / library[1:]
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, copy)


def wheels(folder: Path) -> None:
    """Wheels of this tree and of all that it needs, packed again from what is installed."""
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as name:
        shutil.copy(build_wheel(Path(name)), folder)
    for each in needed("spark", "jre", "engines"):
        pack(each, folder)


def pack(installed: Distribution, folder: Path) -> None:
    tags = re.findall(r"^Tag: (\S+)", installed.read_text("WHEEL") or "", re.MULTILINE)
    known = set(map(str, sys_tags()))
    tag = next(each for each in tags if each in known)
    name = re.sub(r"[-_.]+", "_", installed.metadata["Name"])
    target = folder / f"{name}-{installed.version}-{tag}.whl"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as wheel:
        for file in installed.files or ():
            where = Path(str(installed.locate_file(file)))
            if ".." not in file.parts and "__pycache__" not in file.parts and where.is_file():
                wheel.write(where, str(file))


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="odf-", dir="/tmp", ignore_cleanup_errors=True) as name:
        yield Path(name)


@contextmanager
def started(podman: Podman, folder: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """The engine with the folders `in`, `out` and `socket`, and nothing else of the machine."""
    for name in ("in", "out", "socket"):
        (folder / name).mkdir()
        (folder / name).chmod(0o777)
    mounts = [f"{folder}/in:{folder}/in:ro", f"{folder}/out:{folder}/out"]
    words = [
        *("--rm", "--name=engine", "--user=1000", "--network=none", "--read-only", "--tmpfs=/tmp"),
        *("--cap-drop=all", "--security-opt=no-new-privileges", *LIMITS, *options),
        *(f"--volume={each}" for each in (*mounts, f"{folder}/socket:/run/odf")),
        "--env=ODF_ENGINE_SOCKET=/run/odf/engine",
    ]
    process = subprocess.Popen([*podman.runtime, "run", *words, IMAGE])
    try:
        yield process
    finally:
        subprocess.run([*podman.runtime, "rm", "--force", "engine"], check=False)
        process.wait(60)


def chain_in(folder: Path, query: str) -> Chain:
    sales = Source(folder / "in", "sales", COLUMNS)
    sales.add([("10:00", 1, 10)])
    line = Line(f"unix:{folder}/socket/engine")
    return Chain(line, folder / "out" / "derived", sql(query), [sales])


def request_of(chain: Chain) -> TransformRequest:
    """The next request, whose folders another user may write to."""
    asked = chain.request()
    for each in chain.folder.parent.rglob("*"):
        each.chmod(0o777)
    return asked


def test_it_answers_on_a_socket_without_a_network_and_rights(podman: Podman, folder: Path) -> None:
    with started(podman, folder) as process:
        chain = chain_in(folder, TENFOLD)
        asked = request_of(chain)
        chain.answer = chain.line.transform(asked)
        assert chain.commit(asked) == [(0, "10:00", 1, 100)]
        assert Path(asked.new_data_path).stat().st_mode & 0o444 == 0o444
        # It ends by itself: 137 would be podman's patience. To remove its copy of all files takes
        # longer than the five seconds that `test_serve_program` allows.
        runs(podman, "kill", "--signal=TERM", "engine")
        assert process.wait(60) == 0


def test_too_little_memory_is_told_or_ends_the_container(podman: Podman, folder: Path) -> None:
    with started(podman, folder, "--memory=200m", "--memory-swap=200m") as process:
        chain = chain_in(folder, TENFOLD)
        try:
            answer = chain.line.transform(request_of(chain))
        except grpc.RpcError:
            assert process.wait(60) == 137
        else:
            assert isinstance(answer, TransformResponseInternalError), answer


def test_it_tells_what_it_is_and_which_ports_it_has(podman: Podman) -> None:
    labels = runs(podman, "inspect", "--format={{json .Config}}", IMAGE)
    for each in ('"7.8.9"', "Apache-2.0", "2884/tcp", "5544/tcp", '["odfbuild","engine","serve"]'):
        assert each in labels
