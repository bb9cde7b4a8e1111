"""Shell completion: datasets, selections, environments, kinds.

Nothing is reported from here: where the project cannot be read there is nothing to propose.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from odfbuild.errors import OdfbuildError

if TYPE_CHECKING:
    from odfbuild.project.model import Config

ASKED_BY = "_ODFBUILD_COMPLETE"
"""The variable of the process environment in which a shell asks for proposals."""

_CRITERION = re.compile(
    r"(?P<before>(?:.*,)?(?:@|\d*\+)?)(?P<method>[a-z]+:)?(?P<value>[^,]*)", re.S
)
_VALUES = {
    "kind:": ("root", "derivative"),
    "state:": ("new", "modified", "cosmetic", "orphaned"),
}
_METHODS = (
    *("file:", "git:", "kind:", "path:", "result:", "selector:"),
    *("source:", "stale:", "state:", "tag:", "template:"),
)
_BREAKS = (":", "=", "@")
"""Where Bash takes a word apart (COMP_WORDBREAKS), and selections do not."""

_REPLACED = re.compile(r"[^:=]*$")
"""What Bash replaces of a word that it took apart."""


def datasets(context: typer.Context, incomplete: str) -> list[str]:
    """Names of datasets that are defined or have a chain."""
    return [name for name in _names(context) if name.startswith(incomplete)]


def selections(context: typer.Context, incomplete: str) -> list[str]:
    """Names, methods and values of methods, behind what the word holds already."""
    found = _CRITERION.fullmatch(incomplete)
    if found is None:
        return []
    before, method, value = found["before"], found["method"], found["value"]
    if method is None:
        known: Iterable[str] = (*_names(context), *(_METHODS if value else ()))
    elif method == "selector:":
        known = selectors(context, value)
    else:
        known = _VALUES.get(method, ())
    return [f"{before}{method or ''}{each}" for each in known if each.startswith(value)]


def selectors(context: typer.Context, incomplete: str) -> list[str]:
    """Named selections of odfbuild.yaml."""
    config = _config(context)
    return sorted(config.selectors) if config else []


def environments(context: typer.Context, incomplete: str) -> list[str]:
    """Environments of the project."""
    from odfbuild.project.config import known_environments

    with contextlib.suppress(Exception):
        return sorted(known_environments(_directory(context)))
    return []


def branches(context: typer.Context, incomplete: str) -> list[str]:
    """Branches of the project."""
    config = _config(context)
    with contextlib.suppress(Exception):
        return sorted(config.workspace().branch_names()) if config else []
    return []


def consents(*kinds: str) -> Callable[[typer.Context, str], list[str]]:
    """What `--allow` takes: one of `kinds`, then the name of a dataset."""

    def proposed(context: typer.Context, incomplete: str) -> list[str]:
        kind, colon, name = incomplete.partition(":")
        if not colon:
            return [f"{each}:" for each in kinds if each.startswith(kind)]
        # Tables have names of their own.
        known = _names(context) if kind in kinds and kind != "rewrite" else []
        return [f"{kind}:{each}" for each in known if each.startswith(name)]

    return proposed


def new_kinds(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Kinds of datasets that can be begun."""
    from odfbuild.api.authoring.scaffold import KINDS

    return list(KINDS.items())


def new_sources(context: typer.Context, incomplete: str) -> list[str]:
    """Inputs of a new derivative; of other kinds the shell knows the files."""
    is_derived = context.params.get("kind") in ("derivative", "matrix")
    return datasets(context, incomplete) if is_derived else []


def formats(context: typer.Context, incomplete: str) -> list[str]:
    """Formats of data."""
    from odfbuild.ingest.sample import FORMATS

    return list(FORMATS)


def schemas(context: typer.Context, incomplete: str) -> list[str]:
    """Objects that have a JSON Schema."""
    from odfbuild.odf.json_schema import catalogue

    return [*catalogue(), "plan", "project", "dataset", "unit-tests", "run-event"]


def _names(context: typer.Context) -> list[str]:
    config = _config(context)
    if config is None:
        return []
    names: set[str] = set()
    # Proposals are a favour: a file that is being written is no reason for none.
    with contextlib.suppress(Exception):
        from odfbuild.project.load import read_project

        names.update(each.name for each in read_project(config.root, config.given).definitions)
    with contextlib.suppress(OSError):
        names.update(each.name for each in config.state.iterdir() if (each / "refs").is_dir())
    return sorted(names)


def _config(context: typer.Context) -> Config | None:
    from odfbuild.project.config import load_config
    from odfbuild.project.overrides import Overrides

    environment = context.find_root().params.get("env")
    with contextlib.suppress(Exception):
        return load_config(_directory(context), Overrides(env=environment or None))
    return None


def _directory(context: typer.Context) -> Path | None:
    found = context.find_root().params.get("directory")
    return Path(found) if found else None


# --- Bash ---


def answer_bash(answer: Callable[[], Any]) -> int:
    """Let `answer` print proposals for the word at the cursor, whole; print what Bash inserts.

    Bash hands a word over in parts (`kind`, `:`, `ro`) and replaces the last of them only.
    """
    words = os.environ.get("COMP_WORDS", "").split("\n")
    at = int(os.environ.get("COMP_CWORD", "0"))
    joined, cursor = joined_words(words, at)
    os.environ["COMP_WORDS"], os.environ["COMP_CWORD"] = "\n".join(joined), str(cursor)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit, OdfbuildError):
        answer()
    whole = joined[cursor]
    # Whoever took the colon out of COMP_WORDBREAKS gets whole words.
    kept = "" if words[at : at + 1] == [whole] else _REPLACED.sub("", whole)
    kept = kept.partition("=")[2] if kept.startswith("--") else kept
    for line in printed.getvalue().splitlines():
        sys.stdout.write(line.removeprefix(kept) + "\n")
    return 0


def joined_words(words: list[str], at: int) -> tuple[list[str], int]:
    """Words with those that Bash took apart in one, and where the word at `at` is now."""
    joined: list[str] = []
    for index, word in enumerate(words[: at + 1]):
        before = words[index - 1] if index else " "
        if joined and (word[:1] in (":", "=") or before in _BREAKS) and word:
            joined[-1] += word
        elif word or before not in _BREAKS:  # else nothing stands behind the break yet
            joined.append(word)
    return joined, len(joined) - 1
