"""Files that planning may open: those of the repository and of folders that the machine allows.

Git brings links and paths that lead anywhere, and what is read shows in messages and plans.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from odfbuild.errors import ProjectError
from odfbuild.store.files import top_of


class Boundary:
    """Where files that the project in `root` names may lie; asked for each of thousands."""

    def __init__(self, root: Path, folders: Sequence[Path] = ()) -> None:
        self._root = root
        self._inside = {str(each): True for each in (top_of(root), *folders)}
        self._tops = tuple(self._inside)

    def may_open(self, path: str | Path) -> bool:
        """Whether a file lies where it may, wherever links lead."""
        text = os.fspath(path)
        # Few paths have anything special about them, and the folders of most are known.
        if not text.startswith("/") or "/.." in text or os.path.islink(text):  # noqa: PTH114
            return self._leads_inside(text)
        return text in self._tops or self._holds(text.rpartition("/")[0])

    def check_open(self, path: str | Path) -> None:
        """Raise `ProjectError` E0940 unless it does."""
        if not self.may_open(path):
            shown, real = os.path.relpath(path, self._root), os.path.realpath(path)
            raise ProjectError(
                f"{shown} leads out of the project, to {real}",
                code="E0940",
                help="keep it in the repository; if it must be outside, the owner of the "
                "machine lists its folder in ODFBUILD_FOLDERS",
            )

    def _holds(self, folder: str) -> bool:
        known = self._inside.get(folder)
        if known is None:
            if not folder or os.path.islink(folder):  # noqa: PTH114
                known = self._leads_inside(folder or "/")
            else:
                known = self._holds(folder.rpartition("/")[0])
            self._inside[folder] = known
        return known

    def _leads_inside(self, path: str) -> bool:
        real = Path(os.path.realpath(path))
        return any(real.is_relative_to(each) for each in self._tops)
