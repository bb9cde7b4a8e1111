"""The files of a dbt project, as `dbt_project.yml` says where they are."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import Any

from odfbuild.errors import Location, ProjectError
from odfbuild.exchange.dbt.model import Place
from odfbuild.limits import FILE_BYTES
from odfbuild.project.yaml.source import locate, read_documents
from odfbuild.store.files import TooLarge, read_bounded

SETTINGS = "dbt_project.yml"
_FOLDERS = {
    "models": (("model-paths", "source-paths"), ["models"]),
    "seeds": (("seed-paths", "data-paths"), ["seeds"]),
    "snapshots": (("snapshot-paths",), ["snapshots"]),
    "tests": (("test-paths",), ["tests"]),
    "macros": (("macro-paths",), ["macros"]),
    "analyses": (("analysis-paths",), ["analyses"]),
}
"""Settings that name folders of a kind, now and in earlier releases, and their default."""


class DbtFiles:
    """Files by their names relative to the folder of the project, with `/`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._root = folder.resolve()
        self._documents: dict[str, Any] = {}
        self._below: dict[str, str] = {}

    @cached_property
    def settings(self) -> dict[str, Any]:
        """`dbt_project.yml`; empty where there is none."""
        if not (self.folder / SETTINGS).is_file():
            return {}
        found = self.document(SETTINGS)
        return found if isinstance(found, dict) else {}

    def of(self, kind: str, *suffixes: str) -> list[str]:
        """The files of a kind (`models`, `seeds` …) with one of these suffixes, in order."""
        names, default = _FOLDERS[kind]
        folders = next((self.settings[each] for each in names if each in self.settings), default)
        found: set[str] = set()
        for folder in folders if isinstance(folders, list) else []:
            for where, _, files in os.walk(self.folder / str(folder)):
                for name in files:
                    # A link could bring a file of the machine into the new project.
                    inside = (Path(where) / name).resolve().is_relative_to(self._root)
                    if name.endswith(suffixes) and inside:
                        file = (Path(where) / name).relative_to(self.folder).as_posix()
                        self._below[file] = (
                            Path(where, name).relative_to(self.folder / folder).as_posix()
                        )
                        found.add(file)
        return sorted(found)

    def properties(self) -> list[str]:
        """YAML files that describe tables."""
        kinds = ("models", "seeds", "snapshots", "tests", "analyses")
        return sorted({file for kind in kinds for file in self.of(kind, ".yml", ".yaml")})

    def parts(self, file: str) -> tuple[str, ...]:
        """Folders and name of a file below the folder of its kind."""
        path = Path(self._below.get(file, file))
        return (*path.parts[:-1], path.stem)

    def text(self, file: str) -> str:
        """The text of a file; raises `ProjectError`."""
        try:
            return read_bounded(self.folder / file, FILE_BYTES).decode("utf-8-sig")
        except UnicodeDecodeError:
            raise _unreadable(self.folder / file, "it is not UTF-8 text", "E0103") from None
        except TooLarge:
            why = f"it has more than {FILE_BYTES >> 20} MiB"
            raise _unreadable(self.folder / file, why, "E0126") from None
        except OSError as error:
            raise _unreadable(self.folder / file, error.strerror or "", "E0103") from None

    def document(self, file: str) -> Any:
        """The data of a YAML file; raises `ProjectError`."""
        if file not in self._documents:
            found = read_documents(self.text(file), str(self.folder / file))
            self._documents[file] = found[0] if found else {}
        return self._documents[file]

    def place(self, file: str, path: tuple[str | int, ...]) -> Place:
        """Where a value of a YAML file stands."""
        return Place(file, locate(self.text(file), file, 0, path).line)


def _unreadable(path: Path, why: str, code: str) -> ProjectError:
    return ProjectError(
        f"a file of the dbt project cannot be read: {why}",
        code=code,
        location=Location(str(path)),
        help="save it as UTF-8 text that you may read, or leave it out",
    )
