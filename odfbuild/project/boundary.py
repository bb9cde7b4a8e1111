"""Files that planning may open: those of the repository and of folders that the machine allows.

Git brings links and paths that lead anywhere, and what is read shows in messages and plans. Hidden
files are not among them: `.git` holds the token of a job, `.env` and `.odfbuild-keys` hold secrets.
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
        # A project, or its repository, may itself lie in a hidden folder.
        self._tops = tuple(dict.fromkeys(map(str, (root, *folders, top_of(root)))))
        self._inside = dict.fromkeys(self._tops, True)

    def may_open(self, path: str | Path) -> bool:
        """Whether a file lies where it may, wherever links lead."""
        text = os.fspath(path)
        # Few paths have anything special about them, and the folders of most are known.
        if not text.startswith("/") or "/.." in text or os.path.islink(text):  # noqa: PTH114
            return self._leads_inside(text)
        folder, _, name = text.rpartition("/")
        return text in self._tops or (name[:1] != "." and self._holds(folder))

    def check_open(self, path: str | Path, *, hidden: bool = False) -> None:
        """Raise `ProjectError` E0940 unless it does; with `hidden`, hidden files are allowed."""
        if not self.may_open(path):
            if hidden and self._top_around(os.path.realpath(path)) is not None:
                return
            shown, real = os.path.relpath(path, self._root), os.path.realpath(path)
            if self._top_around(real) is not None:
                behind = os.path.relpath(real, self._root)
                raise ProjectError(
                    f"{shown} is a hidden file, or leads to one: {behind}",
                    code="E0940",
                    help="use a file whose path has no name that begins with a dot",
                )
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
                above, _, name = folder.rpartition("/")
                known = name[:1] != "." and self._holds(above)
            self._inside[folder] = known
        return known

    def _leads_inside(self, path: str) -> bool:
        real = os.path.realpath(path)
        top = self._top_around(real)
        return top is not None and "/." not in real[len(top) :]

    def _top_around(self, real: str) -> str | None:
        """The innermost folder around a path from which it counts what is hidden."""
        found = [each for each in self._tops if Path(real).is_relative_to(each)]
        return max(found, key=len, default=None)
