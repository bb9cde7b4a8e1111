"""Send a message to a webhook, or to a program of the machine's owner."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Sequence
from typing import Any

from odfbuild.errors import EnvironmentProblem, IngestError
from odfbuild.ingest.secrets import library_words, remember, resolve_address, scrub

_ATTEMPTS = 3
_SECONDS = 10.0
"""How long the receiver may take to connect, and to answer."""
_WAIT = 1.0
"""Seconds before the second attempt; twice as many before the third."""
_COMMAND_SECONDS = 60.0


def post(webhook: str, message: dict[str, Any]) -> None:
    """Send JSON to an address, which may hold `${{ env.NAME }}`.

    Raises `EnvironmentProblem` E0912 when the receiver does not take it.
    """
    import httpx

    try:
        url = resolve_address(webhook)
        remember(url)  # whoever knows it can send messages
        why = ""
        for attempt in range(_ATTEMPTS):
            time.sleep(_WAIT * attempt)
            try:
                found = httpx.post(url, json=message, timeout=_SECONDS, follow_redirects=False)
            except httpx.TransportError as error:
                why = library_words(error, webhook)
                continue
            if found.is_success:
                return
            why = f"it answered {found.status_code} {found.reason_phrase}".rstrip()
            if found.status_code not in (408, 429) and found.status_code < 500:
                break
    except IngestError as error:  # a variable without a value
        raise _not_told(webhook, error.message) from None
    except (httpx.InvalidURL, UnicodeError) as error:
        raise _not_told(webhook, library_words(error, webhook)) from None
    raise _not_told(webhook, why)


def pipe(command: Sequence[str], message: dict[str, Any]) -> None:
    """Give JSON to a program on its standard input.

    Raises `EnvironmentProblem` E0912 when it does not run to a good end.
    """
    shown = " ".join(command)
    try:
        done = subprocess.run(
            command,
            input=json.dumps(message, ensure_ascii=False).encode(),
            capture_output=True,
            cwd="/",  # a program of the machine, not one that lies in the project
            timeout=_COMMAND_SECONDS,
            check=False,
        )
    except OSError as error:
        raise _not_told(shown, error.strerror or str(error)) from None
    except subprocess.TimeoutExpired:
        raise _not_told(shown, f"it ran longer than {_COMMAND_SECONDS:.0f} seconds") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2][:200]
        raise _not_told(shown, f"it ended with {done.returncode}{': ' * bool(said)}{said}")


def _not_told(receiver: str, why: str) -> EnvironmentProblem:
    return EnvironmentProblem(
        scrub(f"no alert could be sent to {receiver}: {why}"),
        code="E0912",
        help="correct `notify` in machine.yaml; the next run tells it again",
    )
