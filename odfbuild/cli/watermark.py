"""`odfbuild watermark`: show it, or set it by hand."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.defaults import Group, VerbGroup
from odfbuild.cli.options import (
    DatasetArgument,
    JsonOptions,
    LockTimeoutOption,
    parse_time,
    waiting,
)
from odfbuild.store.lock_holders import LOCK_TIMEOUT


class _ShowByDefault(VerbGroup):
    """`watermark DATASET` is short for `watermark show DATASET`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the verb there that was left out."""
        if args and args[0] not in (*self.commands, "-h", "--help"):
            args = ["show", *args]
        return super().parse_args(ctx, args)


watermark = Group(
    help="Show or set watermarks, and list late records.",
    cls=_ShowByDefault,
)


@watermark.command()
def show(
    state: Context,
    dataset: DatasetArgument,
    as_json: JsonOptions,
) -> int:
    """Show the watermark of a dataset. `show` may be left out."""
    workspace, name = state.dataset(dataset)
    projection = workspace.projection(name)
    found = projection.watermark if projection else None
    if as_json:
        state.console.data({"name": name, "watermark": str(found) if found else None})
    elif found is None:
        state.console.note(f"'{name}' has no watermark yet.")
    else:
        state.console.result(str(found))
    return 0


@watermark.command()
def late(
    state: Context,
    dataset: DatasetArgument,
    *,
    count: Annotated[
        int, typer.Option("--num", "-n", min=1, help="Number of newest records to show.")
    ] = 10,
    as_json: JsonOptions,
) -> int:
    """List late records.

    For a dataset with windows, lists input records that arrived after the window was closed; for
    others, their own records that arrived after the watermark passed them. Reads event times only.
    """
    from odfbuild.inspect.late import late as find
    from odfbuild.report.records.late import late_to_data, render_late

    workspace, name = state.dataset(dataset)
    projection = workspace.projection(name)
    assert projection is not None
    found = find(workspace, name, projection)
    state.console.show(
        as_json, lambda: late_to_data(found, count), lambda: render_late(found, count)
    )
    return 0


@watermark.command(name="set")
def set_(
    state: Context,
    dataset: DatasetArgument,
    time: Annotated[
        str, typer.Argument(metavar="TIME", help="RFC 3339; not before the current watermark.")
    ],
    *,
    lock_timeout: LockTimeoutOption = LOCK_TIMEOUT,
    as_json: JsonOptions,
) -> int:
    """Move the watermark of a root dataset forward."""
    from odfbuild.apply.watermark import move_watermark

    workspace, name = state.dataset(dataset)
    moment = parse_time(time, "TIME")
    moved = move_watermark(workspace, name, moment, waiting(state.console, lock_timeout))
    if as_json:
        state.console.data({"name": name, "watermark": str(moment), "changed": moved})
    else:
        state.console.result(f"{name}: {'now at' if moved else 'already at'} {moment}")
    return 0
