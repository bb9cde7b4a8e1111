"""The Git repository around a project, and the only place that says how Git is started.

Git runs programs that configuration names: to notice changed files, to check signatures, as hooks.
That of the clone and of the machine is trusted; what a pull request brings is not, and it can bring
a folder that looks like a repository. So the repository is the one whose `.git` is nearest above
the project, which no commit can contain, and Git starts beside that `.git`.
Git is not told where that folder is (GIT_DIR), because it looks at the owner of a repository
(`safe.directory`) only if it finds it itself.
"""

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


BRANCHES = "refs/odfbuild/branches/"
"""What branches of datasets are shared by, followed by the name of one."""

_ALWAYS = (
    # A folder that looks like a repository is none.
    "safe.bareRepository=explicit",
    "core.fsmonitor=false",
    # Looking at commits does not check them, which starts `gpg.program`.
    "log.showSignature=false",
)
_READING = (*_ALWAYS, f"core.hooksPath={os.devnull}")
_ATTRIBUTES = "GIT_ATTR_NOSYSTEM"


@contextmanager
def repository(root: Path, purpose: str) -> Iterator[Repo]:
    """The repository that holds the folder `root`; `PlanError` E0341 says `purpose` without one.

    Whatever Git is asked through it starts no hooks and no other programs, but for the filters that
    the clone configures; `as_configured` is for what changes the repository.
    """
    try:
        from git import InvalidGitRepositoryError, Repo
    except ImportError:
        # GitPython looks for the program when it is imported.
        raise PlanError(
            f"the program git is not installed, so {purpose}", code="E0341", help="install Git"
        ) from None
    top = top_of(root)
    git = top / ".git"
    try:
        # Of a work tree or a submodule it is a file, which GitPython looks for beside others.
        repo = Repo(git if git.is_dir() else top, expand_vars=False)
        if not git.exists():
            raise InvalidGitRepositoryError
    except InvalidGitRepositoryError:
        raise PlanError(
            f"{root} is not in a Git repository, so {purpose}",
            code="E0341",
            help="`git init` makes one",
        ) from None
    with repo:
        _start_with(repo, _READING)
        with repo.git.custom_environment(**{_ATTRIBUTES: "1"}):
            yield repo


@contextmanager
def as_configured(repo: Repo) -> Iterator[None]:
    """Git runs the hooks that the clone configures, as for the commands of its user."""
    _start_with(repo, _ALWAYS)
    try:
        with repo.git.custom_environment(**{_ATTRIBUTES: "0"}):
            yield
    finally:
        _start_with(repo, _READING)


def _start_with(repo: Repo, settings: tuple[str, ...]) -> None:
    repo.git.set_persistent_git_options(no_pager=True, c=settings)


@contextmanager
def signed(repo: Repo) -> Iterator[None]:
    """Git works `as_configured`, and as odfbuild where nobody told it who it is, as in CI."""
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
    with as_configured(repo), repo.git.custom_environment(LC_ALL="C", **names):
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
