"""`odfbuild erase`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.exit_codes import exit_code_of
from odfbuild.cli.options import (
    ApproveOption,
    JsonOptions,
    LockTimeoutOption,
    approved,
    waiting,
)
from odfbuild.store.lock_holders import LOCK_TIMEOUT


def erase(
    state: Context,
    subjects: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SUBJECT]...", help="Persons, as the subject column names them."),
    ] = None,
    *,
    file: Annotated[
        Path | None,
        typer.Option("--file", metavar="FILE", help="File with one subject a line, as UTF-8."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="Show what would be done; change nothing.")
    ] = False,
    auto_approve: ApproveOption = False,
    lock_timeout: LockTimeoutOption = LOCK_TIMEOUT,
    as_json: JsonOptions,
) -> int:
    """Destroy the keys of persons, so that nobody can read their personal values again.

    Says which datasets have records of them and which steps cannot be recomputed. Signs a statement
    beside each of these chains, and writes published tables anew. Blocks and slices stay as they
    are. This cannot be undone.
    """
    from odfbuild.apply.erase import erase as carry_out
    from odfbuild.apply.erase import plan_erasure
    from odfbuild.report.erasure import (
        erased_to_data,
        erasure_plan_to_data,
        render_erased,
        render_erasure_plan,
    )

    console = state.console
    config, workspace = state.config(), state.workspace()
    plan = plan_erasure(config, workspace, [*(subjects or ()), *_listed(file)])
    if not as_json:
        console.result(render_erasure_plan(plan))
    if dry_run:
        if as_json:
            console.data(erasure_plan_to_data(plan))
        return 0
    if not approved(console, auto_approve, "Do this? It cannot be undone.", "nothing was erased"):
        return 1
    done = carry_out(config, workspace, plan, waiting(console, lock_timeout))
    if as_json:
        console.data(erased_to_data(plan, done))
    else:
        console.result(render_erased(done, color=console.color))
    errors = [each.error for each in done.tables if each.error is not None]
    console.error(*errors)
    return exit_code_of(errors)


def _listed(file: Path | None) -> list[str]:
    if file is None:
        return []
    try:
        return [line for line in file.read_text("utf-8").splitlines() if line]
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{file} cannot be read: {error}", param_hint="--file") from None
