"""`odfbuild fmt`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.errors import Errors, OdfbuildError

if TYPE_CHECKING:
    from odfbuild.project.format import Formatted


def fmt(
    context: typer.Context,
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
) -> int:
    """Bring definitions into canonical form: order of keys, indentation, quotes.

    Comments and queries stay, and the data never changes. Templates are left as they are.
    """
    from odfbuild.project.format import format_text
    from odfbuild.project.rewrite import replace_text
    from odfbuild.project.source import read_text

    state: Context = context.obj
    if paths == ["-"]:
        return _filter(state, check=check, diff=diff)
    files, templates = _files(state, paths)
    found: list[Formatted] = []
    errors: list[OdfbuildError] = []
    for path in files:
        try:
            found.append(format_text(read_text(path, str(path)), str(path)))
        except OdfbuildError as error:
            errors += error.errors if isinstance(error, Errors) else (error,)
    changed = [each for each in found if each.is_changed]
    for each in changed:
        if not check and not diff:
            replace_text(Path(each.file), each.after, "odfbuild fmt")
        state.console.result(each.diff if diff else each.file)
    _sum_up(state, found, templates, would=check or diff)
    if errors:
        state.console.error(errors[0] if len(errors) == 1 else Errors(errors))
    return 1 if errors or (check and changed) else 0


def _filter(state: Context, *, check: bool, diff: bool) -> int:
    from odfbuild.project.format import format_text

    found = format_text(sys.stdin.read(), "standard input")
    if diff:
        sys.stdout.write(found.diff)
    elif not check:
        sys.stdout.write(found.after)
    if found.kept:
        state.console.note(f"Left as it is: {found.kept}.")
    return 1 if check and found.is_changed else 0


def _files(state: Context, paths: list[str] | None) -> tuple[list[Path], int]:
    """Files to format, and how many templates are among what was named."""
    from odfbuild.project.load import TEMPLATE_SUFFIX

    named = sorted(set(_named(state, paths)), key=str)
    templates = [path for path in named if path.name.endswith(TEMPLATE_SUFFIX)]
    return [path for path in named if path not in templates], len(templates)


def _named(state: Context, paths: list[str] | None) -> Iterator[Path]:
    from odfbuild.project.load import definition_files

    listed = [Path(path) for path in paths] if paths else [state.config().datasets]
    for path in listed:
        if path.is_dir():
            yield from (Path(os.path.relpath(file)) for file in definition_files(path))
        else:
            yield path


def _sum_up(state: Context, found: list[Formatted], templates: int, *, would: bool) -> None:
    from odfbuild.report.words import count

    for each in found:
        if each.kept:
            state.console.note(f"{each.file} is left as it is: {each.kept}.")
    if templates:
        verb = "is" if templates == 1 else "are"
        state.console.note(f"{count(templates, 'template')} {verb} left as written.")
    changed = sum(each.is_changed for each in found)
    verb = "would be" if would else "were" if changed != 1 else "was"
    state.console.note(
        f"{count(changed, 'file')} {verb} formatted, {len(found) - changed} in form already."
    )
