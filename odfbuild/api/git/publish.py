"""Commit the chains to Git and push them.

Only files of the chains are committed, whatever else was changed or staged. The push is a
compare-and-swap between clones: if others pushed first, our commit is rebased onto theirs if they
changed other datasets, and refused if they changed one of the same.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from odfbuild.api.git.defined import check_defined
from odfbuild.errors import ChainError, PlanError, StaleHeadError
from odfbuild.odf.model import AddData, ExecuteTransform
from odfbuild.odf.multihash import Multihash
from odfbuild.project.git.notes import REF
from odfbuild.project.git.references import Reference, references_in, references_of
from odfbuild.project.git.repository import NOTES, inside, repository, signed
from odfbuild.project.git.shared import MovedDataset, Published, describe
from odfbuild.store.branches import HEAD, BranchInfo
from odfbuild.store.references import parse_head
from odfbuild.wording import count, named

if TYPE_CHECKING:
    from git import Repo

    from odfbuild.project.model import Config
    from odfbuild.store.dataset import DatasetStore
    from odfbuild.store.workspace import Workspace

_ATTEMPTS = 5
_THEIRS = "refs/notes/odfbuild-theirs"


def publish(
    config: Config,
    workspace: Workspace,
    message: str | None = None,
    *,
    push: bool = False,
    remote: str | None = None,
    branch: str | None = None,
) -> Published:
    """Commit the chains, and with `push` share them; errors as the functions below.

    `PlanError` E0394 when definitions would stay behind.
    """
    with repository(config.root, "there is nothing to commit to") as repo:
        target = target_of(repo, remote, branch) if push else None
        moved = moved_since_commit(repo, config, workspace)
        if push and repo.head.is_valid():
            _check_defined(config, workspace, moved)
        made = commit_chains(repo, config, message or message_for(moved))
        if target is not None:
            push_chains(repo, config, *target)
        # Pushing may have put it behind the commits of others.
        commit = repo.head.commit.hexsha if made else None
    return Published(moved, commit, "/".join(target) if target else None)


def moved_since_commit(
    repo: Repo, config: Config, workspace: Workspace
) -> tuple[MovedDataset, ...]:
    """Datasets whose heads and branches are not those of the commit that is checked out, by name.

    `PlanError` E0344 when the chains are outside of the repository, or Git ignores them.
    """
    folder = folder_in(repo, config)
    before = references_of(repo.head.commit, folder) if repo.head.is_valid() else {}
    now = {(name, HEAD): parse_head(text, name, "") for name, text in workspace.heads().items()}
    for name, branch in workspace.in_branches():
        head = workspace.dataset(name).branch_head(branch)
        if head is not None:
            now[name, branch] = head
    moved = []
    for name, reference in sorted({*before, *now}):
        head, old = now.get((name, reference)), before.get((name, reference))
        if old != (None if head is None else str(head)):
            of = None if reference == HEAD else reference
            moved.append(
                MovedDataset(name, of, gone=True)
                if head is None
                else _moved(workspace.dataset(name), of, head, old)
            )
    return tuple(moved)


def message_for(moved: tuple[MovedDataset, ...]) -> str:
    """The message of a commit: how many datasets, then a line for each."""
    if not moved:
        return "Record origins and signatures of datasets"
    branches = {each.branch for each in moved}
    title = f"Bring {count(len({each.name for each in moved}), 'dataset')} up to date"
    if None not in branches:
        title += f" in {named(sorted(filter(None, branches)))}"
    return "\n".join([title, "", *map(describe, moved)])


def commit_chains(repo: Repo, config: Config, message: str) -> str | None:
    """Commit the chains, and nothing else; the hash, or `None` when Git has all of them."""
    from git import GitCommandError

    folder = folder_in(repo, config)
    if not config.state.exists() and not repo.git.ls_files("--", f":/{folder}"):
        return None  # nothing was ever applied
    with signed(repo):
        repo.git.add("--all", "--", f":/{folder}")
        if not repo.git.diff("--cached", "--name-only", "--", f":/{folder}"):
            return None
        try:
            repo.git.commit("--quiet", "--only", "--message", message, "--", f":/{folder}")
        except GitCommandError as error:
            raise refused("commit", error) from None
    return repo.head.commit.hexsha


def push_chains(repo: Repo, config: Config, remote: str, branch: str) -> None:
    """Push the commit, and the notes on heads, to a branch of a remote.

    `StaleHeadError` E0701 when others moved the same datasets there, `PlanError` E0345 when Git or
    the remote refuses for any other reason; our commit stays as it is.
    """
    from git import GitCommandError

    folder = folder_in(repo, config)
    with signed(repo):
        for attempt in range(_ATTEMPTS):
            try:
                repo.git.push(remote, f"HEAD:refs/heads/{branch}")
                break
            except GitCommandError as error:
                if not was_second(error) or attempt == _ATTEMPTS - 1:
                    raise refused("push", error) from None
            _go_behind(repo, folder, remote, branch)
        _push_notes(repo, remote)


def target_of(repo: Repo, remote: str | None, branch: str | None) -> tuple[str, str]:
    """Where to push: what is asked for, or what the CI job or the checked out branch says.

    `PlanError` E0346 when nothing does.
    """
    ours = None if repo.head.is_detached else repo.active_branch
    tracked = ours.tracking_branch() if ours is not None else None
    where = remote or _known_remote(repo)
    what = branch or (tracked.remote_head if tracked else None)
    what = what or os.environ.get("GITHUB_REF_NAME") or os.environ.get("CI_COMMIT_BRANCH")
    what = what or (ours.name if ours is not None else None)
    if where is None or what is None:
        raise _unclear("there is no remote" if where is None else "no branch is checked out")
    return where, what


def remote_of(repo: Repo, remote: str | None) -> str:
    """The remote that is asked for, or that of the checked out branch; `PlanError` E0346."""
    where = remote or _known_remote(repo)
    if where is None:
        raise _unclear("there is no remote")
    return where


def folder_in(repo: Repo, config: Config) -> str:
    """Where the chains lie in the repository; `PlanError` E0344 where they do not."""
    folder = inside(repo, config.state)
    if folder is None or repo.ignored(str(config.state)):
        why = "lie outside of the repository" if folder is None else "are ignored by Git"
        raise PlanError(
            f"the chains in {config.state} {why}",
            code="E0344",
            help="Git brings chains to other clones: let `state` of odfbuild.yaml name a folder "
            "inside, and take it out of .gitignore (data stays out by chains/.gitignore)",
        )
    return folder


def was_second(error: Exception) -> bool:
    """Whether Git refused a push because others pushed first."""
    said = str(getattr(error, "stderr", ""))
    return "fetch first" in said or "non-fast-forward" in said or "cannot lock ref" in said


def refused(what: str, error: Exception) -> PlanError:
    """E0345: Git did not do what it was asked to, and says why."""
    said = str(getattr(error, "stderr", "")).replace("stderr:", "").strip(" \n'")
    merging = "partial commit during" in said
    return PlanError(
        f"Git did not {what}",
        code="E0345",
        notes=tuple(line for line in said.splitlines() if line.strip()),
        help="finish the operation in progress in Git, including all changes: `git add --all` "
        "and `git commit`"
        if merging
        else "fix what Git reports, and run the same command again",
    )


# --- Helpers ---


def _known_remote(repo: Repo) -> str | None:
    ours = None if repo.head.is_detached else repo.active_branch
    tracked = ours.tracking_branch() if ours is not None else None
    names = [each.name for each in repo.remotes]
    if tracked is not None:
        return str(tracked.remote_name)
    return "origin" if "origin" in names else (names[0] if len(names) == 1 else None)


def _unclear(why: str) -> PlanError:
    return PlanError(
        f"it is not clear where to push to: {why}",
        code="E0346",
        help="specify it: `odfbuild git commit --push --remote origin --git-branch main`",
    )


def _check_defined(config: Config, workspace: Workspace, moved: tuple[MovedDataset, ...]) -> None:
    """`PlanError` E0394 when definitions would stay behind, on the heads and in each branch."""
    on_head = [each for each in moved if each.branch is None]
    gone = [each.name for each in on_head if each.gone]
    check_defined(config, workspace, [each.name for each in on_head], gone)
    for branch in sorted({each.branch for each in moved if each.branch and not each.gone}):
        inside = config.in_branch(branch)
        names = [each.name for each in moved if each.branch == branch]
        check_defined(inside, inside.workspace(), names, ())


def _moved(
    store: DatasetStore, branch: str | None, head: Multihash, before: str | None
) -> MovedDataset:
    try:
        old = Multihash.parse(before) if before is not None else None
        if before is None and branch is not None:
            old = BranchInfo.read(store.folder, store.name, branch).base
        links = list(store.walk(head, old))
        rewritten = False
    except (ChainError, ValueError):
        links, rewritten = list(store.walk(head)), True
    slices = [
        block.event.new_data
        for _, block in links
        if isinstance(block.event, AddData | ExecuteTransform) and block.event.new_data is not None
    ]
    records = sum(x.offset_interval.end - x.offset_interval.start + 1 for x in slices)
    return MovedDataset(store.name, branch, len(links), records, rewritten)


def _go_behind(repo: Repo, folder: str, remote: str, branch: str) -> None:
    """Put our commits behind those that others pushed."""
    from git import GitCommandError

    try:
        repo.git.fetch(remote, f"refs/heads/{branch}")
        base = repo.git.merge_base("HEAD", "FETCH_HEAD")
        ours = _heads_between(repo, base, "HEAD", folder)
        theirs = _heads_between(repo, base, "FETCH_HEAD", folder)
        both = sorted({name for name, _ in ours & theirs})
        if both:
            raise StaleHeadError(
                f"others have committed to {_list(both)} in the meantime",
                code="E0701",
                dataset=both[0] if len(both) == 1 else None,
                notes=(f"pushed to {remote}/{branch} first", "nothing was pushed"),
                help="continue from their chains: run a CI job again; on this machine run "
                f"`git pull --no-rebase {remote} {branch}`, `git checkout --theirs :/{folder}`, "
                "`odfbuild apply`, `git add --all` and `git commit`",
            )
        repo.git.rebase("--quiet", "--autostash", "FETCH_HEAD")
    except GitCommandError as error:
        if (error.command or [])[1:2] == ["rebase"]:
            repo.git.rebase("--abort")
        raise refused("rebase onto what others pushed", error) from None


def _heads_between(repo: Repo, base: str, end: str, folder: str) -> set[Reference]:
    """Datasets below `folder`, and their references, that differ between two commits."""
    said = repo.git.diff(
        "--name-only", "-z", "--no-renames", "--no-ext-diff", base, end, "--", f":/{folder}"
    )
    return set(references_in(said.split("\0"), folder).values())


def _push_notes(repo: Repo, remote: str) -> None:
    from git import GitCommandError

    if not repo.git.for_each_ref(NOTES):
        return
    try:
        try:
            repo.git.push(remote, NOTES)
        except GitCommandError as error:
            if not was_second(error):
                raise
            repo.git.fetch(remote, f"+{NOTES}:{_THEIRS}")
            repo.git.notes(f"--ref={REF}", "merge", "--quiet", "-s", "cat_sort_uniq", _THEIRS)
            repo.git.push(remote, NOTES)
    except GitCommandError as error:
        raise refused("push the notes on heads", error) from None


def _list(names: list[str]) -> str:
    quoted = [f"'{name}'" for name in names[:3]]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(quoted) + more
