"""Configure Git for chains: blocks as text, heads never merged, notes on commits.

`git_hook` adds that no head is committed without its blocks.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.project.git.notes import REF
from odfbuild.project.git.repository import as_configured, inside

if TYPE_CHECKING:
    from git import Repo
    from git.config import GitConfigParser

    from odfbuild.project.model import Config

ATTRIBUTES = ".gitattributes"
_DRIVER = 'diff "odfbuild"'
_HEAD_DRIVER = 'diff "odfbuild-head"'


def install(repo: Repo, config: Config, program: str, path: str) -> list[str]:
    """Set the repository of a project up; returns what was changed, a sentence each.

    `program` is the shell command that starts odfbuild, `path` where it lies, for the hook. Doing
    it again changes nothing.
    """
    return [
        *_add_attributes(repo, config),
        *_configure(repo, config, program),
        *add_hook(repo, config, path),
    ]


def lacking(repo: Repo, config: Config) -> list[str]:
    """What `install` would still set up, a few words each; changes nothing."""
    attributes = [f"{ATTRIBUTES} for the chains"] if _missing_attributes(repo, config) else []
    with repo.config_reader() as known:
        settings = [
            f"{section}.{key}".replace(' "', ".").replace('"', "")
            for section, key, value, _ in _settings(config, "")
            # Which program shows blocks is for each machine to know.
            if not _has(known, section, key, None if key == "textconv" else value)
        ]
    return attributes + settings + ([] if has_hook(repo, config) else ["a pre-commit hook"])


def _missing_attributes(repo: Repo, config: Config) -> list[str]:
    if inside(repo, config.state) is None or not config.state.is_relative_to(config.root):
        return []
    state = config.state.relative_to(config.root).as_posix()
    wanted = [
        f"/{state}/**/blocks/* diff=odfbuild",
        # Two lines that merge well are still two histories: a person has to choose.
        f"/{state}/**/refs/* -merge",
        f"/{state}/**/info/branches/* -merge",
        # A set of lines that only grows: what both sides say holds.
        f"/{state}/**/info/statements merge=union",
    ]
    if config.chains == "storage":
        wanted += [
            f"/{state}/**/refs/* diff=odfbuild-head",
            f"/{state}/**/info/summaries/* -diff -merge",
        ]
    file = config.root / ATTRIBUTES
    known = file.read_text("utf-8").splitlines() if file.exists() else []
    return [line for line in wanted if line not in known]


def _add_attributes(repo: Repo, config: Config) -> list[str]:
    missing = _missing_attributes(repo, config)
    if not missing:
        return []
    file = config.root / ATTRIBUTES
    text = file.read_text("utf-8") if file.exists() else ""
    begin = text if not text or text.endswith("\n") else text + "\n"
    file.write_text(begin + "\n".join(missing) + "\n", "utf-8")
    return [f"{ATTRIBUTES}: `git diff` shows blocks as text, and heads are not merged. Commit it."]


def _settings(config: Config, program: str) -> tuple[tuple[str, str, str, str], ...]:
    """Section, key and value of each setting, and a sentence about it."""
    decode = f"{program} decode --events"
    of_heads = (_HEAD_DRIVER, "textconv", decode, f"heads are shown by `{decode}`")
    return (
        *((of_heads,) if config.chains == "storage" else ()),
        (_DRIVER, "textconv", f"{program} decode", f"blocks are shown by `{program} decode`"),
        (_DRIVER, "cachetextconv", "true", "the text of blocks is cached: blocks never change"),
        ("odfbuild", "notes", "true", "`odfbuild apply` records heads in notes on the commit"),
        ("notes", "displayRef", f"refs/notes/{REF}", "`git log` shows these notes"),
        ("notes", "rewriteRef", f"refs/notes/{REF}", "they follow commits through a rebase"),
    )


def _configure(repo: Repo, config: Config, program: str) -> list[str]:
    said = []
    with repo.config_writer() as known:
        for section, key, value, sentence in _settings(config, program):
            if _has(known, section, key, value):
                continue
            if section == "notes":
                known.add_value(section, key, value)
            else:
                known.set_value(section, key, value)
            said.append(f"{_config_file(repo)}: {sentence}.")
    return said


def _has(config: GitConfigParser, section: str, key: str, value: str | None) -> bool:
    """Whether a setting is there, with `value` among its values unless that is `None`."""
    known = config.get_values(section, key) if config.has_option(section, key) else []
    return bool(known) if value is None else value in map(_text, known)


def _text(value: object) -> str:
    # GitPython turns `true` into a bool.
    return str(value).lower() if isinstance(value, bool) else str(value)


def _config_file(repo: Repo) -> str:
    path = Path(repo.common_dir) / "config"
    return inside(repo, path) or str(path)


# --- The hook of Git ---


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
