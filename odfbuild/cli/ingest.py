"""`odfbuild ingest`."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.options import (
    DatasetArgument,
    JsonOptions,
    LockTimeoutOption,
    parse_time,
    waiting,
)
from odfbuild.store.lock_holders import LOCK_TIMEOUT

if TYPE_CHECKING:
    from odfbuild.errors import OdfbuildError


def ingest(
    state: Context,
    dataset: DatasetArgument,
    *,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="File to read; `-` is standard input.")
    ] = "-",
    source: Annotated[
        str | None,
        typer.Option("--source", "-s", metavar="NAME", help="Push source (default: the only one)."),
    ] = None,
    event_time: Annotated[
        str | None,
        typer.Option(
            "--event-time", metavar="TIME", help="Event time of records without one (RFC 3339)."
        ),
    ] = None,
    idempotency_key: Annotated[
        str | None,
        typer.Option(
            "--idempotency-key",
            metavar="KEY",
            help="Idempotency key: data with a key that was used before is not added.",
        ),
    ] = None,
    lock_timeout: LockTimeoutOption = LOCK_TIMEOUT,
    as_json: JsonOptions,
) -> int:
    """Append data to a dataset with a push source.

    The push source in the chain defines how the data is read and merged. Downstream datasets become
    stale; `odfbuild apply` runs them.
    """
    from odfbuild.apply.ingest_request import IngestRequest
    from odfbuild.apply.ingest_request import ingest as carry_out
    from odfbuild.cli.progress import listener_for
    from odfbuild.report.transfers import apply_to_data

    workspace, name = state.dataset(dataset)
    config = state.config()
    request = IngestRequest(
        dataset=name,
        source=source,
        data=sys.stdin.buffer if file == "-" else Path(file),
        event_time=parse_time(event_time, "--event-time") if event_time else None,
        key=idempotency_key,
    ).under(config)
    with listener_for(state.console, [name], as_json=as_json) as listener:
        outcome = carry_out(
            request,
            workspace,
            factory=state.start_engine,
            listener=listener,
            locate=partial(_locate, state, source),
            config=config,
            waiting=waiting(state.console, lock_timeout),
        )
    if as_json:
        state.console.data(apply_to_data(outcome))
    state.console.error(*(each.error for each in outcome.datasets if each.error is not None))
    return outcome.exit_code


def _locate(
    state: Context, source: str | None, dataset: str, error: OdfbuildError
) -> OdfbuildError:
    """`error` with its place in the definition, if that can be read."""
    from odfbuild.errors import OdfbuildError as AnyError
    from odfbuild.project.load import read_project
    from odfbuild.survey.locate import locate

    try:
        project = read_project(state.directory, state.given)
        return locate(project, dataset, error, push_source=source)
    except AnyError:
        return error
