"""`odfbuild serve`."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

import typer

from odfbuild.cli.context import Context


def serve(
    state: Context,
    *,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            "--port", "-p", min=0, max=65_535, envvar="ODFBUILD_PORT", help="0: any free port."
        ),
    ] = 8080,
    external_address: Annotated[
        str | None,
        typer.Option(
            "--external-address",
            metavar="URL",
            help="How clients reach this server, such as https://data.example.org behind a proxy "
            "(default: the address that they used).",
        ),
    ] = None,
    ingest: Annotated[
        bool, typer.Option("--ingest", help="Also take records for push sources (POST).")
    ] = False,
) -> int:
    """Serve the datasets of this project to other projects over HTTP.

    Clients read with http:// and odf+http:// addresses, and push with odf+http://. The machine
    configuration says who may read and write; without it, everybody on this machine may read.
    With --ingest, who has a token that may write can push records to /NAME/ingest.
    Ctrl-C or SIGTERM ends it: transfers that are under way finish first.
    """
    from odfbuild.exchange.repositories.serve.server import Listening, serve

    config = state.config()
    with ExitStack() as stack:
        taker = None
        if ingest or config.serving.ingest.enabled:
            from odfbuild.apply.intake import Intake
            from odfbuild.extras import require_engine

            require_engine("`serve --ingest`")
            taker = stack.enter_context(Intake(state.workspace(), config, state.start_engine))
        serve(
            config,
            Listening(host, port, external_address),
            lambda address: state.console.result(f"Serving {address} (Ctrl-C ends it)"),
            state.console.note,
            taker,
        )
    return 0
