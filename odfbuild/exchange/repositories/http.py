"""Files of a web server as a place that can be read: `GET <address>/<name>`, and nothing else.

Credentials go to the host of the address only, whatever it redirects to, and an answer over https
never leads to one without. Answers that are too long, too slow or endless are given up.
Source: RFC-007; RFC 9110 (status codes, redirects).
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from odfbuild.errors import Code, RepositoryError
from odfbuild.ingest.secrets import scrub
from odfbuild.store.place import Progress, too_large
from odfbuild.values import Value
from odfbuild.version import __version__

if TYPE_CHECKING:
    import httpx

_AT_ONCE = 8
"""Requests to a server; with 64 of them, the client takes twice the CPU for each."""

_REDIRECTS = 5
_MOVED = (301, 302, 303, 307, 308)
_ABSENT = (404, 410)
_TRY_AGAIN = (408, 425, 429, 500, 502, 503, 504)


class Patience(Value):
    """How long a server may take.

    `connect` and `idle`: seconds for a connection, and between two pieces of an answer. An answer
    may take `grace` seconds and, for what it brings, the time that `slowest` bytes a second need.
    """

    connect: float = 10
    idle: float = 30
    grace: float = 60
    slowest: float = 16 << 10
    attempts: int = 3
    pause: float = 0.5


_PATIENCE = Patience()


class WebFolder:
    """What a web server has below `address`.

    `authorization` is the value of that header, such as `Bearer …`. `patience` is that of one
    answer; those that fail at the server are asked for again.
    """

    def __init__(
        self,
        address: str,
        client: httpx.Client,
        authorization: str | None = None,
        patience: Patience = _PATIENCE,
        turns: threading.BoundedSemaphore | None = None,
    ) -> None:
        self.address = address
        self._client = client
        self._turns = turns or threading.BoundedSemaphore(_AT_ONCE)
        self._authorization = authorization
        self._patience = patience

    @classmethod
    def at(
        cls, address: str, authorization: str | None = None, patience: Patience = _PATIENCE
    ) -> WebFolder:
        """A folder with a client of its own, for all folders below."""
        import httpx

        client = httpx.Client(
            timeout=httpx.Timeout(patience.idle, connect=patience.connect, pool=None),
            # The bytes are the data: nothing is unpacked, so nothing unpacks to more than it is.
            headers={"Accept-Encoding": "identity", "User-Agent": f"odfbuild/{__version__}"},
            limits=httpx.Limits(max_connections=_AT_ONCE, max_keepalive_connections=_AT_ONCE),
            follow_redirects=False,
        )
        return cls(address, client, authorization, patience)

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()

    def below(self, name: str) -> WebFolder:
        """The folder of that name, through the same client."""
        address = f"{self.address}/{quote(name)}"
        return WebFolder(address, self._client, self._authorization, self._patience, self._turns)

    def read(self, name: str, limit: int) -> bytes | None:
        """A small file."""
        for attempt in self._attempts():
            with attempt, self._turns, self._answer(name) as answer:
                return None if answer is None else b"".join(self._pieces(answer, name, limit))
        raise AssertionError("unreachable: the last attempt returns or raises")

    def download(
        self, name: str, target: Path, limit: int, progress: Progress | None = None
    ) -> bool:
        """Copy a file to `target`."""
        for attempt in self._attempts():
            with attempt, self._turns, self._answer(name) as answer:
                if answer is None:
                    return False
                self._copy(self._pieces(answer, name, limit), target, progress)
                return True
        raise AssertionError("unreachable: the last attempt returns or raises")

    @staticmethod
    def _copy(pieces: Iterator[bytes], target: Path, progress: Progress | None) -> None:
        """Write pieces to a file; what is told of them is taken back if they end in an error."""
        done = 0
        try:
            with target.open("wb") as file:
                for piece in pieces:
                    file.write(piece)
                    done += len(piece)
                    if progress is not None:
                        progress(len(piece))
        except BaseException:
            if progress is not None:
                progress(-done)
            raise

    def _attempts(self) -> Iterator[contextlib.AbstractContextManager[None]]:
        pause = self._patience.pause
        for left in reversed(range(self._patience.attempts)):
            yield self._attempt(pause if left else None)
            pause *= 2

    @contextlib.contextmanager
    def _attempt(self, pause: float | None) -> Iterator[None]:
        """Turn what goes wrong with the connection into errors; wait where there is a `pause`."""
        import httpx

        try:
            yield
        except _ServerFailed as error:
            if pause is None:
                raise RepositoryError(
                    f"{self.address} cannot be used: the server answered {error}",
                    code="E1012",
                    help="run the command again later; if it stays so, ask who runs the server",
                ) from None
            time.sleep(pause)
        except httpx.TimeoutException as error:
            kind = "does not answer" if isinstance(error, httpx.ConnectTimeout) else "stopped"
            raise self._slow(f"it {kind} for {self._patience.idle:g} seconds") from None
        except (httpx.TransportError, httpx.InvalidURL, UnicodeError) as error:
            if pause is None or not isinstance(error, httpx.TransportError):
                raise self._unreachable(error) from None
            time.sleep(pause)

    @contextlib.contextmanager
    def _answer(self, name: str) -> Iterator[httpx.Response | None]:
        """The answer with a file, through redirects; `None` when it is not there."""
        import httpx

        first = url = httpx.URL(f"{self.address}/{quote(name)}")
        for _ in range(_REDIRECTS + 1):
            own = _origin(url) == _origin(first)
            headers = {}
            if own and self._authorization is not None:
                headers["Authorization"] = self._authorization
            with self._client.stream("GET", url, headers=headers) as answer:
                if answer.status_code in _MOVED and "location" in answer.headers:
                    url = self._next(url, answer.headers["location"])
                    continue
                self._check(answer, withheld=None if own else _origin(url))
                yield None if answer.status_code in _ABSENT else answer
                return
        raise self._bad_redirect(f"it redirects more than {_REDIRECTS} times")

    def _next(self, url: httpx.URL, location: str) -> httpx.URL:
        """Where an answer leads; `RepositoryError` E1013 where it must not."""
        found = url.join(location)
        if found.scheme not in ("http", "https"):
            raise self._bad_redirect(f"it redirects to a {found.scheme}: address")
        if url.scheme == "https" and found.scheme == "http":
            raise self._bad_redirect(f"it redirects from https to http, at {found.host}")
        return found.copy_with(username=None, password=None)

    def _check(self, answer: httpx.Response, withheld: tuple[str, str, int | None] | None) -> None:
        """`RepositoryError` for an answer without a file that does not say that there is none."""
        status = answer.status_code
        said = f"{status} {answer.reason_phrase}".rstrip()
        if status in (401, 403):
            notes = [f"the server answered {said}"]
            if withheld is not None and self._authorization is not None:
                notes.append(f"it redirects to {withheld[1]}, which is not told the credentials")
            if status == 403:
                notes.append("some servers answer so for files that are not there, too")
            raise RepositoryError(
                f"{self.address} may not be read"
                + (
                    " with the credentials given" if self._authorization else " without credentials"
                ),
                code=Code.REPOSITORY_FORBIDS,
                notes=tuple(notes),
                help="set `token` of the repository in odfbuild.yaml, such as "
                "`token: ${{ env.ACME_TOKEN }}`, and that variable"
                if self._authorization is None
                else "check the value of `token`, and that its owner may read the dataset",
            )
        if status in _TRY_AGAIN:
            raise _ServerFailed(said)
        if status != 200 and status not in _ABSENT:
            raise RepositoryError(
                f"{self.address} cannot be used: the server answered {said}",
                code="E1012",
                help="check the address: below it are files such as refs/head",
            )

    def _pieces(self, answer: httpx.Response, name: str, limit: int) -> Iterator[bytes]:
        """What an answer brings, up to `limit` bytes and for a limited time."""
        length = answer.headers.get("content-length", "")
        if length.isdecimal() and int(length) > limit:
            raise too_large(name, limit)
        begin, total = time.monotonic(), 0
        for piece in answer.iter_raw():
            total += len(piece)
            if total > limit:
                raise too_large(name, limit)
            taken = time.monotonic() - begin
            if taken > self._patience.grace + total / self._patience.slowest:
                raise self._slow(f"{name} brought {total:,} bytes in {taken:.0f} seconds")
            yield piece

    def _slow(self, problem: str) -> RepositoryError:
        return RepositoryError(
            f"{self.address} is too slow: {problem}",
            code="E1018",
            help="run the command again later; what came completely is not fetched again",
        )

    def _bad_redirect(self, problem: str) -> RepositoryError:
        return RepositoryError(
            f"{self.address} is not followed: {problem}",
            code="E1013",
            help="give the address where the repository is now",
        )

    def _unreachable(self, error: Exception) -> RepositoryError:
        trusted = "CERTIFICATE" not in str(error).upper() and "SSL" not in str(error).upper()
        return RepositoryError(
            scrub(f"{self.address} cannot be used: {error or type(error).__name__}"),
            code="E1001",
            help="check the address and the network"
            if trusted
            else "correct the address, or name the authority's certificates in the environment "
            "variable SSL_CERT_FILE",
        )


class _ServerFailed(Exception):
    """The server answered that it failed; it may do better when it is asked again."""


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return (url.scheme, url.host, url.port)
