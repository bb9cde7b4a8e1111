"""`odfbuild ls`."""

from __future__ import annotations

import typer

from odfbuild.cli.context import Context, Format, FormatOption, JsonOption


def ls(
    context: typer.Context, format: FormatOption = Format.text, as_json: JsonOption = False
) -> int:
    """List datasets: kind, records, size, watermark, head."""
    from odfbuild.report.listing import datasets_to_data, render_datasets

    state: Context = context.obj
    projections = state.workspace().projections()
    if as_json or format is Format.json:
        state.console.data(datasets_to_data(projections))
    else:
        state.console.result(render_datasets(projections))
    return 0
