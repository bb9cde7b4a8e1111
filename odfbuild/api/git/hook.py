"""The pre-commit hook, which rejects heads without their blocks."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.project.git.repository import as_configured, inside

if TYPE_CHECKING:
    from git import Repo

    from odfbuild.project.model import Config

_MARK = "# By `odfbuild git install`: it rejects heads without their blocks."
_CHECK = "git check"
_FRAMEWORK = ".pre-commit-config.yaml"
_FRAMEWORK_ID = "odfbuild-chains"


def add_hook(repo: Repo, config: Config, program: str) -> list[str]:
    """Write the hook, a line for each project of the repository; what was changed, a sentence each.

    A hook that others wrote is left as it is, and what it should run is said.
    """
    line = _line(repo, config, program)
    if line is None or _asked_by_framework(repo):
        return []
    hook = _path(repo)
    shown = inside(repo, hook) or str(hook)
    text = hook.read_text("utf-8") if hook.exists() else f"#!/bin/sh\n{_MARK}\n"
    if not _is_ours(repo, hook, text):
        run = line.partition(" || ")[2].partition(" >")[0]
        said = (
            f"{shown} was not installed by odfbuild and was not changed; make it run `{run}`, too."
        )
        return [] if _CHECK in text else [said]
    others = [each for each in text.splitlines() if not _is_same_project(each, line)]
    wanted = "\n".join([*others, line]) + "\n"
    if hook.exists() and wanted == text:
        return []
    hook.parent.mkdir(parents=True, exist_ok=True)
    hook.write_text(wanted, "utf-8")
    hook.chmod(0o755)
    return [f"{shown}: it rejects heads without their blocks."]


def has_hook(repo: Repo, config: Config) -> bool:
    """Whether Git checks this project before each commit, by whichever hook."""
    line = _line(repo, config, "")
    if line is None or _asked_by_framework(repo):
        return True
    hook = _path(repo)
    text = hook.read_text("utf-8", "replace") if hook.exists() else ""
    if _MARK in text:
        return any(_is_same_project(each, line) for each in text.splitlines())
    return _CHECK in text


def _line(repo: Repo, config: Config, program: str) -> str | None:
    """What the hook runs; `None` when the chains are outside of the repository."""
    folder, root = inside(repo, config.state), inside(repo, config.root)
    if folder is None or root is None:
        return None
    command = [program, "-C", root or "."]
    if config.env is not None:
        command += ["-e", config.env]
    heads = shlex.quote(f":/{folder}/*/refs/*")
    # Git alone tells whether a head is staged, a hundred times sooner than a Python that starts.
    return f"git diff --cached --quiet -- {heads} || {shlex.join(command)} {_CHECK} >&2 || exit 1"


def _is_same_project(line: str, other: str) -> bool:
    looked_at = (each.partition(" || ")[0].replace("refs/head", "refs/*") for each in (line, other))
    return len(set(looked_at)) == 1  # before there were branches, only heads were looked at


def _path(repo: Repo) -> Path:
    with as_configured(repo):
        said = repo.git.rev_parse("--git-path", "hooks/pre-commit")
    return Path(str(repo.working_tree_dir), said)


def _is_ours(repo: Repo, hook: Path, text: str) -> bool:
    """Whether we may write it: it has our mark, and lies in the repository's own `.git`."""
    return _MARK in text and hook.resolve().is_relative_to(Path(repo.common_dir).resolve())


def _asked_by_framework(repo: Repo) -> bool:
    file = Path(str(repo.working_tree_dir), _FRAMEWORK)
    return file.exists() and _FRAMEWORK_ID in file.read_text("utf-8", "replace")
