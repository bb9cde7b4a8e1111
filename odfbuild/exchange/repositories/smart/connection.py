"""A dialogue with a server of the Smart Transfer Protocol, over a WebSocket.

Peers take text frames only: a ping is an error to them, so none is sent, and nothing is compressed.
What a server reports after the handshake comes as the reason of a close with code 1011.
Sources: RFC-008; reference behaviour, "framing", "errors and closing".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from odfbuild.errors import Code, RepositoryError, missing_extra
from odfbuild.exchange.repositories.smart.messages import (
    MAX_FRAME,
    MAX_MESSAGE,
    VERSION,
    VERSION_HEADER,
    Malformed,
    Refused,
    read_reply,
    write,
)
from odfbuild.version import __version__

if TYPE_CHECKING:
    from websockets.http11 import Response
    from websockets.sync.client import ClientConnection

OPEN_SECONDS = 30.0
ANSWER_SECONDS = 300.0
"""A server reads a whole history before it answers."""

AGENT = f"odfbuild/{__version__}"
T = TypeVar("T")


class Dialogue:
    """Messages to and from the server at `address`."""

    def __init__(self, socket: ClientConnection, address: str) -> None:
        self._socket = socket
        self._address = address

    def send(self, message: Any) -> None:
        """Send a message, in pieces if it is long."""
        text = write(message)
        if len(text) > MAX_MESSAGE:
            raise RepositoryError(
                f"the blocks are too many for one message: {len(text) >> 20} MiB",
                code="E1049",
                notes=(f"repository: {self._address}", "peers take messages of up to 64 MiB"),
                help="push an older part of the history first: `odfbuild push --to` a repository "
                "that is a folder or a bucket has no such limit",
            )
        pieces = [text[at : at + MAX_FRAME] for at in range(0, len(text), MAX_FRAME)]
        with self._whole():
            self._socket.send(pieces if len(pieces) > 1 else text)

    def receive(self, form: type[T], seconds: float = ANSWER_SECONDS) -> T:
        """The next message, a reply of that form; `Refused` when the server refuses.

        `TimeoutError` when nothing comes, `RepositoryError` E1042, E1044 when it is something else
        or the connection ends.
        """
        with self._whole():
            text = self._socket.recv(timeout=seconds)
        if isinstance(text, bytes):
            raise foreign(self._address, "it sent bytes where text was due")
        try:
            return read_reply(form, text)
        except Malformed as error:
            raise foreign(self._address, f"its message is not {form.__name__}: {error}") from None

    def close(self, reason: str) -> None:
        """Say that the dialogue is over."""
        self._socket.close(1000, reason)

    @contextmanager
    def _whole(self) -> Iterator[None]:
        from websockets.exceptions import ConnectionClosed

        try:
            yield
        except ConnectionClosed as error:
            raise self._ended(error) from None
        except OSError as error:
            if isinstance(error, TimeoutError):
                raise
            raise broken(self._address, str(error)) from None

    def _ended(self, error: Any) -> Exception:
        """What the end of a connection tells; its reason is one of the replies."""
        code, reason = (error.rcvd.code, error.rcvd.reason) if error.rcvd else (1006, "")
        try:
            read_reply(dict, reason)
        except Refused as refused:
            return refused
        except Malformed:
            pass
        if error.sent is not None and error.sent.code == 1009:
            return RepositoryError(
                "the server sent a message that is too long",
                code="E1049",
                notes=(f"repository: {self._address}", "messages have up to 64 MiB"),
                help="use the address with http:// or https://, which reads block by block",
            )
        if code == 1006:
            return broken(self._address, "the server closed it without a word")
        return broken(self._address, f"the server closed it: {code} {reason}".rstrip())


@contextmanager
def connect(base: str, verb: str, token: str | None, address: str) -> Iterator[Dialogue]:
    """A dialogue `pull` or `push` with the dataset at the URL `base`.

    `RepositoryError` E1040 when there is no way there, E1041 and E1042 when it refuses.
    """
    try:
        from websockets.exceptions import InvalidHandshake, WebSocketException
        from websockets.sync.client import ClientConnection, connect
    except ModuleNotFoundError:
        raise missing_extra("share", "repositories with odf+http:// and odf+https://") from None

    class Steadfast(ClientConnection):
        """A connection that follows no redirect, which could lead to another server."""

        def handshake(self, *args: Any, **kwargs: Any) -> None:
            _without_redirects(lambda: super(Steadfast, self).handshake(*args, **kwargs), address)

    headers = {VERSION_HEADER: str(VERSION)}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    url = urlsplit(f"{base}{verb}")
    try:
        opening = connect(
            url._replace(scheme="wss" if url.scheme == "https" else "ws").geturl(),
            additional_headers=headers,
            user_agent_header=AGENT,
            compression=None,
            open_timeout=OPEN_SECONDS,
            ping_interval=None,
            close_timeout=5,
            max_size=MAX_MESSAGE,
            create_connection=Steadfast,
        )
        socket = opening.__enter__()
    except (OSError, InvalidHandshake, WebSocketException) as error:
        raise unreachable(address, str(error) or type(error).__name__) from None
    with socket:
        yield Dialogue(socket, address)


def _without_redirects(handshake: Callable[[], None], address: str) -> None:
    from websockets.exceptions import InvalidStatus

    try:
        handshake()
    except InvalidStatus as error:
        raise _declined(error.response, address) from None


def _declined(response: Response, address: str) -> RepositoryError:
    body = (response.body or b"")[:300].decode("utf-8", "replace").strip()
    return refusal(address, response.status_code, body)


# --- Errors that HTTP and WebSocket share ---


def refusal(address: str, status: int, body: str = "") -> RepositoryError:
    """The error for a request that was answered with that status."""
    said = f"it answered {status}" + (f": {body}" if body else "")
    if status in (401, 403):
        return RepositoryError(
            "the repository does not know the token" if status == 401 else "access is denied",
            code="E1041",
            notes=(f"repository: {address}", said),
            help="check `token` of the repository in odfbuild.yaml, and what it may do there",
        )
    if 300 <= status < 400:
        return RepositoryError(
            "the repository has moved",
            code="E1042",
            notes=(f"repository: {address}", said, "redirects are not followed: they lead away"),
            help="write its present address in odfbuild.yaml",
        )
    if status == 404:
        return RepositoryError(
            "there is no such dataset, or the token may not read it",
            code="E1041",
            notes=(f"repository: {address}", said),
            help="check the name of the dataset, and `token` of the repository in odfbuild.yaml",
        )
    return foreign(address, said)


def foreign(address: str, why: str) -> RepositoryError:
    """The error for a server that speaks another protocol, or another version."""
    return RepositoryError(
        "the server does not speak the Smart Transfer Protocol as odfbuild does",
        code="E1042",
        notes=(f"repository: {address}", why),
        help="check the address; a server that gives out plain files has http:// or https://",
    )


def broken(address: str, why: str) -> RepositoryError:
    """The error for a transfer that was cut off."""
    return RepositoryError(
        "the transfer was cut off",
        code=Code.TRANSFER_CUT_OFF,
        notes=(f"repository: {address}", why, "what is complete is not transferred again"),
        help="run the command again",
    )


def unreachable(address: str, why: str) -> RepositoryError:
    """The error for a server that cannot be reached."""
    return RepositoryError(
        "the repository cannot be reached",
        code="E1040",
        notes=(f"repository: {address}", why),
        help="check the address and the network",
    )
