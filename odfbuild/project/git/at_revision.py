"""Definitions of a project at two revisions of its Git repository, as far as they can differ.

What is the same in Git is not read: only files that differ are, unless something differs on which
every file may depend, such as `odfbuild.yaml` or a macro.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from odfbuild.errors import PlanError
from odfbuild.project.config import FILE
from odfbuild.project.git.repository import inside, repository
from odfbuild.project.load import SHARED_FOLDERS, read_project
from odfbuild.project.model import Config, Project
from odfbuild.project.overrides import Overrides
from odfbuild.project.source import (
    QUERY_SUFFIXES,
    TEMPLATE_SUFFIX,
    YAML_SUFFIXES,
    definition_files_of,
    query_file_of,
)
from odfbuild.values import Value

if TYPE_CHECKING:
    from git import Commit, Repo


_DEFINING = (*YAML_SUFFIXES, TEMPLATE_SUFFIX, *QUERY_SUFFIXES)


class RevisionPair(Value, kw_only=True):
    """A project at two revisions, with the definitions of files that differ."""

    before: Project
    after: Project


@contextmanager
def sides(config: Config, old: str, new: str | None) -> Iterator[RevisionPair]:
    """The project around `config` at the revisions `old` and `new` (`None`: as the files are now).

    While it is open, files of both sides can be read. Raises `PlanError`: E0340 for an unknown
    revision, E0341 where there is no repository, E0342 where a revision has no project.
    """
    with repository(config.root, "there are no revisions to compare") as repo:
        before = _commit(repo, old)
        after = _commit(repo, new) if new is not None else None
        prefix = config.root.relative_to(Path(str(repo.working_tree_dir)).resolve())
        changed = _changed_files(repo, before, after, PurePosixPath(prefix))
        files = None if any(map(_is_shared, changed)) else _with_queries(changed)
        with _exported(before, prefix, files, config.given, old) as left:
            if after is None:
                now = read_project(config.root, config.given)
                yield RevisionPair(before=left, after=_only(now, files))
                return
            with _exported(after, prefix, files, config.given, str(new)) as right:
                yield RevisionPair(before=left, after=right)


def is_revision(root: Path, text: str) -> bool:
    """Whether Git knows a revision of that name in the repository around `root`."""
    try:
        with repository(root, "there are no revisions") as repo:
            return bool(_commit(repo, text))
    except PlanError:
        return False


def file_at(root: Path, revision: str, file: Path) -> bytes | None:
    """The content of a file at a revision of the repository around `root`; `None`: not there."""
    with repository(root, "there are no revisions") as repo:
        path = inside(repo, file)
        if path is None:
            return None
        try:
            return bytes((_commit(repo, revision).tree / path).data_stream.read())
        except KeyError:
            return None


def _commit(repo: Repo, revision: str) -> Commit:
    from git.exc import BadName, GitCommandError

    try:
        return repo.commit(revision)
    except (BadName, GitCommandError, ValueError, IndexError):
        raise PlanError(
            f"Git knows no revision '{revision}'",
            code="E0340",
            help="give a branch, a tag or a commit, as `git rev-parse` takes them; "
            "in a shallow clone `git fetch` it first",
        ) from None


def _changed_files(
    repo: Repo, before: Commit, after: Commit | None, prefix: PurePosixPath
) -> set[str]:
    """Paths below `prefix` that differ or that Git does not know, relative to it."""
    sides = [each.hexsha for each in (before, after) if each is not None]
    below = [] if prefix == PurePosixPath() else [str(prefix)]
    # Renames come as one file that goes and one that comes: where a definition lies says nothing.
    said = repo.git(literal_pathspecs=True).diff(
        "--name-only", "-z", "--no-renames", "--no-ext-diff", *sides, "--", *below
    )
    found = set(filter(None, said.split("\0")))
    if after is None:
        found.update(repo.untracked_files)
    return {
        str(PurePosixPath(path).relative_to(prefix))
        for path in found
        if PurePosixPath(path).is_relative_to(prefix)
    }


def _with_queries(files: set[str]) -> set[str]:
    """Files, with the query beside each definition, and the definition beside each query."""
    beside = {name for file in files if (name := query_file_of(file)) is not None}
    queries = (file for file in files if file.endswith(QUERY_SUFFIXES))
    return files | beside | {name for file in queries for name in definition_files_of(file)}


def _is_shared(path: str) -> bool:
    return path == FILE or path.split("/", 1)[0] in SHARED_FOLDERS


@contextmanager
def _exported(
    commit: Commit, prefix: Path, files: Collection[str] | None, given: Overrides, revision: str
) -> Iterator[Project]:
    """The project of a commit, in a folder of its own with these definitions (`None`: all)."""
    with tempfile.TemporaryDirectory(prefix="odfbuild-") as folder:
        root = Path(folder).resolve()
        for path, content in _blobs(commit, prefix, files):
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        if not (root / FILE).exists():
            raise PlanError(
                f"there is no {FILE} at the revision '{revision}'",
                code="E0342",
                help="compare with a revision at which the project existed",
            )
        yield read_project(root, given)


def _blobs(
    commit: Commit, prefix: Path, files: Collection[str] | None
) -> Iterator[tuple[str, bytes]]:
    """Path and content of what the project's definitions consist of at a commit."""
    base = prefix.as_posix()
    below = () if prefix == Path() else ("--", base)
    listed = commit.repo.git.ls_tree(
        "-r", "-z", "--name-only", "--full-tree", commit.hexsha, *below
    )
    for path in filter(None, listed.split("\0")):
        inside = PurePosixPath(path).relative_to(base).as_posix()
        defines = inside.endswith(_DEFINING) and not _is_hidden(inside)
        if _is_shared(inside) or (defines and (files is None or inside in files)):
            yield inside, (commit.tree / path).data_stream.read()


def _is_hidden(path: str) -> bool:
    return any(part.startswith(".") for part in path.split("/"))


def _only(project: Project, files: Collection[str] | None) -> Project:
    if files is None:
        return project
    wanted = tuple(d for d in project.definitions if Path(d.file).as_posix() in files)
    wrong = tuple(each for each in project.wrong if Path(each.file).as_posix() in files)
    return replace(project, definitions=wanted, wrong=wrong)
