"""How Git treats the chains of a project: blocks as text, heads never merged, notes on commits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.project.anchors import REF
from odfbuild.project.repository import inside

if TYPE_CHECKING:
    from git import Repo

    from odfbuild.project.model import Config

ATTRIBUTES = ".gitattributes"
_DRIVER = 'diff "odfbuild"'


def install(repo: Repo, config: Config, program: str) -> list[str]:
    """Set the repository of a project up; returns what was changed, a sentence each.

    `program` is the shell command that starts odfbuild. Doing it again changes nothing.
    """
    return [*_add_attributes(repo, config), *_configure(repo, program)]


def _add_attributes(repo: Repo, config: Config) -> list[str]:
    if inside(repo, config.state) is None or not config.state.is_relative_to(config.root):
        return []
    state = config.state.relative_to(config.root).as_posix()
    wanted = [
        f"/{state}/**/blocks/* diff=odfbuild",
        # Two lines that merge well are still two histories: a person has to choose.
        f"/{state}/**/refs/head -merge",
    ]
    file = config.root / ATTRIBUTES
    text = file.read_text("utf-8") if file.exists() else ""
    missing = [line for line in wanted if line not in text.splitlines()]
    if not missing:
        return []
    begin = text if not text or text.endswith("\n") else text + "\n"
    file.write_text(begin + "\n".join(missing) + "\n", "utf-8")
    return [f"{ATTRIBUTES}: `git diff` shows blocks as text, and heads are not merged. Commit it."]


def _configure(repo: Repo, program: str) -> list[str]:
    said = []
    with repo.config_writer() as config:
        for section, key, value, sentence in (
            (_DRIVER, "textconv", f"{program} decode", f"blocks are shown by `{program} decode`"),
            (_DRIVER, "cachetextconv", "true", "what blocks say is kept: they never change"),
            ("odfbuild", "notes", "true", "`odfbuild apply` notes heads on the commit"),
            ("notes", "displayRef", f"refs/notes/{REF}", "`git log` shows these notes"),
            ("notes", "rewriteRef", f"refs/notes/{REF}", "they follow commits through a rebase"),
        ):
            known = config.get_values(section, key) if config.has_option(section, key) else []
            if value in map(_text, known):
                continue
            if section == "notes":
                config.add_value(section, key, value)
            else:
                config.set_value(section, key, value)
            said.append(f"{_config_file(repo)}: {sentence}.")
    return said


def _text(value: object) -> str:
    # GitPython turns `true` into a bool.
    return str(value).lower() if isinstance(value, bool) else str(value)


def _config_file(repo: Repo) -> str:
    path = Path(repo.common_dir) / "config"
    return inside(repo, path) or str(path)
