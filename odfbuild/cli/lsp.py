"""`odfbuild lsp`."""

from __future__ import annotations

import os
import sys

from odfbuild.cli.context import Context
from odfbuild.errors import missing_extra


def lsp(state: Context) -> int:
    """Serve editors: a language server on stdin and stdout.

    Errors while you type, completion, hover, definitions, references, renaming, formatting and
    plans, without Java and without the network. docs/editors.md sets up editors.
    """
    try:
        from odfbuild.api.editor.server import make_server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise missing_extra("editor", "editors") from None
    # Whatever prints must not come between messages.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    server = make_server(state.directory, state.given)
    try:
        server.start_io(sys.stdin.buffer, answers)
    finally:
        for each in server.sessions.values():
            each.close()
    return 0
