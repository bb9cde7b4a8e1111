"""`odfbuild migrate`: what was written for an earlier version, or for another tool."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.defaults import DefaultGroup, Group
from odfbuild.cli.options import ApproveOption, JsonOptions, approved, may_overwrite
from odfbuild.cli.plan_form import ReportForm, ReportFormOptions
from odfbuild.errors import Code, Errors, OdfbuildError

if TYPE_CHECKING:
    from odfbuild.project.migrate import Migration
    from odfbuild.project.source import Source


class _Migrate(DefaultGroup):
    default = "definitions"


migrate = Group(
    help="Rewrite definitions of earlier versions, or move a dbt project.", cls=_Migrate
)


@migrate.command("definitions")
def definitions(
    context: typer.Context,
    *,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE|-",
            help="Files of definitions, or standard input (-); all of the project by default.",
        ),
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Rewrite the files.")] = False,
    auto_approve: ApproveOption = False,
    check: Annotated[
        bool, typer.Option("--check", help="Only list the files with old syntax; exit 1 if any.")
    ] = False,
    as_json: JsonOptions,
) -> int:
    """Rewrite definitions of earlier versions in the current syntax; the default.

    Without --write, only shows the differences. Asks before it overwrites files whose current text
    is in no Git commit.
    """
    from odfbuild.project.rewrite import replace_text

    state: Context = context.obj
    if write and check:
        raise typer.BadParameter("--write and --check exclude each other", context)
    if files == ["-"]:
        return _filter(state)
    found: list[Migration] = []
    errors: list[OdfbuildError] = []
    for path in _paths(state, files, errors):
        try:
            found += _migration(state, path)
        except OdfbuildError as error:
            errors += error.apart()
    needed = [each for each in found if each.is_needed]
    paths = [Path(each.file) for each in needed]
    if write and not may_overwrite(state.console, paths, auto_approve):
        return 1
    for each in needed:
        if write:
            replace_text(Path(each.file), each.after, "odfbuild migrate --write")
        if not as_json:
            _show(state, each, write=write, check=check)
        errors += each.problems
    if as_json:
        state.console.data([_to_data(each) for each in found])
    elif not needed and not errors:
        state.console.note("All definitions have the current syntax.")
    if errors:
        state.console.error(Errors(errors))
    elif needed and not write and not check and not as_json:
        state.console.note("Nothing was written; `odfbuild migrate --write` does it.")
    return 1 if errors or (check and needed) else 0


@migrate.command("dbt")
def dbt(
    state: Context,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of the dbt project.")],
    *,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", metavar="FOLDER", help="Folder of the new project (default: current folder)."
        ),
    ] = None,
    adapter: Annotated[
        str | None,
        typer.Option(
            "--adapter",
            metavar="NAME",
            help="Adapter of dbt whose SQL the project is written in, such as 'duckdb' "
            "(default: that of its manifest, or of profiles.yml beside it).",
        ),
    ] = None,
    manifest: Annotated[
        bool,
        typer.Option(
            "--manifest/--no-manifest",
            help="Read target/manifest.json, if there is one; else the sources of the project.",
        ),
    ] = True,
    schemas: Annotated[
        bool,
        typer.Option("--schemas", help="Put schemas in front of names, such as 'marts.orders'."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="Only report; write nothing.")
    ] = False,
    auto_approve: ApproveOption = False,
    form: ReportFormOptions,
) -> int:
    """Move a dbt project: models, seeds, sources, tests and unit tests.

    Reports what was moved, what needs work by hand and why, and what was not moved. Asks before it
    overwrites files. `--var NAME=VALUE` gives values of variables.
    """
    from odfbuild.api.authoring import from_dbt
    from odfbuild.project.variables import given_values
    from odfbuild.report.findings.dbt import (
        migration_markdown,
        migration_to_data,
        render_migration,
    )
    from odfbuild.wording import count

    target = (to or state.directory or Path.cwd()).resolve()
    found = from_dbt.migrate(
        folder.resolve(),
        target,
        variables=given_values(state.given),
        adapter=adapter,
        manifest=manifest,
        schemas=schemas,
    )
    written: list[str] = []
    if not dry_run:
        lost = from_dbt.overwritten(found, target)
        if lost:
            for path in lost:
                state.console.note(f"  {os.path.relpath(path)}")
            what = count(len(lost), "file")
            question, refusal = f"Overwrite {what}?", f"{what} would be overwritten"
            if not approved(state.console, auto_approve, question, refusal):
                return 1
        written = from_dbt.write(found, target)
    if form is ReportForm.json:
        state.console.data(migration_to_data(found, written))
    elif form is ReportForm.md:
        state.console.result(migration_markdown(found))
    else:
        state.console.result(render_migration(found, color=state.console.color))
        if dry_run:
            state.console.note("Nothing was written.")
        else:
            what = count(len(written), "file")
            state.console.note(f"Wrote {what} to {os.path.relpath(target)}. Next: odfbuild plan")
    return 0


def _filter(state: Context) -> int:
    from odfbuild.project.migrate import migrate

    found = migrate(sys.stdin.read(), "standard input")
    state.console.exactly(found.after)
    _notes(state, found)
    state.console.error(*found.problems)
    return 1 if found.problems else 0


def _paths(state: Context, files: list[str] | None, errors: list[OdfbuildError]) -> list[Path]:
    """The files to look at; `errors` gets why links are not followed."""
    if files:
        return [Path(file) for file in files]
    from odfbuild.project.load import definition_files

    config = state.config()
    found = definition_files(
        config.datasets, config.boundary.check_open, lambda _, error: errors.append(error)
    )
    return [Path(os.path.relpath(file)) for file in found]


def _migration(state: Context, path: Path) -> list[Migration]:
    """The file before and after; of a template only the errors that say what is old in it."""
    from odfbuild.project.definitions import read_file
    from odfbuild.project.migrate import migrate
    from odfbuild.project.source import TEMPLATE_SUFFIX, read_text

    if not path.name.endswith(TEMPLATE_SUFFIX):
        return [migrate(read_text(path, str(path)), str(path), _query_beside(state, path))]
    wrong = read_file(state.config(), str(path.absolute())).wrong
    errors = [error for each in wrong for error in each.errors]
    old = {str(e.location and e.location.line): e for e in errors if e.code == Code.EARLIER_VERSION}
    if errors:
        raise Errors(old.values() or errors)
    return []


def _query_beside(state: Context, path: Path) -> Source | None:
    """The file with the query of a definition, in a project."""
    from odfbuild.project.source import query_beside

    try:
        config = state.config()
    except OdfbuildError as error:
        if error.code != Code.NO_PROJECT:
            raise
        return None
    return query_beside(config, os.path.relpath(path.absolute(), config.root))


def _show(state: Context, migration: Migration, *, write: bool, check: bool) -> None:
    if check:
        state.console.result(migration.file)
        return
    state.console.result(f"rewrote {migration.file}" if write else migration.diff)
    _notes(state, migration)


def _to_data(migration: Migration) -> dict[str, Any]:
    return {
        "file": migration.file,
        "changed": migration.is_needed,
        "diff": migration.diff,
        "notes": [f"{each.place}: {each.message}" for each in migration.edits if each.lost],
    }


def _notes(state: Context, migration: Migration) -> None:
    for edit in migration.edits:
        if edit.lost:
            state.console.note(f"{edit.place}: check this: {edit.message}")
