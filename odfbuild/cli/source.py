"""`odfbuild source`."""

from __future__ import annotations

from typing import Annotated

import typer

from odfbuild.cli import complete
from odfbuild.cli.context import Context
from odfbuild.cli.defaults import Group
from odfbuild.cli.options import ApproveOption, DatasetArgument, JsonOptions, approved

source = Group(help="Create and drop what a source of changes needs on its database server.")


@source.command("create")
def create(
    state: Context,
    dataset: DatasetArgument,
    *,
    resnapshot: Annotated[
        bool,
        typer.Option(
            "--resnapshot",
            help="Create both again; the next apply reads the whole table once more.",
        ),
    ] = False,
    as_json: JsonOptions,
) -> int:
    """Create the replication slot and the publication of a dataset that reads changes.

    The server keeps all changes from then on until apply has read them.
    """
    from odfbuild.api.sources import source_of

    found = source_of(state.directory, state.given, dataset)
    made = found.create(again=resnapshot)
    if as_json:
        state.console.data({"name": found.dataset, "slot": found.slot, "result": made})
    elif made == "kept":
        state.console.result(f"Replication slot and publication '{found.slot}' are there.")
    else:
        state.console.result(
            f"Created replication slot and publication '{found.slot}'.\n"
            f"The next apply reads the whole table. Next: odfbuild apply -s {found.dataset}"
        )
    return 0


@source.command("drop")
def drop(
    state: Context,
    dataset: DatasetArgument,
    *,
    auto_approve: ApproveOption = False,
    as_json: JsonOptions,
) -> int:
    """Drop the replication slot and the publication of a dataset.

    The server then keeps no more of its log for it. The dataset stays as it is.
    """
    from odfbuild.api.sources import source_of

    found = source_of(state.directory, state.given, dataset)
    question = f"Drop '{found.slot}'? Changes that were not read are lost to the dataset."
    if not approved(state.console, auto_approve, question, f"'{found.slot}' was not dropped"):
        return 1
    made = found.drop()
    if as_json:
        state.console.data({"name": found.dataset, "slot": found.slot, "result": made})
    elif made == "absent":
        state.console.result(f"There is no replication slot and no publication '{found.slot}'.")
    else:
        state.console.result(f"Dropped replication slot and publication '{found.slot}'.")
    return 0


@source.command("status")
def status(
    state: Context,
    datasets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[DATASET]...",
            autocompletion=complete.datasets,
            help="Names of datasets (default: all that read changes).",
        ),
    ] = None,
    *,
    as_json: JsonOptions,
) -> int:
    """Show replication slots, and how much of its log the server keeps for each."""
    from odfbuild.api.sources import status_of
    from odfbuild.report.sources import render_slots, slots_to_data

    found = status_of(state.directory, state.given, datasets or [])
    state.console.show(as_json, lambda: slots_to_data(found), lambda: render_slots(found))
    return 0
