"""`odfbuild render`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import (
    Context,
    ExcludeOption,
    SelectionArgument,
    SelectOption,
    SelectorOption,
    selection_of,
)

if TYPE_CHECKING:
    from odfbuild.project.model import Definition


def render(
    context: typer.Context,
    datasets: SelectionArgument = None,
    select: SelectOption = None,
    exclude: ExcludeOption = None,
    selector: SelectorOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FOLDER", help="Write one file for each dataset to this folder."
        ),
    ] = None,
) -> int:
    """Print definitions as they are read: templates rendered, short forms written out."""
    from odfbuild.apply.survey import read_definitions

    state: Context = context.obj
    chosen = state.chosen(selection_of(select, exclude, selector, datasets))
    project = read_definitions(state.directory, state.given).project
    wanted = [d for d in project.definitions if chosen is None or d.name in chosen]
    if out is None:
        state.console.result("---\n".join(map(_text, wanted)) or "There are no datasets.")
        return 0
    for definition in wanted:
        file = out / f"{definition.name}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_text(definition), encoding="utf-8")
    state.console.note(f"Wrote {len(wanted)} files to {out}.")
    return 0


def _text(definition: Definition) -> str:
    from odfbuild.odf.yaml_form import to_manifest
    from odfbuild.odf.yaml_text import dump_yaml

    return f"# {definition.location}\n{dump_yaml(to_manifest(definition.snapshot))}"
