"""The group of all verbs: options of the program may stand after a command, too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from odfbuild.cli.defaults import VerbGroup, write_commands
from odfbuild.cli.verbs import SECTIONS, Verbs


class GlobalOptionsGroup(VerbGroup):
    """A group that takes its own options before and after the name of the command."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = Verbs()

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of all commands, in the order of the help."""
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write what each command does; without making it, which takes longer than all the rest."""
        for title, verbs in SECTIONS.items():
            outlines = ((name, self.commands.outline(name)) for name in verbs)
            write_commands(formatter, title, outlines)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the options of the program in front."""
        return super().parse_args(ctx, globals_first(args, *self._own_options(ctx)))

    def _own_options(self, ctx: Any) -> tuple[set[str], set[str]]:
        """Names of the options that take a value, and of those that do not."""
        valued: set[str] = set()
        plain: set[str] = set()
        for parameter in self.get_params(ctx):
            # Every command has its own help.
            if parameter.param_type_name != "option" or "--help" in parameter.opts:
                continue
            takes_none = getattr(parameter, "is_flag", False) or getattr(parameter, "count", False)
            (plain if takes_none else valued).update(parameter.opts)
        return valued, plain


def globals_first(args: Iterable[str], valued: set[str], plain: set[str]) -> list[str]:
    """`args` with the options of the program in front, in their order; what is after `--` stays."""
    ours: list[str] = []
    rest: list[str] = []
    remaining = iter(args)
    for arg in remaining:
        if arg == "--":
            rest += [arg, *remaining]
        elif arg in plain or (arg.startswith("-v") and set(arg[1:]) == {"v"}):
            ours.append(arg)
        elif arg in valued:
            ours += [arg, *_next(remaining)]
        elif arg.partition("=")[0] in valued and arg.startswith("--"):
            ours.append(arg)
        else:
            rest.append(arg)
    return ours + rest


def _next(remaining: Any) -> list[str]:
    value = next(remaining, None)
    return [] if value is None else [value]
