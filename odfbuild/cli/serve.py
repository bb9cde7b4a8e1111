"""`odfbuild serve`."""

from __future__ import annotations

from typing import Annotated

import typer

from odfbuild.cli.context import Context


def serve(
    context: typer.Context,
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
) -> int:
    """Serve the datasets of this project to other projects over HTTP.

    Clients read with http:// and odf+http:// addresses, and push with odf+http://. The machine
    configuration says who may read and write; without it, everybody on this machine may read.
    Ctrl-C or SIGTERM ends it: transfers that are under way finish first.
    """
    from odfbuild.exchange.repositories.serve.server import Listening, serve

    state: Context = context.obj
    serve(
        state.config(),
        Listening(host, port, external_address),
        lambda address: state.console.result(f"Serving {address} (Ctrl-C ends it)"),
        state.console.note,
    )
    return 0
