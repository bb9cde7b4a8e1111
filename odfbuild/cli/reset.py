"""`odfbuild reset`."""

from __future__ import annotations

from typing import Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.git import note_heads
from odfbuild.cli.options import DatasetArgument, Format, FormatOption, JsonOption
from odfbuild.errors import PlanError
from odfbuild.survey.names import block_in, existing


def reset(
    context: typer.Context,
    dataset: DatasetArgument,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="BLOCK", help="Go back to this block (hash, or its beginning or end)."
        ),
    ] = None,
    readers: Annotated[
        bool,
        typer.Option("--readers", "-r", help="Take all that read what goes back, too."),
    ] = False,
    auto_approve: Annotated[
        bool,
        typer.Option("--auto-approve", "-y", envvar="ODFBUILD_AUTO_APPROVE", help="Do not ask."),
    ] = False,
    format: FormatOption = Format.text,
    as_json: JsonOption = False,
) -> int:
    """Take a dataset back to an older block, or to its definition without any records.

    The next apply computes or fetches again what its definition says. What was committed stays on
    disk until `gc` removes it; until then a reset to the old head brings it back.
    """
    from odfbuild.apply.reset import carry_out, plan_resets
    from odfbuild.apply.run_log import record_resets
    from odfbuild.report.reset import render_resets, resets_to_data

    state: Context = context.obj
    console = state.console
    workspace = state.workspace()
    name = existing(workspace, dataset)
    block = block_in(workspace.dataset(name), to, abandoned=True) if to else None
    resets = plan_resets(state.config(), workspace, name, block, readers=readers)
    as_json = as_json or format is Format.json
    if not resets:
        console.data([]) if as_json else console.result(f"'{name}' is there already.")
        return 0
    if not as_json:
        console.result(render_resets(resets))
    if not auto_approve:
        if not console.interactive:
            raise PlanError(
                f"'{name}' was not taken back: nobody can be asked here",
                code="E0334",
                dataset=name,
                help="add --auto-approve",
            )
        if not console.confirm("Do this?"):
            console.note("Nothing was done.")
            return 1
    carry_out(workspace, resets)
    record_resets(state.config().cache, resets, workspace)
    note_heads(state, [each.name for each in resets])
    if as_json:
        console.data(resets_to_data(resets))
    for each in resets:
        console.note(
            f"To take it back: odfbuild reset {each.name} --to {each.head} (before `odfbuild gc`)"
        )
    return 0
