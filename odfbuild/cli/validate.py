"""`odfbuild validate`."""

from __future__ import annotations

import typer

from odfbuild.cli.context import Context


def validate(context: typer.Context) -> int:
    """Check all definitions: YAML, templates, types, inputs, cycles. No Spark, no network."""
    state: Context = context.obj
    from odfbuild.apply.survey import read_definitions

    project, _, _ = read_definitions(state.directory, state.given)
    count = len(project.definitions)
    state.console.result(f"{count} dataset{'' if count == 1 else 's'} defined, all valid.")
    return 0
