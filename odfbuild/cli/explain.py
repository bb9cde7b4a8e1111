"""`odfbuild explain`."""

from __future__ import annotations

from typing import Annotated

import typer

from odfbuild.cli import complete
from odfbuild.cli.context import Context
from odfbuild.cli.options import JsonOptions


def explain(
    state: Context,
    dataset: Annotated[
        str,
        typer.Argument(
            metavar="DATASET|CODE",
            autocompletion=complete.datasets,
            help="A dataset, or the code of an error.",
        ),
    ],
    *,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="RUN", help="Also show what happened since this run, or `last`."
        ),
    ] = None,
    as_json: JsonOptions,
) -> int:
    """Explain why a dataset is stale, or what an error code means."""
    from odfbuild.report.error_codes import is_error_code

    if is_error_code(dataset):
        return _explain_code(state, dataset.upper(), as_json)
    from odfbuild.inspect.receipts import with_receipts
    from odfbuild.plan.explain import explain as explained
    from odfbuild.report.explanation import (
        explanation_to_data,
        history_to_data,
        render_explanation,
        render_history,
    )
    from odfbuild.survey.names import one_of

    found = state.survey()
    planned = found.plan
    name = one_of(planned.names, planned.called(dataset) or dataset)
    explanation = with_receipts(
        explained(planned, name, found.projections),
        found.project.config,
        found.workspace,
        found.renames,
    )
    data, text = explanation_to_data(explanation), ""
    if since is not None:
        from odfbuild.survey.runs import runs_since

        base, later = runs_since(found.project.config.cache, since, state.given.branch)
        data["since"] = history_to_data(name, base, later)
        text = render_history(name, base, later)
    if as_json:
        state.console.data(data)
    else:
        shown = render_explanation(explanation, color=state.console.color)
        state.console.result("\n\n".join(filter(None, (shown, text))))
    return 0


def _explain_code(state: Context, code: str, as_json: bool) -> int:
    from dataclasses import asdict
    from textwrap import fill

    from odfbuild.report.error_codes import error_codes

    entry = error_codes().get(code)
    if entry is None:
        raise typer.BadParameter(f"there is no error with the code {code}", param_hint="CODE")
    if as_json:
        state.console.data(asdict(entry))
    else:
        state.console.result(f"{entry.code}: {entry.title}\n\n{fill(entry.text, 100)}")
    return 0
