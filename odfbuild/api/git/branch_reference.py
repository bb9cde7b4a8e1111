"""Share a branch of datasets by a reference of Git of its own, outside of all branches of Git.

`refs/odfbuild/branches/NAME` names a commit with the files of that branch alone: its references and
what no commit has of its chains. They are no part of a pull request then, so that reverting the
pull request takes no block away that a promoted head needs: the promotion commits the blocks.
Each push is a child of the last one, so of two clones that push, the second is refused.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odfbuild.api.git.defined import check_defined
from odfbuild.api.git.publish import folder_in, refused, remote_of, was_second
from odfbuild.errors import BranchError, PlanError, StaleHeadError
from odfbuild.project.git.references import references_in
from odfbuild.project.git.repository import BRANCHES, repository, signed
from odfbuild.project.git.shared import SharedBranch
from odfbuild.store.branches import BranchName, unknown_branch
from odfbuild.store.creation import prepare_state_folder
from odfbuild.store.files import make_folder, write_file

if TYPE_CHECKING:
    from git import Repo

    from odfbuild.project.model import Config
    from odfbuild.store.workspace import Workspace

_PURPOSE = "there is nothing to share a branch by"


def push_branch(
    config: Config, workspace: Workspace, name: str, remote: str | None = None
) -> SharedBranch:
    """Put the files of a branch where other clones fetch them; errors as `publish`.

    `BranchError` E1102 when there is no such branch, `StaleHeadError` E0701 when others pushed it.
    """
    from git import GitCommandError

    branch = BranchName.parse(name)
    datasets = tuple(sorted(alias for alias, each in workspace.in_branches() if each == branch))
    if not datasets:
        raise unknown_branch(branch, {each for _, each in workspace.in_branches()})
    with repository(config.root, _PURPOSE) as repo:
        folder, target = folder_in(repo, config), remote_of(repo, remote)
        if repo.head.is_valid():
            inside = config.in_branch(branch)
            check_defined(inside, inside.workspace(), datasets, ())
        reference = BRANCHES + branch
        files = _files(repo, folder, branch, datasets)
        last = _tip(repo, reference)
        made = _commit(repo, files, f"Branch {branch}", last)
        with signed(repo):
            try:
                repo.git.push(target, f"{made}:{reference}")
            except GitCommandError as error:
                if not was_second(error):
                    raise refused("push the branch", error) from None
                raise StaleHeadError(
                    f"others have pushed the branch '{branch}' in the meantime",
                    code="E0701",
                    notes=(f"to {target}, as {reference}", "nothing was pushed"),
                    help=f"continue from theirs: `odfbuild branch delete {branch}`, `odfbuild git "
                    f"fetch {branch}` and apply again; or use another name",
                ) from None
            repo.git.update_ref(reference, made)
    return SharedBranch(branch, target, datasets, len(files))


def fetch_branch(config: Config, name: str, remote: str | None = None) -> SharedBranch | None:
    """Bring the files of a branch from a remote; `None` when that has no such branch.

    `BranchError` E1145 when the branch was changed here since it was fetched or pushed.
    """
    from git import GitCommandError

    branch = BranchName.parse(name)
    with repository(config.root, _PURPOSE) as repo:
        folder, target = folder_in(repo, config), remote_of(repo, remote)
        reference = BRANCHES + branch
        try:
            if not repo.git.ls_remote(target, reference):
                return None
            repo.git.fetch("--no-tags", target, reference)
        except GitCommandError as error:
            raise refused("fetch the branch", error) from None
        fetched = repo.git.rev_parse("--verify", "FETCH_HEAD")
        before = _contents(repo, _tip(repo, reference), folder, branch)
        files = _contents(repo, fetched, folder, branch)
        top = Path(str(repo.working_tree_dir))
        gone = references_of_branch(before, folder, branch) - files.keys()
        _check_unchanged(repo, top, branch, before, files, gone)
        prepare_state_folder(config.state)
        moved = _write(repo, top, files)
        for path in gone:
            (top / path).unlink(missing_ok=True)
        repo.git.update_ref(reference, fetched)
    found = references_in(files, folder).values()
    return SharedBranch(branch, target, tuple(sorted(name for name, _ in found)), moved)


def drop_branch(config: Config, name: str, remote: str | None = None) -> str | None:
    """Delete a branch at a remote, which others then fetch no more; its name, `None` without it."""
    from git import GitCommandError

    branch = BranchName.parse(name)
    with repository(config.root, _PURPOSE) as repo, signed(repo):
        target, reference = remote_of(repo, remote), BRANCHES + branch
        try:
            there = bool(repo.git.ls_remote(target, reference))
            if there:
                repo.git.push(target, f":{reference}")
        except GitCommandError as error:
            raise refused("delete the branch", error) from None
        if _tip(repo, reference):
            repo.git.update_ref("-d", reference)
    return target if there else None


def references_of_branch(files: Iterable[str], folder: str, branch: str) -> set[str]:
    """Those of the files that say where a dataset is in the branch."""
    return {path for path, (_, name) in references_in(files, folder).items() if name == branch}


def _files(repo: Repo, folder: str, branch: str, datasets: Sequence[str]) -> list[str]:
    """What the branch consists of: its own files, and of its datasets what no commit has."""
    untracked = repo.git(literal_pathspecs=True).ls_files(
        "--others", "--exclude-standard", "-z", "--", *(f"{folder}/{name}" for name in datasets)
    )
    top = Path(str(repo.working_tree_dir))
    own = [
        f"{folder}/{name}/{kind}/{branch}"
        for name in datasets
        for kind in _KINDS
        if kind != _SUMMARIES or (top / folder / name / kind / branch).is_file()
    ]
    blocks = [each for each in untracked.split("\0") if each and not _is_of_reference(each)]
    return sorted({*own, *blocks})


_SUMMARIES = "info/summaries"
_KINDS = ("refs", "info/branches", _SUMMARIES)
"""Folders of a dataset with a file for each reference."""


def _is_of_reference(path: str) -> bool:
    return any(f"/{kind}/" in path for kind in _KINDS)


def _tip(repo: Repo, reference: str) -> str | None:
    said = repo.git.for_each_ref("--format=%(objectname)", reference)
    return said or None


@contextmanager
def _index(repo: Repo) -> Iterator[None]:
    """An index of its own, so that what is staged stays as it is."""
    with (
        tempfile.TemporaryDirectory(prefix="odfbuild-") as folder,
        repo.git.custom_environment(GIT_INDEX_FILE=str(Path(folder) / "index")),
    ):
        yield


def _commit(repo: Repo, files: Sequence[str], message: str, last: str | None) -> str:
    """A commit with these files of the work tree and nothing else."""
    with _index(repo), _input(files) as names, signed(repo):
        repo.git.update_index("--add", "-z", "--stdin", istream=names)
        tree = repo.git.write_tree()
        if last is not None and repo.git.rev_parse(f"{last}^{{tree}}") == tree:
            return last
        parents = () if last is None else ("-p", last)
        return str(repo.git.commit_tree(tree, *parents, "-m", message))


@contextmanager
def _input(names: Sequence[str]) -> Iterator[Any]:
    with tempfile.TemporaryFile() as file:
        file.write("".join(f"{each}\0" for each in names).encode())
        file.seek(0)
        yield file


def _contents(repo: Repo, commit: str | None, folder: str, branch: str) -> dict[str, str]:
    """Hashes by path of the files of a shared branch, of those that it may have."""
    if commit is None:
        return {}
    listed = repo.git.ls_tree("-r", "-z", "--full-tree", commit)
    found = {}
    for line in filter(None, listed.split("\0")):
        facts, _, path = line.partition("\t")
        mode, _, hash = facts.split()
        if mode == "100644" and _may_have(path, folder, branch):
            found[path] = hash
    return found


def _may_have(path: str, folder: str, branch: str) -> bool:
    """Whether a shared branch may bring a file: never a head, nor anything beside the chains."""
    if not path.startswith(f"{folder}/") or ".." in path.split("/"):
        return False
    if _is_of_reference(path):
        return path.endswith(tuple(f"/{kind}/{branch}" for kind in _KINDS))
    return "/blocks/" in path or "/info/" in path


def _check_unchanged(
    repo: Repo,
    top: Path,
    branch: str,
    before: dict[str, str],
    files: dict[str, str],
    gone: Iterable[str],
) -> None:
    """`BranchError` E1145 unless references here are those of the last time, or the new ones."""
    for path in (*files, *gone):
        if "/refs/" not in path or not (top / path).is_file():
            continue
        known = {each[path] for each in (before, files) if path in each}
        if (top / path).read_bytes() not in [_blob(repo, hash) for hash in known]:
            raise BranchError(
                f"the branch '{branch}' was changed here since it was fetched or pushed",
                code="E1145",
                notes=(f"differs: {path}", "nothing was changed"),
                help=f"share it: `odfbuild git push {branch}`; or give it up: `odfbuild branch "
                f"delete {branch}`, and fetch again",
            )


def _blob(repo: Repo, hash: str) -> bytes:
    return bytes(repo.odb.stream(bytes.fromhex(hash)).read())


def _write(repo: Repo, top: Path, files: dict[str, str]) -> int:
    """Write files that differ, references last; how many there were."""
    moved = 0
    for path in sorted(files, key=lambda each: ("/refs/" in each, each)):
        data, target = _blob(repo, files[path]), top / path
        if not target.resolve().is_relative_to(top.resolve()):
            raise PlanError(
                f"{path} leads out of the repository",
                code="E0344",
                help="remove the link, and run the same command again",
            )
        if target.is_file() and target.read_bytes() == data:
            continue
        make_folder(target.parent)
        write_file(target, data)
        moved += 1
    return moved
