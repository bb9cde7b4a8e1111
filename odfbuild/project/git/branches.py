"""Branches of Git that ended: they were merged, or are gone."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.errors import EnvironmentProblem, PlanError
from odfbuild.project.git.repository import repository

if TYPE_CHECKING:
    from git import Repo

_HEADS = "refs/heads/"
_REMOTES = "refs/remotes/"


def ended(root: Path, names: Collection[str], *, fetch: bool = False) -> dict[str, str]:
    """Those of these branches that were merged or are gone, and which of the two.

    Asks this clone, and with `fetch` its remotes. A clone that does not have all branches cannot
    tell that one is gone. `EnvironmentProblem` E1141 when a remote does not answer.
    """
    try:
        with repository(root, "branches of Git cannot be compared") as repo:
            return _ended(repo, names, fetch=fetch)
    except PlanError:
        return {}


def _ended(repo: Repo, names: Collection[str], *, fetch: bool) -> dict[str, str]:
    if not names or not repo.head.is_valid():
        return {}
    listed = repo.git.for_each_ref(
        "--format=%(refname) %(objectname) %(upstream:track)", _HEADS, _REMOTES
    )
    tips: dict[str, list[str]] = {}
    for line in listed.splitlines():
        name, commit, track = line.split(" ", 2)
        local = name.startswith(_HEADS)
        short = name.removeprefix(_HEADS) if local else name.removeprefix(_REMOTES)
        branch = short if local else short.partition("/")[2]
        if track != "[gone]":  # its branch on the remote was deleted
            tips.setdefault(branch, []).append(commit)
    there = _on_remotes(repo) if fetch else None
    known = there is not None or _has_all(repo)
    current = None if repo.head.is_detached else repo.active_branch.name
    line_of_head = set(repo.git.rev_list("--first-parent", "HEAD", "--").split())
    found = {}
    for name in names:
        alive = tips.get(name, []) if there is None else ["?"] if name in there else []
        if name == current:
            continue
        if not alive:
            found.update({name: "gone"} if known else {})
        elif any(_is_merged(repo, tip, line_of_head) for tip in tips.get(name, [])):
            found[name] = "merged"
    return found


def _is_merged(repo: Repo, tip: str, line_of_head: Collection[str]) -> bool:
    """Whether a merge brought the commit here; a branch that has no commits of its own is open."""
    return tip not in line_of_head and repo.is_ancestor(repo.commit(tip), repo.head.commit)


def _has_all(repo: Repo) -> bool:
    """Whether this clone has every branch of its remotes, as of the last `git fetch`."""
    if repo.git.rev_parse("--is-shallow-repository") == "true":
        return False
    asked = [each.config_reader.get_value("fetch", default="") for each in repo.remotes]
    return all(f"{_HEADS}*" in str(each) for each in asked)


def _on_remotes(repo: Repo) -> set[str]:
    from git import GitCommandError

    found: set[str] = set()
    for remote in repo.remotes:
        try:
            said = str(repo.git.ls_remote("--heads", remote.name))
        except GitCommandError as error:
            lines = str(error.stderr).replace("stderr:", "").strip(" \n'").splitlines()
            raise EnvironmentProblem(
                f"the Git remote '{remote.name}' did not list its branches",
                code="E1141",
                notes=tuple(line for line in lines if line.strip()),
                help="check that Git can reach it (`git ls-remote`), or leave --fetch out",
            ) from None
        found |= {line.partition(f"\t{_HEADS}")[2] for line in said.splitlines()}
    return found
