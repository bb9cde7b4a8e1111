"""Data of a web server: conditional requests, redirects, retries, downloads that go on.

Source: RFC 9110 (conditional and range requests, `Retry-After`); reference behaviour, fetch steps.
"""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from odfbuild.errors import Code, IngestError
from odfbuild.ingest.fetch.context import FetchContext
from odfbuild.ingest.fetch.download_cache import KeptDownload, ResponseValidators
from odfbuild.ingest.fetch.event_time import event_time_of
from odfbuild.ingest.fetch.headers import resolved_header
from odfbuild.ingest.fetch.result import ETAG, LAST_MODIFIED, Fetched, etag, last_modified
from odfbuild.ingest.secrets import library_words, scrub
from odfbuild.odf.model import FetchStepUrl, SourceState
from odfbuild.odf.timestamp import Timestamp
from odfbuild.version import __version__

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

_REDIRECTS = 10
_FIRST_WAIT = 0.5
_LONGEST_WAIT = 120.0
_MOVED = (301, 302, 303, 307, 308)
_MOVED_AS_IT_IS = (307, 308)
_TRY_AGAIN = (408, 425, 429, 500, 502, 503, 504)
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked. `shown` is the URL as messages may show it; `own` headers may be secret.

    `templates` are texts of the definition that values were filled into.
    """

    url: str
    shown: str
    own: dict[bytes, bytes]
    state: SourceState | None
    moved: bool
    templates: tuple[str, ...]

    def at(self, url: str, own: dict[bytes, bytes]) -> Request:
        """The same request at another address, with other headers."""
        return replace(self, url=url, own=own)

    def words(self, error: Exception) -> str:
        """What the library says about what was asked, unless it may repeat secrets."""
        return library_words(error, *self.templates)


class Again(Exception):
    """The request may succeed when it is repeated, after `wait` seconds if the server says so."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


def fetch_http(
    step: FetchStepUrl, url: str, state: SourceState | None, context: FetchContext
) -> Iterator[Fetched]:
    """Yield the data if it changed since `state`. Raises `IngestError`."""
    import httpx

    settings = context.settings
    request = request_of(step, url, state, moved=context.moved)
    kept = KeptDownload(context, url)
    if state is not None and state_of(kept.about) == state:
        kept.forget()  # it was committed by a run that ended right then
    timeout = httpx.Timeout(settings.idle_seconds, connect=settings.connect_seconds)
    with httpx.Client(timeout=timeout, follow_redirects=False) as client:
        changed = retried(
            partial(_attempt, client, request, kept),
            request,
            settings.attempts,
            kept.remaining_seconds,
            lambda: kept.size,
        )
    if changed:
        new = state_of(kept.about)
        modified = _modified(kept.about)
        event_time = event_time_of(
            step.event_time,
            modified=modified,
            default=None if kept.about.etag else modified,  # as the reference has it
            now=context.now,
            name=request.shown,
        )
        yield kept.fetched(new, event_time, request.shown)
    # Only reached once what was yielded is committed.
    kept.forget()


def request_of(
    step: FetchStepUrl, url: str, state: SourceState | None, *, moved: bool = False
) -> Request:
    """The request of a fetch step; raises `IngestError` where a header cannot be filled in."""
    headers = step.headers or ()
    own = dict(resolved_header(header) for header in headers)
    templates = (step.url, *(header.value for header in headers))
    return Request(url, step.url, own, state, moved, templates)


