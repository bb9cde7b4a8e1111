"""`odfbuild migrate`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.errors import Errors, OdfbuildError

if TYPE_CHECKING:
    from odfbuild.project.migrate import Migration


def migrate(
    context: typer.Context,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE|-]...",
            help="Files of definitions, or standard input (-); all of the project by default.",
        ),
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Rewrite the files.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Only list the files in an old form; exit 1 if any.")
    ] = False,
) -> int:
    """Rewrite definitions of earlier versions of Open Data Fabric; without --write, show how."""
    from odfbuild.project.rewrite import replace_text

    state: Context = context.obj
    if write and check:
        raise typer.BadParameter("--write and --check exclude each other", context)
    if files == ["-"]:
        return _filter(state)
    found: list[Migration] = []
    errors: list[OdfbuildError] = []
    for path in _paths(state, files):
        try:
            found += _migration(state, path)
        except OdfbuildError as error:
            errors += error.apart()
    needed = [each for each in found if each.is_needed]
    for each in needed:
        if write:
            replace_text(Path(each.file), each.after, "odfbuild migrate --write")
        _show(state, each, write=write, check=check)
        errors += each.problems
    if not needed and not errors:
        state.console.note("Every definition is in today's form.")
    if errors:
        state.console.error(Errors(errors))
    elif needed and not write and not check:
        state.console.note("Nothing was written; `odfbuild migrate --write` does it.")
    return 1 if errors or (check and needed) else 0


def _filter(state: Context) -> int:
    from odfbuild.project.migrate import migrate

    found = migrate(sys.stdin.read(), "standard input")
    sys.stdout.write(found.after)
    _notes(state, found)
    state.console.error(*found.problems)
    return 1 if found.problems else 0


def _paths(state: Context, files: list[str] | None) -> list[Path]:
    if files:
        return [Path(file) for file in files]
    from odfbuild.project.load import definition_files

    config = state.config()
    return [
        Path(os.path.relpath(file))
        for file in definition_files(config.datasets, config.boundary.check_open)
    ]


def _migration(state: Context, path: Path) -> list[Migration]:
    """The file before and after; of a template only the errors that say what is old in it."""
    from odfbuild.project.definitions import read_file
    from odfbuild.project.migrate import migrate
    from odfbuild.project.source import TEMPLATE_SUFFIX, read_text

    if not path.name.endswith(TEMPLATE_SUFFIX):
        return [migrate(read_text(path, str(path)), str(path))]
    try:
        read_file(state.config(), str(path.absolute()))
    except Errors as errors:
        old = {str(e.location and e.location.line): e for e in errors.errors if e.code == "E0111"}
        raise Errors(old.values()) from None
    return []


def _show(state: Context, migration: Migration, *, write: bool, check: bool) -> None:
    if check:
        state.console.result(migration.file)
        return
    state.console.result(f"rewrote {migration.file}" if write else migration.diff)
    _notes(state, migration)


def _notes(state: Context, migration: Migration) -> None:
    for edit in migration.edits:
        if edit.lost:
            state.console.note(f"{edit.place}: look at this: {edit.message}")
