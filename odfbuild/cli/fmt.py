"""`odfbuild fmt`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.options import JsonOptions
from odfbuild.errors import Code, OdfbuildError, together

if TYPE_CHECKING:
    from odfbuild.api.authoring.formatting import Formatting


def fmt(
    state: Context,
    *,
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH",
            help="Files or folders of definitions, or standard input (-); "
            "all of the project by default.",
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only list the files that would change; exit 1 if any.")
    ] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Show what would change, and change nothing.")
    ] = False,
    as_json: JsonOptions,
) -> int:
    """Format definitions: order of keys, indentation, quotes.

    Comments and queries stay as they are, and so does the data. Templates are not formatted.
    """
    from odfbuild.api.authoring.formatting import format_files

    if paths == ["-"]:
        return _filter(state, check=check, diff=diff)
    named = [Path(path) for path in paths or [os.path.relpath(state.config().datasets)]]
    found = format_files(named, write=not check and not diff, check_link=_check_link(state))
    if as_json:
        state.console.data(
            [
                {
                    "file": each.file,
                    "changed": each.is_changed,
                    "diff": each.diff,
                    "kept": each.kept,
                }
                for each in found.files
            ]
        )
    else:
        for each in found.changed:
            state.console.result(each.diff if diff else each.file)
        _sum_up(state, found, would=check or diff)
    if found.errors:
        state.console.error(together(found.errors))
    return 1 if found.errors or (check and found.changed) else 0


def _check_link(state: Context) -> Callable[[str], None]:
    """What the project says about links; outside of projects any may be followed."""
    try:
        return state.config().boundary.check_open
    except OdfbuildError as error:
        if error.code != Code.NO_PROJECT:
            raise
        return lambda _: None


def _filter(state: Context, *, check: bool, diff: bool) -> int:
    from odfbuild.project.format import format_text

    found = format_text(sys.stdin.read(), "standard input")
    if diff:
        state.console.exactly(found.diff)
    elif not check:
        state.console.exactly(found.after)
    if found.kept:
        state.console.note(f"Not changed: {found.kept}.")
    return 1 if check and found.is_changed else 0


def _sum_up(state: Context, found: Formatting, *, would: bool) -> None:
    from odfbuild.wording import count

    for each in found.files:
        if each.kept:
            state.console.note(f"{each.file} was not formatted: {each.kept}.")
    if found.templates:
        verb = "is" if len(found.templates) == 1 else "are"
        state.console.note(f"{count(len(found.templates), 'template')} {verb} not formatted.")
    changed = len(found.changed)
    verb = "would be" if would else "were" if changed != 1 else "was"
    state.console.note(
        f"{count(changed, 'file')} {verb} formatted, {len(found.files) - changed} already "
        "formatted."
    )
