"""Which files planning may open: those of the repository, and of folders that the machine names.

Git brings links and paths that lead anywhere, and what is read shows in messages and plans.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from odfbuild.errors import ProjectError
from odfbuild.store.files import top_of


def may_open(path: str | Path, root: Path, folders: Sequence[Path]) -> bool:
    """Whether a file that the project in `root` names lies where it may."""
    real = Path(os.path.realpath(path))
    return any(real.is_relative_to(each) for each in (top_of(root), *folders))


def check_open(path: str | Path, root: Path, folders: Sequence[Path]) -> None:
    """Raise `ProjectError` E0940 unless it does."""
    if not may_open(path, root, folders):
        raise ProjectError(
            f"{os.path.relpath(path, root)} leads out of the project, to {os.path.realpath(path)}",
            code="E0940",
            help="keep it in the repository; where it is meant to lie outside, the owner of the "
            "machine names its folder in ODFBUILD_FOLDERS",
        )
