"""Which resident engine serves a command: the project, and all that may make an engine another one.

A request goes only to an engine that was started from the same code, Java, Spark, settings,
variables and folders.
"""

from __future__ import annotations

import hashlib
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from odfbuild.engine.release import engine_version
from odfbuild.engine.settings import (
    DEFAULTS,
    EngineSettings,
    FileAccess,
    Resident,
    default_memory,
    in_force,
)
from odfbuild.engine.shared import places
from odfbuild.store.disposable import code_stamp
from odfbuild.values import Value
from odfbuild.version import __version__

_OF_USERS = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH"}
)
"""Variables that differ between shells of one user; what Java they find is compared instead."""


class Wanted(Value):
    """An engine for the project in the folder `project`.

    `settings` are in force, without what may differ from command to command. `built` says what it
    is made of, and `places` what the folders in `reach` are now.
    """

    project: Path
    settings: EngineSettings
    reach: FileAccess
    built: str
    places: dict[Path, tuple[int, int] | None]

    @property
    def key(self) -> str:
        """The name of the engine among those of this user."""
        return key_of(self.project, self.reach)

    def is_served_by(self, other: Wanted) -> bool:
        """Whether an engine that was started as `other` gives the same as one started now."""
        return (
            self.settings == other.settings
            and self.built == other.built
            and self.reach.write == other.reach.write
            and all(other.places.get(each) == what for each, what in self.places.items())
        )


def key_of(project: Path, reach: FileAccess) -> str:
    """As `Wanted.key`: environments write elsewhere."""
    parts = [project, *reach.write, sys.prefix, __version__]
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:16]


def wanted(project: Path, settings: EngineSettings, reach: FileAccess) -> Wanted:
    """What an engine has to be that serves this process now.

    Raises `EngineProblem` where there is no Java.
    """
    now = in_force(settings)
    same = replace(
        now,
        memory=now.memory or default_memory(),
        step_seconds=None,
        question_seconds=DEFAULTS.question_seconds,
        expected_bytes=0,
        resident=Resident.NEVER,
        questions=DEFAULTS.questions,
    )
    # Editors write a file anew: what lies in no folder is copied for the engine.
    folders = replace(reach, read=tuple(each for each in reach.read if not each.is_file()))
    for folder in (*folders.read, *folders.write):
        folder.mkdir(parents=True, exist_ok=True)
    return Wanted(project, same, folders, _built(), places(folders))


def _built() -> str:
    from odfbuild.engine.spark.session.gateway import passed_on
    from odfbuild.engine.spark.session.java import find_java

    java = find_java()
    known: dict[str, Any] = passed_on(os.environ)
    variables = sorted((name, value) for name, value in known.items() if name not in _OF_USERS)
    parts = (code_stamp().hex(), sys.executable, sys.version, engine_version(), java, variables)
    return hashlib.sha256(repr(parts).encode()).hexdigest()
