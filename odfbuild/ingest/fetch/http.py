"""Data of a web server: conditional requests, bounded redirects and retries, streamed to disk."""

from __future__ import annotations

import email.utils
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild import __version__
from odfbuild.errors import IngestError
from odfbuild.ingest.fetch.result import ETAG, LAST_MODIFIED, Fetched, etag, last_modified
from odfbuild.ingest.fetch.template import Resolved, mask, resolve
from odfbuild.odf.model import EventTimeSourceFromSystemTime, FetchStepUrl, SourceState
from odfbuild.odf.timestamp import Timestamp

if TYPE_CHECKING:
    import httpx

_REDIRECTS = 10
_ATTEMPTS = 4
_FIRST_WAIT = 0.5
_CONNECT_SECONDS = 30.0
_READ_SECONDS = 60.0
_CHUNK = 1 << 20
_MOVED = (301, 302, 303, 307, 308)
_TRY_AGAIN = (429, 500, 502, 503, 504)


@dataclass(frozen=True, slots=True)
class _Request:
    """What is asked. `shown` is the URL as messages may show it; `secrets` are never shown."""

    url: str
    shown: str
    own: dict[str, str]
    conditional: dict[str, str]
    secrets: tuple[str, ...]


class _Again(Exception):
    """The request may succeed when it is repeated."""


def fetch_http(
    step: FetchStepUrl, url: Resolved, state: SourceState | None, scratch: Path, now: Timestamp
) -> Fetched | None:
    """Download if the data changed since `state`; `None` when it did not. Raises `IngestError`."""
    import httpx

    request = _request(step, url, state)
    target = scratch / "download"
    timeout = httpx.Timeout(_READ_SECONDS, connect=_CONNECT_SECONDS)
    with httpx.Client(timeout=timeout, follow_redirects=False) as client:
        headers = _with_retries(client, request, target)
    if headers is None:
        return None
    new, moment = _state_of(headers)
    if new is not None and new == state:
        return None
    from_clock = isinstance(step.event_time, EventTimeSourceFromSystemTime)
    event_time = now if from_clock or moment is None else moment
    return Fetched(target, new, event_time, request.shown)


def _request(step: FetchStepUrl, url: Resolved, state: SourceState | None) -> _Request:
    own = {}
    secrets = list(url.secrets)
    for header in step.headers or ():
        value = resolve(header.value, os.environ)
        secrets += value.secrets
        own[header.name] = value.text
    conditional = {}
    if state is not None and state.kind == ETAG:
        conditional["If-None-Match"] = state.value
    elif state is not None and state.kind == LAST_MODIFIED:
        moment = Timestamp.parse(state.value).to_datetime()
        conditional["If-Modified-Since"] = email.utils.format_datetime(moment, usegmt=True)
    return _Request(url.text, step.url, own, conditional, tuple(secrets))


def _with_retries(client: httpx.Client, request: _Request, target: Path) -> httpx.Headers | None:
    import httpx

    wait = _FIRST_WAIT
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return _attempt(client, request, target)
        except (_Again, httpx.TransportError) as error:
            if attempt == _ATTEMPTS:
                raise _unreachable(request, error) from None
        except httpx.InvalidURL as error:
            raise _wrong_url(request, error) from None
        time.sleep(wait)
        wait *= 2
    raise AssertionError("unreachable: the last attempt returns or raises")


def _attempt(client: httpx.Client, request: _Request, target: Path) -> httpx.Headers | None:
    import httpx

    # The bytes are the data: no transport compression, so that what is stored is what is served.
    standard = {"Accept-Encoding": "identity", "User-Agent": f"odfbuild/{__version__}"}
    origin = httpx.URL(request.url)
    url = origin
    for _ in range(_REDIRECTS + 1):
        # Headers of the definition may hold secrets, which another server must not get.
        own = request.own if _same_origin(url, origin) else {}
        headers = {**standard, **request.conditional, **own}
        try:
            stream = client.stream("GET", url, headers=headers)
        except httpx.UnsupportedProtocol as error:
            raise _wrong_url(request, error) from None
        with stream as response:
            status = response.status_code
            if status in _MOVED and "location" in response.headers:
                url = url.join(response.headers["location"])
                if url.scheme not in ("http", "https"):
                    raise _refused(request, f"it redirects to a {url.scheme}: address")
                continue
            if status == 304:
                return None
            if status in _TRY_AGAIN:
                raise _Again(f"the server answered {status} {response.reason_phrase}")
            if status != 200:
                raise _refused(request, f"the server answered {status} {response.reason_phrase}")
            _save(response.iter_raw(_CHUNK), target)
            return response.headers
    raise _refused(request, f"it redirects more than {_REDIRECTS} times")


def _same_origin(one: httpx.URL, other: httpx.URL) -> bool:
    return (one.scheme, one.host, one.port) == (other.scheme, other.host, other.port)


def _save(chunks: Iterable[bytes], target: Path) -> None:
    partial = target.with_suffix(".part")
    with partial.open("wb") as file:
        for chunk in chunks:
            file.write(chunk)
    partial.replace(target)


def _state_of(headers: httpx.Headers) -> tuple[SourceState | None, Timestamp | None]:
    """State, and the time of modification, which counts only where no ETag is given."""
    if "etag" in headers:
        return etag(headers["etag"]), None
    if "last-modified" in headers:
        try:
            moment = email.utils.parsedate_to_datetime(headers["last-modified"])
        except ValueError:
            return None, None
        instant = Timestamp.from_datetime(moment)
        return last_modified(instant), instant
    return None, None


def _unreachable(request: _Request, error: Exception) -> IngestError:
    reason = mask(str(error) or type(error).__name__, request.secrets)
    return IngestError(
        f"cannot fetch {request.shown}: {reason}",
        code="E0406",
        notes=(f"tried {_ATTEMPTS} times",),
        help="check the address and the network, then run `odfbuild apply` again",
    )


def _refused(request: _Request, reason: str) -> IngestError:
    return IngestError(
        f"cannot fetch {request.shown}: {reason}",
        code="E0405",
        help="correct `fetch.url` or `fetch.headers` in the definition",
    )


def _wrong_url(request: _Request, error: Exception) -> IngestError:
    return _refused(request, mask(str(error), request.secrets))
