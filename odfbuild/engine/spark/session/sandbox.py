"""The sandbox around Spark: available restrictions, and the command that applies them.

`confine.py` puts them up. A JVM that is all of Spark opens no connection: it answers the
coordinator, and sources are fetched outside. One that drives a cluster must reach its workers,
which run where nobody fences them, so there only files are fenced, on this side.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from odfbuild.engine.settings import EngineSettings, FileAccess, Sandbox
from odfbuild.engine.spark.session import confine
from odfbuild.errors import EngineProblem
from odfbuild.values import Value

_SYSTEM = (
    *("/usr", "/lib", "/lib64", "/bin", "/sbin", "/opt", "/proc", "/sys", "/dev/random"),
    *("/dev/urandom", "/dev/zero", "/etc/ld.so.cache", "/etc/passwd", "/etc/group", "/etc/hosts"),
    *("/etc/nsswitch.conf", "/etc/localtime", "/etc/timezone", "/etc/alternatives", "/etc/ssl"),
    *("/etc/pki", "/etc/crypto-policies"),
)
"""What programs need to run: their code, the kernel's files, and settings that hold no secret."""


class Fences(Value):
    """Which fences there are; `lacking` says why each of the others is not."""

    network: bool
    files: bool
    lacking: tuple[str, ...] = ()

    def __str__(self) -> str:
        found = [name for name in ("network", "files") if getattr(self, name)]
        return " and ".join(found) if found else "none"


def fences(settings: EngineSettings, *, files: bool = True) -> Fences:
    """The fences that `settings` get on this machine; `files`: whether a reach is known.

    Raises `EngineProblem` E0906 when they are required and one is missing.
    """
    if settings.sandbox is Sandbox.OFF:
        return Fences(network=False, files=False, lacking=("engine.sandbox is off",))
    lacking = []
    alone = settings.embedded or settings.remote  # it is odfbuild that asks the server
    whole = alone and files and _works(offline=True, files=True)
    network = whole or (alone and _works(offline=True, files=False))
    if settings.remote:
        lacking.append(f"server: {settings.address} computes where odfbuild has no say")
    if not alone:
        lacking.append(f"network: Spark has to reach the workers of {settings.master}")
    elif not network:
        lacking.append("network: the system does not let odfbuild filter system calls (seccomp)")
    fenced = whole or (files and _works(offline=False, files=True))
    if files and not fenced:
        lacking.append("files: the system has no Landlock (Linux 5.19 or newer)")
    if lacking and settings.sandbox is Sandbox.REQUIRED:
        raise EngineProblem(
            "Spark cannot be fenced in as engine.sandbox requires",
            code="E0906",
            notes=tuple(lacking),
            help="run on a system that can; or write `sandbox: auto` below `engine` in "
            "odfbuild.yaml, and run only what people whom you trust have defined",
        )
    return Fences(network=network, files=fenced, lacking=tuple(lacking))


def without_files(found: Fences) -> Fences:
    """What is left when Java does not start behind the fence around files."""
    why = "files: this Java does not start behind the fence; some of it lies elsewhere"
    return Fences(network=found.network, files=False, lacking=(*found.lacking, why))


def fenced(
    command: Sequence[str],
    found: Fences,
    programs: Iterable[Path],
    reach: FileAccess,
    scratch: Iterable[Path],
) -> list[str]:
    """`command` behind `found` fences; it may run `programs`, and write to `scratch` too."""
    if not (found.network or found.files):
        return list(command)
    settings = map(str, Path("/etc").glob("java*"))  # to which a Java of Debian links
    read = [
        *_SYSTEM,
        *settings,
        *map(_real, programs),
        *map(_real, reach.read),
        *map(_real, scratch),
    ]
    write = ["/dev/null", *map(_real, reach.write), *map(_real, scratch)]
    return [*_program(found.network, read if found.files else None, write), *command]


def beyond(file: Path, reach: FileAccess) -> bool:
    """Whether `file` lies outside of what is in reach."""
    real = file.resolve()
    return not any(real.is_relative_to(each.resolve()) for each in (*reach.read, *reach.write))


def _program(offline: bool, read: Sequence[str] | None, write: Sequence[str]) -> list[str]:
    rules = json.dumps({"offline": offline, "read": read, "write": list(write)})
    return [sys.executable, "-I", "-S", confine.__file__, rules]


def _real(path: Path) -> str:
    return str(path.resolve())


def _works(*, offline: bool, files: bool) -> bool:
    """Whether a program that does nothing runs behind these fences."""
    if not sys.platform.startswith("linux"):
        return False
    read = ["/"] if files else None
    try:
        done = subprocess.run(
            [*_program(offline, read, []), sys.executable, "-I", "-S", "-c", ""],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=120,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
