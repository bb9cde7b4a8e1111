"""Which commit a project is at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from odfbuild.errors import PlanError
from odfbuild.project.git.repository import repository


def revision(root: Path) -> dict[str, Any] | None:
    """`{"commit": …, "dirty": …}` of the repository around a project; `None`: there is none.

    Dirty means that a file of the project differs from the commit or is not in it.
    """
    try:
        with repository(root, "it is at no commit") as repo:
            if not repo.head.is_valid():
                return None
            dirty = repo.is_dirty(untracked_files=True, path=str(root))
            return {"commit": repo.head.commit.hexsha, "dirty": dirty}
    except PlanError:
        return None
