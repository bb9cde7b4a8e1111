"""The programs and libraries that odfbuild stands on. Starts no JVM."""

from __future__ import annotations

import operator
import os
import platform
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import odfbuild
from odfbuild.engine.release import engine_version
from odfbuild.engine.settings import EngineSettings, FileAccess, in_force
from odfbuild.engine.spark.connect.cluster import check_reachable
from odfbuild.engine.spark.internals.process import has_jars, spark_home
from odfbuild.engine.spark.session import class_archive
from odfbuild.engine.spark.session.java import find_java
from odfbuild.engine.spark.session.sandbox import fences
from odfbuild.extras import has_engine
from odfbuild.inspect.health import Check, fail, ok, warn

_PLANNING = ("flatbuffers", "multiformats")
_HASHED = ("pyspark", "pyarrow", *_PLANNING)
"""Libraries whose bytes or values go into hashes; the first two come with the extra `spark`."""
_REQUIREMENT = re.compile(r"([\w.-]+)(?:\[[^\]]*\])?([^;]*)(?:;\s*extra\b.*)?$")
_FITS: Mapping[str, Callable[[list[int], list[int]], bool]] = {
    "==": operator.eq,
    ">=": operator.ge,
    "<=": operator.le,
    "<": operator.lt,
}
_COMPLETIONS = (
    ".bash_completions/odfbuild.sh",
    ".zfunc/_odfbuild",
    ".config/fish/completions/odfbuild.fish",
)


def programs() -> Iterator[Check]:
    """odfbuild itself and Python."""
    python = f"Python {platform.python_version()}"
    yield ok("odfbuild", f"{odfbuild.__version__} on {python}, {platform.system()}")


def libraries() -> Iterator[Check]:
    """Releases of the libraries that hashes depend on."""
    found, wrong = [], []
    needed = {
        found[1]: found[2] for found in map(_REQUIREMENT.match, requires("odfbuild") or ()) if found
    }
    for name in _HASHED:
        limits = needed.get(name, "").strip()
        try:
            present = version(name)
        except PackageNotFoundError:
            if name in _PLANNING:
                wrong.append(f"{name} is not installed")
            continue
        found.append(f"{name} {present}")
        if not all(
            _FITS[sign](_numbers(present), _numbers(limit))
            for sign, limit in re.findall(r"([<>=]=?)\s*([\w.]+)", limits)
        ):
            wrong.append(f"{name} is {present}, needed is {limits}")
    if wrong:
        whole = "'odfbuild[spark]'" if has_engine() else "odfbuild"
        yield fail("libraries", "; ".join(wrong), f"pip install --upgrade {whole}")
    else:
        yield ok("libraries", ", ".join(found))


def java() -> Iterator[Check]:
    """Which Java Spark would run on, and whether its classes are archived for a quick start."""
    found = find_java()
    yield ok("java", f"{found.version}, from {found.origin}: {found.home}")
    home = spark_home()
    if not has_jars(home):
        help = "pip install --force-reinstall --no-deps pyspark"
        yield fail("spark", f"{home} holds no Spark", help)
        return
    yield ok("spark", f"{engine_version()}: {home}")
    archive = class_archive.path(found, home)
    if archive.is_file():
        yield ok("class archive", f"{_size(archive.stat().st_size)}: {archive}")
    elif not class_archive.can_be_made(found):
        yield ok("class archive", "this Java cannot make one; Spark takes seconds longer to start")
    elif not _may_write(archive.parent):
        help = f"chmod u+rwx {archive.parent}, or set XDG_CACHE_HOME to a folder of yours"
        yield warn("class archive", f"cannot be written, so Spark starts slowly: {archive}", help)
    else:
        yield ok("class archive", "none yet; the first run leaves one for those after it")


def engine(settings: EngineSettings) -> Iterator[Check]:
    """Where Spark would run, and the fences around it."""
    asked = in_force(settings)
    if not asked.embedded:
        check_reachable(asked.master)
    yield ok(
        "engine", f"{asked.address}, memory: {asked.memory or 'half of the machine, to 4 GiB'}"
    )
    found = fences(asked)
    if not found.lacking:
        yield ok("sandbox", f"{found} fenced")
    else:
        help = (
            "unset ODFBUILD_SANDBOX, and remove `sandbox: off` from machine.yaml"
            if not (found.network or found.files) and len(found.lacking) == 1
            else "run definitions of people whom you trust only, or odfbuild in a container"
        )
        yield warn("sandbox", f"fenced: {found}. {'; '.join(found.lacking)}", help)


def resident(project: Path | None) -> Iterator[Check]:
    """The engine that stays for the next commands in this project, if there is one."""
    from odfbuild.engine.process.resident.find import statuses

    here = [each for each in statuses() if each.card.project == str(project)]
    for each in here:
        card = each.card
        yield ok(
            "resident engine",
            f"process {card.pid} since {card.since}, {_size(each.memory)} of memory",
        )
    if not here:
        yield ok("resident engine", "none is running; `odfbuild engine start` starts one")


def running_engine(settings: EngineSettings, reach: FileAccess | None) -> Iterator[Check]:
    """Start Spark, which takes seconds, and end it."""
    from odfbuild.engine.spark.start import start_engine

    begun = time.monotonic()
    started = start_engine(settings, reach)
    seconds = time.monotonic() - begun
    about = started.about()
    started.stop()
    yield ok("session", f"Spark started on {about.master} in {seconds:.1f} s")


def completion() -> Iterator[Check]:
    """Whether the shell completes commands."""
    home = Path.home()
    found = [each for each in _COMPLETIONS if (home / each).is_file()]
    if found:
        yield ok("completion", f"{home / found[0]}")
    else:
        yield warn("completion", "not installed", "odfbuild --install-completion")


def container(runtime: str | None, users: Sequence[str]) -> Iterator[Check]:
    """The program that runs containers, for the datasets `users` whose sources are made by one."""
    wanted = [runtime] if runtime else ["podman", "docker", "nerdctl"]
    found = next((path for path in map(shutil.which, wanted) if path), None)
    if found:
        yield ok("containers", found)
    elif users:
        help = f"install {' or '.join(wanted)}, or name another in ODFBUILD_CONTAINER_RUNTIME"
        detail = f"no {' nor '.join(wanted)} on the path, for {', '.join(users)}"
        yield fail("containers", detail, help)
    else:
        yield ok("containers", "no runtime found; no source needs one")


def credentials(needed: Mapping[tuple[str, ...], Sequence[str]]) -> Iterator[Check]:
    """Variables that sources read, by name and never by value.

    `needed`: the datasets that need one of each group of names.
    """
    absent = {
        names: who for names, who in needed.items() if not any(n in os.environ for n in names)
    }
    present = sorted({name for names in needed for name in names if name in os.environ})
    if absent:
        users = sorted({name for who in absent.values() for name in who})
        wanted = ", ".join(" or ".join(names) for names in sorted(absent))
        help = "; ".join(f"export {names[0]}=…" for names in sorted(absent))
        yield fail("credentials", f"not set: {wanted}, for {', '.join(users)}", help)
    elif present:
        yield ok("credentials", f"set: {', '.join(present)}")
    else:
        yield ok("credentials", "no source needs any")


def _may_write(folder: Path) -> bool:
    nearest = next(each for each in (folder, *folder.parents) if each.exists())
    return os.access(nearest, os.W_OK | os.X_OK)


def _numbers(text: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", text)]


def _size(count: int) -> str:
    return f"{count / (1 << 20):.0f} MiB"
