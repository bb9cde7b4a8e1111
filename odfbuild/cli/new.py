"""`odfbuild new`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from odfbuild.cli import complete
from odfbuild.cli.context import Context
from odfbuild.cli.options import JsonOptions


class Merge(StrEnum):
    """Merge strategy."""

    append = "append"
    ledger = "ledger"
    snapshot = "snapshot"


def new(
    context: typer.Context,
    *,
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="KIND",
            autocompletion=complete.new_kinds,
            help="Kind of dataset; without it, lists the kinds.",
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Name of the new dataset.")
    ] = None,
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FROM",
            autocompletion=complete.new_sources,
            help="Files, address, or input datasets.",
        ),
    ] = None,
    merge: Annotated[Merge | None, typer.Option("--merge", help="Merge strategy.")] = None,
    key: Annotated[
        list[str] | None,
        typer.Option("--key", metavar="COLUMN", help="Primary key column; repeat for several."),
    ] = None,
    read: Annotated[
        str | None,
        typer.Option(
            "--read",
            metavar="FORMAT",
            autocompletion=complete.formats,
            help="Data format, such as 'csv'.",
        ),
    ] = None,
    sample: Annotated[
        Path | None,
        typer.Option(
            "--sample",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Local file with sample data.",
        ),
    ] = None,
    over: Annotated[
        str | None,
        typer.Option(
            "--over",
            metavar="COLUMN=VALUE,...",
            help="For a matrix: the column, and a value for each dataset.",
        ),
    ] = None,
    sql_file: Annotated[
        bool,
        typer.Option(
            "--sql-file", help="For derivatives: put the query into NAME.sql beside NAME.yaml."
        ),
    ] = False,
    description: Annotated[
        str | None, typer.Option("--description", help="Description of the dataset.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="Print the file instead of writing it.")
    ] = False,
    as_json: JsonOptions,
) -> int:
    """Write the definition of a new dataset from its files, its address or its inputs."""
    state: Context = context.obj
    if kind is None:
        _list_kinds(state, as_json)
        return 0
    if name is None:
        raise typer.BadParameter(f"a name for the new dataset is missing: new {kind} NAME", context)
    from odfbuild.api.authoring.new import begin, write
    from odfbuild.api.authoring.new_request import NewDatasetRequest
    from odfbuild.survey.definitions import read_definitions

    found = read_definitions(state.directory, state.given)
    wanted = NewDatasetRequest(
        kind=kind,
        name=name,
        sources=tuple(sources or ()),
        merge=merge.value if merge else None,
        key=tuple(key or ()),
        read=read,
        sample=sample,
        over=over,
        sql_file=sql_file,
        description=description,
    )
    begun = begin(wanted, found)
    if not dry_run:
        write(begun, found.project.config)
    if as_json:
        state.console.data(
            {
                "file": begun.file,
                "names": begun.names,
                "text": begun.text,
                "warnings": begun.warnings,
                **({"query_file": begun.query_file, "query": begun.query} if begun.query else {}),
            }
        )
        return 0
    for each in begun.warnings:
        state.console.note(f"warning: {each}")
    if dry_run:
        state.console.document(begun.text)
        if begun.query is not None:
            state.console.note(f"{begun.query_file}:\n{begun.query.rstrip()}")
        return 0
    files = begun.file if begun.query_file is None else f"{begun.file} and {begun.query_file}"
    state.console.result(f"Created {files}: {', '.join(begun.names)}")
    state.console.note("Review and edit the file. Next: odfbuild plan")
    return 0


def _list_kinds(state: Context, as_json: bool) -> None:
    from odfbuild.api.authoring.scaffold import KINDS

    if as_json:
        state.console.data(KINDS)
        return

    width = max(map(len, KINDS))
    lines = [f"  {kind:<{width}}  {about}" for kind, about in KINDS.items()]
    state.console.result("\n".join(["Kinds of datasets:", *lines]))
    state.console.note("Next: odfbuild new KIND NAME [FROM]...; `odfbuild new --help` tells more")
