"""Who acts, for what is signed and kept: as Git would call the author of a commit."""

from __future__ import annotations

import getpass
import os
from pathlib import Path

from odfbuild.errors import PlanError


def who_acts(root: Path) -> str:
    """`Name <address>` where Git knows it, else the name of the user of this machine."""
    name, address = (os.environ.get(f"GIT_AUTHOR_{each}") for each in ("NAME", "EMAIL"))
    if name is None:
        name, address = _of_repository(root)
    if name is not None:
        return f"{name} <{address}>" if address else name
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        return f"user {os.getuid()}"


def _of_repository(root: Path) -> tuple[str | None, str | None]:
    from odfbuild.project.git.repository import repository

    try:
        with repository(root, "nobody can be named") as repo, repo.config_reader() as config:
            name, address = (config.get_value("user", key, "") for key in ("name", "email"))
            return str(name) or None, str(address) or None
    except PlanError:
        return None, None
