"""Send a message to a webhook, to a program of the machine's owner, or by e-mail."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from odfbuild.errors import EnvironmentProblem, IngestError
from odfbuild.ingest.secrets import library_words, remember, resolve_address, scrub
from odfbuild.values import Value

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


class Email(Value):
    """A message of plain text."""

    sender: str
    recipients: tuple[str, ...]
    subject: str
    text: str


def mail(server: str, email: Email) -> None:
    """Send an e-mail by a server, whose address may hold `${{ env.NAME }}`.

    Always through TLS, from the start (`smtps:`) or by STARTTLS (`smtp:`), but for a server on this
    machine that takes no password. Raises `EnvironmentProblem` E0912 when it does not take it.
    """
    from email.message import EmailMessage
    from email.utils import formatdate, make_msgid
    from smtplib import SMTPException, SMTPResponseException, SMTPServerDisconnected

    receiver = ", ".join(email.recipients)
    try:
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = email.sender, receiver, email.subject
        message["Date"], message["Message-ID"] = formatdate(), make_msgid(domain="odfbuild")
        message.set_content(email.text + "\n")
        address = urlsplit(resolve_address(server))
        if address.password:
            remember(unquote(address.password))
        why = ""
        for attempt in range(_ATTEMPTS):
            time.sleep(_WAIT * attempt)
            try:
                return _deliver(address, message)
            except SMTPResponseException as error:
                why = f"it answered {error.smtp_code} {_words(error.smtp_error)}".rstrip()
                if error.smtp_code >= 500:
                    break
            except OSError as error:
                why = str(error) or type(error).__name__
                if isinstance(error, SMTPException) and not isinstance(
                    error, SMTPServerDisconnected
                ):
                    break
    except IngestError as error:  # a variable without a value
        raise _not_told(receiver, error.message) from None
    except ValueError as error:  # an address or a header that is none
        raise _not_told(receiver, library_words(error, server)) from None
    raise _not_told(receiver, why)


def _deliver(address: SplitResult, message: Any) -> None:
    import ssl
    from smtplib import SMTP, SMTP_SSL, SMTPRecipientsRefused

    host, trusted = address.hostname or "", ssl.create_default_context()
    if address.scheme == "smtps":
        client: SMTP = SMTP_SSL(host, address.port or 465, timeout=_SECONDS, context=trusted)
    else:
        client = SMTP(host, address.port or 587, timeout=_SECONDS)
    with client:
        client.ehlo()
        if address.scheme == "smtp" and (
            client.has_extn("starttls") or address.password or not _is_here(host)
        ):
            client.starttls(context=trusted)
        if address.username:
            client.login(unquote(address.username), unquote(address.password or ""))
        refused = client.send_message(message)
        if refused:
            raise SMTPRecipientsRefused(refused)


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _words(answer: bytes | str) -> str:
    return answer.decode(errors="replace") if isinstance(answer, bytes) else answer


def _not_told(receiver: str, why: str) -> EnvironmentProblem:
    return EnvironmentProblem(
        scrub(f"no alert could be sent to {receiver}: {why}"),
        code="E0912",
        help="correct `notify` in machine.yaml; the next run tells it again",
    )