def retried(
    begin: Callable[[], T],
    request: Request,
    attempts: int,
    remaining_seconds: Callable[[], float],
    size: Callable[[], int] = lambda: 0,
) -> T:
    """What `begin` gives, which is called again while that may help, and there is time.

    `size` counts the bytes that have arrived and are kept. Raises `IngestError`.
    """
    import httpx

    wait = _FIRST_WAIT
    for attempt in range(1, attempts + 1):
        try:
            return begin()
        except (httpx.InvalidURL, UnicodeError) as error:  # no host can be called so
            raise _refused(request, request.words(error)) from None
        except httpx.TransportError as error:
            if "CERTIFICATE" in str(error).upper() or "SSL" in str(error).upper():
                raise _not_trusted(request, error) from None
            reason = str(error) or type(error).__name__
            if isinstance(error, httpx.ProtocolError | httpx.UnsupportedProtocol):
                reason = request.words(error)
            pause = wait
        except Again as error:
            reason = str(error)
            pause = wait if error.wait is None else error.wait
        if attempt == attempts or pause > min(_LONGEST_WAIT, remaining_seconds()):
            raise _unreachable(request, reason, attempt, pause, size())
        time.sleep(pause)
        wait *= 2
    raise AssertionError("unreachable: the last attempt returns or raises")


def _attempt(client: httpx.Client, request: Request, kept: KeptDownload) -> bool:
    """Whether there is news, and if so all of it is in `kept.data`."""
    with answered(client, "GET", request, _conditions(request, kept)) as response:
        return _take(response, request, kept)


@contextmanager
def answered(
    client: httpx.Client,
    method: str,
    request: Request,
    conditions: Mapping[str, str],
    content: bytes | None = None,
) -> Iterator[httpx.Response]:
    """The response to a request, behind its redirects, before its body is read."""
    import httpx

    # The bytes are the data: no transport compression, so that what is stored is what is served.
    standard = {"Accept-Encoding": "identity", "User-Agent": f"odfbuild/{__version__}"}
    standard |= conditions
    try:
        origin = url = httpx.URL(request.url)
        for _ in range(_REDIRECTS + 1):
            # Headers of the definition may hold secrets, which another server must not get.
            headers = {name.encode(): value.encode() for name, value in standard.items()}
            headers |= request.own if _same_origin(url, origin) else {}
            with client.stream(method, url, headers=headers, content=content) as response:
                if response.status_code in _MOVED and "location" in response.headers:
                    if method == "POST" and response.status_code not in _MOVED_AS_IT_IS:
                        raise _refused(request, "it redirects a POST, of which the body gets lost")
                    url = url.join(response.headers["location"])
                    if url.scheme not in ("http", "https"):
                        raise _refused(request, f"it redirects to a {url.scheme}: address")
                    continue
                yield response
                return
    except httpx.UnsupportedProtocol as error:
        raise _refused(request, request.words(error)) from None
    raise _refused(request, f"it redirects more than {_REDIRECTS} times")


def _conditions(request: Request, kept: KeptDownload) -> dict[str, str]:
    """Headers by which the server may answer with less than everything."""
    headers = {}
    if kept.is_complete:
        if kept.about.etag:
            headers["If-None-Match"] = kept.about.etag
        else:
            headers["If-Modified-Since"] = str(kept.about.last_modified)
        return headers
    # At a new address an old time of modification proves nothing.
    if request.state is not None and not (request.moved and request.state.kind == LAST_MODIFIED):
        headers |= unless(request.state)
    if kept.size:
        headers["Range"] = f"bytes={kept.size}-"
        headers["If-Range"] = str(kept.about.etag or kept.about.last_modified)
    return headers


def unless(state: SourceState) -> dict[str, str]:
    """The header by which a server answers 304 where its data still has that state."""
    if state.kind == ETAG:
        return {"If-None-Match": state.value}
    if state.kind != LAST_MODIFIED:
        return {}
    moment = Timestamp.parse(state.value).to_datetime()
    return {"If-Modified-Since": email.utils.format_datetime(moment, usegmt=True)}


_CONDITIONS = {"if-none-match", "if-modified-since"}


