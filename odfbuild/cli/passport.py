"""`odfbuild passport`."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.options import SelectionOptions, form_options
from odfbuild.cli.output_file import write_output
from odfbuild.exchange.passport.forms import PassportForm


def passport(
    state: Context,
    selection: SelectionOptions,
    *,
    form: Annotated[PassportForm, form_options(PassportForm)],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Folder to write a file for each dataset."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a list, with the content of each as JSON.")
    ] = False,
) -> int:
    """Describe datasets for others in standard forms.

    croissant: name, license, columns, files with SHA-256, and derivation, as JSON-LD. in-toto:
    statements about each step, signed with the key of the dataset. odcs: a data contract. dcat:
    JSON-LD for open data portals. --json prints a list of them. Without --out or --json, give one
    dataset.
    """
    from odfbuild.exchange.passport.forms import passport as made

    workspace = state.workspace()
    names = state.committed(workspace, selection)
    if len(names) != 1 and out is None and not as_json:
        raise typer.BadParameter(
            f"these are {len(names)} datasets: name one, or give a folder", param_hint="--out"
        )
    config, told = state.config(), []
    for name in names:
        data = made(config, workspace, name, form)
        file = None if out is None else out / f"{name.replace('/', '.')}.{form.suffix}"
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_output(file, partial(_write, data))
            state.console.note(f"Wrote {file}.")
        elif not as_json:
            state.console.result(data.decode().rstrip("\n"))
        told.append((name, file, data))
    if as_json:
        state.console.data(
            [
                {
                    "name": name,
                    "format": form.value,
                    "file": None if file is None else str(file),
                    "content": _content(form, data),
                }
                for name, file, data in told
            ]
        )
    return 0


def _write(data: bytes, to: IO[bytes]) -> None:
    to.write(data)


def _content(form: PassportForm, data: bytes) -> Any:
    if form is PassportForm.in_toto:
        return [json.loads(line) for line in data.splitlines()]
    if form in (PassportForm.croissant, PassportForm.dcat):
        return json.loads(data)
    from odfbuild.project.yaml.source import read_documents

    return read_documents(data.decode(), "contract")[0]
