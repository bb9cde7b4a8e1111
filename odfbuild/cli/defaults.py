"""Commands and groups of commands, as Typer makes them, with what is the same for all of ours.

Values that nobody gave are not converted, nor is text where text is asked for, nor the name of a
choice: Typer converts by pydantic, whose import takes longer than most commands run. A long option
with a single dash is refused. Lists of commands have their whole first sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from odfbuild.cli.exit_codes import EXIT_USAGE
from odfbuild.cli.option_groups import apart
from odfbuild.errors import PlanError

_LONG = 1000


class KeepsDefaults:
    """Put before a class of commands: what has its default already goes to the verb as it is.

    Typer has no public means for that. It converts every value in `process_value` of a parameter,
    a default or one that a `parser` made, too, and lets a program choose classes of commands, but
    not of parameters. So the method is replaced here, in the parameters that a command asks for.
    `tests/cli/test_planning_costs.py` fails where a release of Typer no longer calls it.
    """

    def get_params(self, ctx: Any) -> list[Any]:
        """Options and arguments, of which those that have to be converted are."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if "process_value" not in vars(parameter):
                parameter.process_value = _unless_default(parameter)
        return parameters

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse `-out` for `--out`, which would be `-o ut`."""
        check_dashes(ctx, args)
        rest: list[str] = super().parse_args(ctx, args)  # type: ignore[misc]
        return rest


class Verb(KeepsDefaults, TyperCommand):
    """A command that is not a group; it is refused in a branch that it cannot work in."""

    def invoke(self, ctx: Any) -> Any:
        """Call the function of the verb."""
        from odfbuild.cli.branch_rules import check_branch, keep_offline

        check_branch(ctx)
        keep_offline(ctx)
        return super().invoke(ctx)


class VerbGroup(KeepsDefaults, TyperGroup):
    """A group of commands."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write what each command does, in a whole sentence."""
        write_commands(formatter, "Commands", self.commands.items())


class DefaultGroup(VerbGroup):
    """A group whose command `default` runs where no other one is named."""

    default: str

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the default command before arguments that name no other one."""
        if not args or args[0] not in (*self.commands, "--help"):
            args = [self.default, *args]
        return super().parse_args(ctx, args)


class Group(typer.Typer):
    """A verb with commands of its own, and what it is for."""

    def __init__(self, help: str, cls: type[VerbGroup] = VerbGroup) -> None:
        self.help = help
        super().__init__(
            cls=cls,
            help=help,
            callback=lambda: None,  # else Typer makes one command no group
            no_args_is_help=True,
            add_completion=False,
            rich_markup_mode=None,
        )

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Make a function a command of the group."""
        register = super().command(name, cls=Verb, **settings)

        def decorate(verb: Any) -> Any:
            register(apart(verb))
            return verb

        return decorate


def write_commands(formatter: Any, title: str, commands: Iterable[tuple[str, Any]]) -> None:
    """A section of a help page: commands with the sentence that says what each does."""
    with formatter.section(title):
        formatter.write_dl([(name, each.get_short_help_str(_LONG)) for name, each in commands])


def _unless_default(parameter: Any) -> Any:
    convert = parameter.process_value

    def process(ctx: Any, value: Any) -> Any:
        value = _chosen(parameter, value)
        if _is_plain_text(parameter, value) or isinstance(value, Enum):
            return parameter.callback(ctx, parameter, value) if parameter.callback else value
        # A default that is computed is of its type already.
        is_own = value is parameter.default or callable(parameter.default)
        is_default = is_own and isinstance(value, Enum | int | float | None)
        if not is_default or parameter.required:
            return convert(ctx, value)
        if value is None and (parameter.multiple or parameter.nargs == -1):
            value = ()
        return parameter.callback(ctx, parameter, value) if parameter.callback else value

    return process


def _chosen(parameter: Any, value: Any) -> Any:
    """The member of the enumeration that one choice among several names; else the value."""
    kind = parameter.type_descriptor
    members = {each.value: each for each in kind.choices or () if isinstance(each, Enum)}
    return members.get(value, value) if isinstance(value, str) and not kind.is_list else value


def _is_plain_text(parameter: Any, value: Any) -> bool:
    """Whether a parameter takes any text and was given some; what is no Unicode is converted."""
    return isinstance(value, str) and value.isprintable() and parameter.bare_type() == "str"


# --- Dashes ---


# Read letter by letter they would mean something else: `-out=plan.json` is `-o` with the value
# `ut=plan.json`.

_ELSEWHERE = {
    "target": "--select",
    "chdir": "--directory",
    "var-file": "--vars-file",
    "parallelism": "--jobs",
}
"""Options of Terraform that have another name here."""
_ALIKE = 0.8


def check_dashes(ctx: Any, args: Sequence[str]) -> None:
    """Raise `PlanError` E0376 for the first argument that is a long option with one dash."""
    if not any(map(_has_one_dash, args)):
        return
    options = _options(ctx)
    remaining = iter(args)
    for arg in remaining:
        if arg == "--":
            return
        if options.get(arg):
            next(remaining, None)
        elif (right := right_spelling(arg, options)) is not None:
            raise PlanError(
                f"'{arg}' is not an option: long options begin with two dashes",
                code="E0376",
                help=f"write '{right}'",
                exit_code=EXIT_USAGE,
            )
        elif not ctx.command.allow_interspersed_args and not arg.startswith("-"):
            return  # what follows belongs to a command


def right_spelling(arg: str, options: Mapping[str, bool]) -> str | None:
    """How `arg` has to be written; `None`: it is not a long option with a single dash.

    `options` are the names of all options, and whether each takes a value.
    """
    if not _has_one_dash(arg):
        return None
    name, equals, value = arg[1:].partition("=")
    if len(name) == 1:
        return f"-{name} {value}" if equals and f"-{name}" in options else None
    known = _ELSEWHERE.get(name)
    if known in options:
        return f"{known}{equals}{value}"
    from difflib import get_close_matches

    longs = [option[2:] for option in options if option.startswith("--")]
    # A name that is only alike was meant where its letters would take a value.
    near = get_close_matches(name, longs, n=1, cutoff=_ALIKE if options.get(arg[:2]) else 1.0)
    return f"--{near[0]}{equals}{value}" if near else None


def _has_one_dash(arg: str) -> bool:
    return len(arg) > 2 and arg[0] == "-" != arg[1]


def _options(ctx: Any) -> dict[str, bool]:
    """Options of a command and of those above it."""
    found: dict[str, bool] = {}
    while ctx is not None:
        for parameter in ctx.command.get_params(ctx):
            if parameter.param_type_name == "option":
                takes_none = getattr(parameter, "is_flag", False) or parameter.count
                names = (*parameter.opts, *parameter.secondary_opts)
                found |= dict.fromkeys(names, not takes_none)
        ctx = ctx.parent
    return found
