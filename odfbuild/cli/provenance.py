"""`odfbuild provenance`."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.options import DatasetArgument, form_options

if TYPE_CHECKING:
    from odfbuild.inspect.verify.provenance import TracedRecords

_RECORDS = 10


class ProvenanceForm(StrEnum):
    """Text for a terminal, JSON for programs, a page with a drawing for a browser."""

    text = "text"
    json = "json"
    html = "html"


def provenance(
    state: Context,
    dataset: DatasetArgument,
    *,
    offsets: Annotated[
        list[int] | None,
        typer.Argument(metavar="OFFSET", min=0, help="Offsets of the records."),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(metavar="CONDITION", help="SQL condition that selects the records."),
    ] = None,
    recursive: Annotated[
        bool, typer.Option("--recursive", "-r", help="Trace down to the roots.")
    ] = False,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, help="Maximum number of records to trace.")
    ] = _RECORDS,
    shown: Annotated[
        int, typer.Option("--show", min=0, help="Number of records to show for each input.")
    ] = 5,
    columns: Annotated[
        bool,
        typer.Option("--columns", help="Also show the columns of inputs that columns are made of."),
    ] = False,
    form: Annotated[ProvenanceForm, form_options(ProvenanceForm, "json")],
) -> int:
    """Show which input records a record was made from.

    Recomputes the step that made the record, with the query and schemas in force at its block. For
    some queries (LIMIT, a subquery in a condition) single input records cannot be identified; then
    all records that the step read are listed, with the reason. --columns follows columns through
    the query as Spark analyses it.
    """
    from odfbuild.inspect.provenance import trace
    from odfbuild.inspect.verify.provenance import Extent
    from odfbuild.report.records.provenance import provenance_to_data, render_provenance
    from odfbuild.wording import count

    if bool(offsets) == (where is not None):
        raise typer.BadParameter("give offsets, or --where", param_hint="OFFSET")
    workspace, name = state.dataset(dataset)
    trees: list[TracedRecords]
    trees, left_out = trace(
        workspace,
        name,
        where if where is not None else offsets or (),
        state.start_engine,
        Extent(recursive=recursive, shown=shown, columns=columns),
        limit,
    )
    if form is ProvenanceForm.json:
        state.console.data(provenance_to_data(trees))
    elif form is ProvenanceForm.html:
        from odfbuild.report.records.provenance_html import provenance_page

        state.console.result(provenance_page(trees))
    elif trees:
        state.console.result(render_provenance(trees))
    if not trees:
        state.console.note("No records match.")
    if left_out:
        state.console.note(f"{count(left_out, 'more record')} not traced: see --limit.")
    return 0
