"""`odfbuild explain`."""

from __future__ import annotations

from typing import Annotated

import typer

from odfbuild.cli.context import Context, DatasetArgument, Format, FormatOption, JsonOption
from odfbuild.errors import PlanError


def explain(
    context: typer.Context,
    dataset: DatasetArgument,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="RUN", help="Also what happened since this run, or `last`."
        ),
    ] = None,
    format: FormatOption = Format.text,
    as_json: JsonOption = False,
) -> int:
    """Tell why a dataset is stale or not, down to the root causes, with blocks and offsets."""
    from odfbuild.plan.explain import explain as explained
    from odfbuild.report.explanation import (
        explanation_to_data,
        history_to_data,
        render_explanation,
        render_history,
    )

    state: Context = context.obj
    found = state.survey()
    name = _known(dataset, [each.name for each in found.plan.datasets])
    explanation = explained(found.plan, name, found.projections)
    data, text = explanation_to_data(explanation), ""
    if since is not None:
        from odfbuild.apply.runs import runs_since

        base, later = runs_since(found.project.config.cache, since)
        data["since"] = history_to_data(name, base, later)
        text = render_history(name, base, later)
    if as_json or format is Format.json:
        state.console.data(data)
    else:
        shown = render_explanation(explanation, color=state.console.color)
        state.console.result("\n\n".join(filter(None, (shown, text))))
    return 0


def _known(wanted: str, names: list[str]) -> str:
    """The dataset of the plan with that name, whose case does not count."""
    from difflib import get_close_matches

    folded = {name.lower(): name for name in names}
    if wanted.lower() in folded:
        return folded[wanted.lower()]
    close = get_close_matches(wanted.lower(), folded, n=1)
    raise PlanError(
        f"there is no dataset '{wanted}' here",
        code="E0301",
        dataset=wanted,
        help=f"did you mean '{folded[close[0]]}'?" if close else "`odfbuild ls` lists them all",
    )
