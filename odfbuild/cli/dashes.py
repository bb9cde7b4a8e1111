"""Long options with a single dash, as Terraform has them: refused, with the right spelling.

Read letter by letter they would mean something else: `-out=plan.json` is `-o` with the value
`ut=plan.json`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from odfbuild.cli.exit_codes import EXIT_USAGE
from odfbuild.errors import PlanError

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
