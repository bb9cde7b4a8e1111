"""The Git repository around a project."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.errors import PlanError
from odfbuild.store.files import top_of

if TYPE_CHECKING:
    from git import Repo

NOTES = "refs/notes/odfbuild"
"""Where notes of ours lie."""


@contextmanager
def repository(root: Path, purpose: str) -> Iterator[Repo]:
    """The repository that holds the folder `root`; `PlanError` E0341 says `purpose` without one."""
    try:
        from git import InvalidGitRepositoryError, Repo
    except ImportError:
        # GitPython looks for the program when it is imported.
        raise PlanError(
            f"the program git is not installed, so {purpose}", code="E0341", help="install Git"
        ) from None
    try:
        repo = Repo(root, search_parent_directories=True)
    except InvalidGitRepositoryError:
        raise PlanError(
            f"{root} is not in a Git repository, so {purpose}",
            code="E0341",
            help="`git init` makes one",
        ) from None
    with repo:
        yield repo


@contextmanager
def signed(repo: Repo) -> Iterator[None]:
    """Git signs as it is configured, and as odfbuild where nobody told it who it is, as in CI."""
    with repo.config_reader() as config:
        known = config.has_option("user", "email") or "GIT_AUTHOR_EMAIL" in os.environ
    names = (
        {}
        if known
        else {
            f"GIT_{role}_{what}": value
            for role in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", "odfbuild"), ("EMAIL", "odfbuild@localhost"))
        }
    )
    with repo.git.custom_environment(LC_ALL="C", **names):
        yield


def inside(repo: Repo, path: Path) -> str | None:
    """The path as Git spells it, relative to the top of the repository; `None` when outside."""
    top = Path(str(repo.working_tree_dir)).resolve()
    path = path.resolve()
    return path.relative_to(top).as_posix() if path.is_relative_to(top) else None


def has_notes(root: Path) -> bool:
    """Whether anybody may have left notes of ours in the repository around `root`.

    Looks at files only, since every plan asks: neither GitPython nor Git is started.
    """
    top = top_of(root)
    if not (top / ".git").exists():
        return False
    folder = _common_folder(top / ".git")
    if (folder / "reftable").is_dir() or (folder / NOTES).is_file():
        return True
    try:
        return NOTES.encode() in (folder / "packed-refs").read_bytes()
    except OSError:
        return False


def may_be_configured(root: Path, section: str) -> bool:
    """Whether Git may have settings of a `section` for the repository around `root`.

    Looks at files only, as `has_notes`; one that includes others may have any.
    """
    git = top_of(root) / ".git"
    if not git.exists():
        return False
    home = Path.home()
    own = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    files = (Path("/etc/gitconfig"), own / "git" / "config", home / ".gitconfig")
    try:
        known = b"\n".join(map(_bytes, (_common_folder(git) / "config", *files))).lower()
    except OSError:
        return True
    return f"[{section}".encode() in known or b"[include" in known


def notes_state(root: Path) -> bytes | None:
    """What the notes that lead here follow from: while it is the same, so are they.

    `None` where the references are not in files that can be read without Git.
    """
    git = next(folder / ".git" for folder in (root, *root.parents) if (folder / ".git").exists())
    folder = _common_folder(git)
    if (folder / "reftable").is_dir() or (folder / "refs" / "replace").is_dir():
        return None
    try:
        own = git if git.is_dir() else git.parent / git.read_text().partition(" ")[2].strip()
        packed = _bytes(folder / "packed-refs")
        head = (own / "HEAD").read_bytes()
        name = head.removeprefix(b"ref: ").strip().decode()
        loose = (_bytes(folder / each) for each in (name, NOTES) if each.startswith("refs/"))
        cut = (_bytes(folder / each) for each in ("shallow", "info/grafts"))
        return b"\0".join((head, packed, *loose, *cut))
    except (OSError, ValueError):
        return None


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""


def _common_folder(git: Path) -> Path:
    """The folder with the references: that of the repository itself, also for a work tree of it."""
    try:
        folder = git if git.is_dir() else git.parent / git.read_text().partition(" ")[2].strip()
        common = folder / "commondir"
        return (folder / common.read_text().strip()).resolve() if common.is_file() else folder
    except OSError:
        return git
