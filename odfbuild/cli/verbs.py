"""The verbs of the program, each imported when it is asked for.

Every verb is a module of its own, with a function or a group of the same name; so a command does
not wait for the modules of thirty others.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand
from typer.main import get_command

from odfbuild.cli.aliases import ALIASES
from odfbuild.cli.defaults import Group, Verb
from odfbuild.cli.option_groups import apart

SECTIONS = {
    "Build": (
        "init",
        "new",
        "import",
        "fmt",
        "lint",
        "validate",
        "lsp",
        "plan",
        "show",
        "apply",
        "promote",
        "source",
        "ingest",
        "watermark",
        "reset",
    ),
    "Look": (
        "status",
        "ls",
        "graph",
        "explain",
        "diff",
        "drift",
        "render",
        "log",
        "blame",
        "tail",
        "sql",
        "shell",
        "corrections",
        "freshness",
        "decode",
        "convert",
        "schema",
    ),
    "Prove": ("test", "verify", "provenance"),
    "Share": (
        "pull",
        "push",
        "serve",
        "docs",
        "passport",
        "table",
        "storage",
        "chains",
        "key",
        "git",
        "ci",
    ),
    "Maintain": ("branch", "gc", "erase", "lock", "migrate", "engine", "doctor", "version"),
}
"""What verbs are for, in the order of the help."""

_TAKE_WORDS = ("convert",)
"""Verbs that read options themselves, as definitions have them, too."""

_PASSED_ON = {"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]}

VERBS = tuple(verb for section in SECTIONS.values() for verb in section)


class Verbs(Mapping[str, Any]):
    """Commands by name, as a group of Typer holds them."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __iter__(self) -> Iterator[str]:
        yield from VERBS
        yield from ALIASES

    def __len__(self) -> int:
        return len(VERBS) + len(ALIASES)

    def __contains__(self, name: object) -> bool:
        return name in VERBS or name in ALIASES

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            raise KeyError(name)
        if name not in self._made:
            self._made[name] = _command(name)
        return self._made[name]

    def outline(self, name: str) -> TyperCommand:
        """What a list of commands says of one: name and help, without its options."""
        verb = _verb(name)
        said = verb.help if isinstance(verb, Group) else inspect.getdoc(verb)
        return TyperCommand(name, help=said)


def _verb(name: str) -> Any:
    module = "import_" if name == "import" else name  # a word of Python
    return getattr(import_module(f"odfbuild.cli.{module}"), module)


def _command(name: str) -> Any:
    verb = _verb(ALIASES.get(name, name))
    if isinstance(verb, Group):
        made = get_command(verb)
        made.name = name
        return made
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    settings = _PASSED_ON if name in _TAKE_WORDS else None
    alone.command(name, cls=Verb, hidden=name in ALIASES, context_settings=settings)(apart(verb))
    return get_command(alone)
