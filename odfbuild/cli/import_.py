"""`odfbuild import`."""

from __future__ import annotations

from typing import Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.options import DatasetArgument, JsonOptions
from odfbuild.errors import ProjectError
from odfbuild.survey.names import existing


def import_(
    state: Context,
    dataset: DatasetArgument,
    *,
    write: Annotated[
        bool,
        typer.Option("--write", "-w", help="Write the definition to the folder of definitions."),
    ] = False,
    as_json: JsonOptions,
) -> int:
    """Print the definition of an existing chain as YAML."""
    from odfbuild.apply.refuse_external import check_own
    from odfbuild.odf.identity import name_for
    from odfbuild.odf.yaml_form import to_manifest
    from odfbuild.odf.yaml_text import dump_yaml
    from odfbuild.plan.changes.committed import committed_snapshot
    from odfbuild.project.editor import schema_comment, write_definition

    workspace = state.workspace()
    possible = name_for(dataset)
    if possible is not None:
        state.console.note(f"Names of datasets have no `_`: '{dataset}' is called '{possible}'.")
    name = existing(workspace, possible or dataset)
    committed = workspace.projections([name])[name]
    aliases = {each.dataset_id: alias for alias, each in workspace.readable().items()}
    manifest = to_manifest(committed_snapshot(name, committed, aliases))
    text = dump_yaml(manifest)
    if as_json:
        state.console.data(manifest)
    if not write:
        if not as_json:
            state.console.document(text)
        return 0
    check_own(workspace, name)
    config = state.config()
    file = config.datasets / f"{name}.yaml"
    if file.exists():
        raise ProjectError(
            f"{file.relative_to(config.root)} is there already",
            code="E0114",
            dataset=name,
            help="compare it with what `odfbuild import` prints without --write",
        )
    write_definition(config.root, file, schema_comment(config.root, file) + text)
    state.console.note(f"Wrote {file.relative_to(config.root)}. Next: odfbuild diff")
    return 0
