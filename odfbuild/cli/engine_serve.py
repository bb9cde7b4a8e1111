"""`odfbuild engine serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_MIB = 1 << 20


def serve(
    *,
    listen: Annotated[
        list[str] | None,
        typer.Option(
            "--listen",
            metavar="ADDRESS",
            help="`unix:/path/of/a/socket` or `host:port` (repeatable). Default: the socket in "
            "ODF_ENGINE_SOCKET, else ports 2884 and 5544 of 127.0.0.1.",
        ),
    ] = None,
    folder: Annotated[
        list[Path] | None,
        typer.Option(
            "--folder",
            metavar="FOLDER",
            exists=True,
            file_okay=False,
            help="Spark may read files of requests here where they are (repeatable); others are "
            "copied first. /opt/engine is always one of them.",
        ),
    ] = None,
    checkpoint_limit: Annotated[
        int,
        typer.Option(
            "--checkpoint-limit",
            metavar="MIB",
            min=1,
            help="How many MiB of earlier records a checkpoint may keep.",
        ),
    ] = 256,
    prepare: Annotated[
        bool,
        typer.Option(
            "--prepare",
            help="Start Spark once, so that it starts faster from then on, and exit: for building "
            "images.",
        ),
    ] = False,
) -> None:
    """Offer Spark as an engine to any coordinator of Open Data Fabric, over gRPC.

    Needs no project. Everybody who can connect can have files read and written in the name of the
    user who runs it. SIGTERM or Ctrl-C ends it.
    """
    from odfbuild.engine.process.server.serve import Serving, serve
    from odfbuild.engine.process.server.serve import prepare as prepare_spark

    if prepare:
        prepare_spark()
        return
    serve(
        Serving(
            addresses=tuple(listen or ()),
            folders=tuple(folder or ()),
            checkpoint_limit=checkpoint_limit * _MIB,
        )
    )