def _take(response: httpx.Response, request: Request, kept: KeptDownload) -> bool:
    status = response.status_code
    if status == 304:
        if not _CONDITIONS & set(response.request.headers):
            raise _refused(request, "the server answered 304 where no version was known to it")
        return kept.is_complete
    if status == 416:
        kept.forget()
        raise Again("the server does not go on with a download that was interrupted", 0)
    if status not in (200, 206):
        check_status(response, request)
    if status == 206 and not kept.size:
        raise _refused(request, "the server answered 206, a part, where all was asked for")
    if status == 206:
        found = _RANGE.fullmatch(response.headers.get("content-range", ""))
        if found is None or int(found.group(1)) != kept.size:
            kept.forget()
            raise Again("the server sent another part of the data than was asked for", 0)
    else:
        about = validators_of(response.headers)
        new = state_of(about)
        if new is not None and new == request.state:
            return False
        kept.begin(about)
    # As it comes: bytes that wait for a full piece would be lost when the connection breaks.
    kept.write(response.iter_raw(), request.shown)
    kept.finish()
    return True


def check_status(response: httpx.Response, request: Request) -> None:
    """Raise `Again`, or `IngestError` E0405, unless a response is what was asked for."""
    status = response.status_code
    if status == 200:
        return
    said = f"the server answered {status} {response.reason_phrase}".rstrip()
    if status in _TRY_AGAIN:
        raise Again(said, _retry_after(response.headers.get("retry-after")))
    raise _refused(request, said)


def validators_of(headers: httpx.Headers) -> ResponseValidators:
    """What the headers of a response say of the version of its data."""
    tag, modified = headers.get("etag"), headers.get("last-modified")
    length = headers.get("content-length", "")
    return ResponseValidators(
        etag=tag,
        last_modified=modified,
        total=int(length) if length.isdecimal() else None,
        resumable=_is_strong(tag, modified, headers.get("date")),
    )


def _is_strong(tag: str | None, modified: str | None, date: str | None) -> bool:
    """Whether a validator tells apart every two versions (RFC 9110, 8.8.2.2 and 13.1.5)."""
    if tag is not None:
        return not tag.startswith("W/")
    try:
        age = email.utils.parsedate_to_datetime(str(date)) - email.utils.parsedate_to_datetime(
            str(modified)
        )
    except (ValueError, TypeError):
        return False
    return age >= timedelta(seconds=1)


def state_of(about: ResponseValidators) -> SourceState | None:
    """What tells this version from others, best first."""
    if about.etag is not None:
        return etag(about.etag)
    moment = _modified(about)
    return None if moment is None else last_modified(moment)


def _modified(about: ResponseValidators) -> Timestamp | None:
    """`Last-Modified`, if it is there and a date."""
    if about.last_modified is None:
        return None
    try:
        return Timestamp.from_datetime(email.utils.parsedate_to_datetime(about.last_modified))
    except (ValueError, TypeError):
        return None


def _retry_after(value: str | None) -> float | None:
    """Seconds that the server asks to wait."""
    if value is None:
        return None
    if value.strip().isdecimal():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


def _same_origin(one: httpx.URL, other: httpx.URL) -> bool:
    return (one.scheme, one.host, one.port) == (other.scheme, other.host, other.port)


def _unreachable(
    request: Request, reason: str, attempts: int, pause: float, size: int
) -> IngestError:
    notes = [f"tried {attempts} times" if attempts > 1 else "tried once"]
    if pause > _LONGEST_WAIT:
        notes.append(f"the server asks to wait {pause:.0f} seconds")
    if size:
        notes.append(f"{size:,} bytes have arrived and are kept; the next run goes on from there")
    return IngestError(
        scrub(f"cannot fetch {request.shown}: {reason}"),
        code=Code.SERVER_UNREACHABLE,
        notes=tuple(notes),
        help="check the address and the network, then run `odfbuild apply` again",
    )


def _not_trusted(request: Request, error: Exception) -> IngestError:
    return IngestError(
        scrub(f"cannot fetch {request.shown}: its certificate is not trusted: {error}"),
        code="E0405",
        help="correct the address, or name the authority's certificates in the environment "
        "variable SSL_CERT_FILE",
    )


def _refused(request: Request, reason: str) -> IngestError:
    return IngestError(
        scrub(f"cannot fetch {request.shown}: {reason}"),
        code="E0405",
        help="correct `fetch.url` or `fetch.headers` in the definition",
    )
