"""Records of an HTTP API: page by page, in one file of NDJSON.

Without a cursor all records are read, and a digest of them is the state. With one, the server is
asked for those since the largest value so far; the state is that value, and a digest of the records
that have it, because these come again.
Source: RFC 9110 (`Retry-After`), RFC 6749, 4.4 (client credentials), RFC 6750 (bearer tokens).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from io import BytesIO
from typing import IO, TYPE_CHECKING, Any

from odfbuild.errors import InDefinition, IngestError
from odfbuild.ingest.fetch.api_address import (
    ApiWanted,
    Login,
    api_named,
    api_wanted,
    check_api_merge,
)
from odfbuild.ingest.fetch.api_pages import Position, Turn, is_later, newest, records_of, turn_of
from odfbuild.ingest.fetch.context import FetchContext
from odfbuild.ingest.fetch.download_cache import check_deadline, check_size
from odfbuild.ingest.fetch.event_time import event_time_of
from odfbuild.ingest.fetch.http import Again, Request, answered, check_status, request_of, retried
from odfbuild.ingest.fetch.result import ETAG, Fetched, etag
from odfbuild.ingest.secrets import remember, scrub
from odfbuild.ingest.settings import IngestSettings
from odfbuild.limits import API_PAGE_BYTES
from odfbuild.odf.model import FetchStepUrl, SourceState
from odfbuild.odf.multihash import SHA2_256, Multihash

if TYPE_CHECKING:
    import httpx

_LONGEST_PAUSE = 120.0
_EPOCH_SECONDS = 1_000_000_000
"""Larger numbers of a reset are times since 1970, smaller ones are seconds to wait."""


def fetch_api(
    step: FetchStepUrl, url: str, state: SourceState | None, context: FetchContext
) -> Iterator[Fetched]:
    """Yield the records that are new, as NDJSON. Raises `OdfbuildError`."""
    asked, shown = api_wanted(url, step.url), api_named(step.url)
    if context.merge is not None:
        check_api_merge(asked, context.merge, step.url)
    known = None if context.moved or state is None or state.kind != ETAG else state.value
    target = context.scratch / "records.ndjson"
    with _client(context.settings) as client, target.open("wb") as sink:
        request = replace(request_of(step, asked.url, None), shown=shown)
        reading = _Reading(client, asked, request, shown, context.settings, sink)
        new = reading.all(known) if not asked.cursor else reading.news(known)
    if new is not None:
        event_time = event_time_of(
            step.event_time, modified=None, default=None, now=context.now, name=shown
        )
        yield Fetched(target, etag(new), event_time, shown)


def first_page(
    step: FetchStepUrl, asked: ApiWanted, shown: str, settings: IngestSettings
) -> tuple[bytes, httpx.Headers]:
    """The first response of what is asked. Raises `OdfbuildError`."""
    with _client(settings) as client:
        request = replace(request_of(step, asked.url, None), shown=shown)
        return _Reading(client, asked, request, shown, settings, BytesIO()).page(None, None)


def _client(settings: IngestSettings) -> httpx.Client:
    import httpx

    timeout = httpx.Timeout(settings.idle_seconds, connect=settings.connect_seconds)
    return httpx.Client(timeout=timeout, follow_redirects=False)


class _Reading:
    """What is read in one run."""

    def __init__(
        self,
        client: httpx.Client,
        asked: ApiWanted,
        request: Request,
        shown: str,
        settings: IngestSettings,
        sink: IO[bytes],
    ) -> None:
        self._client = client
        self._asked = asked
        self._request = request
        self._shown = shown
        self._settings = settings
        self._sink = sink
        self._deadline = time.monotonic() + settings.total_seconds
        self._token: str | None = None
        self._token_did = False
        """Whether the server has accepted the token before."""

    def all(self, known: str | None) -> str | None:
        """Write all records; returns the new state, `None` where it is the known one."""
        digest = hashlib.sha256()
        for records in self._pages(None):
            for record in records:
                digest.update(record + b"\n")
        found = str(Multihash.of(SHA2_256, digest.digest()))
        return None if found == known else found

    def news(self, known: str | None) -> str | None:
        """Write the records since the position `known`; returns the new one, `None`: no news."""
        text, _, digest = (known or "").partition(" ")
        last = Position(text, digest) if known else None
        best: str | None = None
        having: list[bytes] = []
        for records in self._pages(last.text if last else None):
            found = newest(records, self._asked, self._shown)
            if found is None:
                continue
            if best is None or is_later(found[0], best):
                best, having = found[0], []
            if found[0] == best:
                having += found[1]
        if best is None:
            return None
        if last is not None and not is_later(best, last.text):
            best = last.text
        bytes_ = hashlib.sha256(b"\n".join(sorted(set(having)))).digest()
        new = f"{best} {Multihash.of(SHA2_256, bytes_)}"
        return None if new == known else new

    def _pages(self, since: str | None) -> Iterator[list[bytes]]:
        """The records of each page, which are written."""
        turn: Turn | None = None
        seen: set[Turn] = set()
        pages = count = size = 0
        while True:
            body, headers = self.page(turn, since)
            records = records_of(body, self._asked, self._shown)
            for record in records:
                self._sink.write(record + b"\n")
                size += len(record) + 1
            check_size(size, self._settings.max_bytes, self._shown)
            yield records
            pages += 1
            count += len(records)
            turn = turn_of(body, headers, self._asked, pages, count, len(records), self._shown)
            if turn is None:
                return
            if turn in seen or pages >= self._asked.max_pages:
                raise self._endless(pages, "again" if turn in seen else "after that")
            seen.add(turn)
            self._pause(headers)

    def page(self, turn: Turn | None, since: str | None) -> tuple[bytes, httpx.Headers]:
        """A response, and what its headers say."""
        return retried(
            partial(self._answer, turn, since),
            self._request,
            self._settings.attempts,
            lambda: self._deadline - time.monotonic(),
        )

    def _answer(self, turn: Turn | None, since: str | None) -> tuple[bytes, httpx.Headers]:
        request, content = self._asked_for(turn, since)
        method = "POST" if self._asked.is_post else "GET"
        headers = {"Accept": "application/json"}
        if content is not None:
            headers["Content-Type"] = "application/json"
        with answered(self._client, method, request, headers, content) as response:
            if response.status_code == 401 and self._token_did:
                self._token, self._token_did = None, False
                raise Again("the token has expired", 0)
            if response.status_code in (403, 429) and _is_used_up(response.headers):
                raise Again("the limit of requests is reached", _until_reset(response.headers))
            check_status(response, request)
            self._token_did = self._token is not None
            return self._body(response), response.headers

    def _body(self, response: httpx.Response) -> bytes:
        body = bytearray()
        for chunk in response.iter_bytes():
            body += chunk
            check_size(len(body), API_PAGE_BYTES, f"a page of {self._shown}")
            check_deadline(self._deadline, self._settings.total_seconds, self._shown)
        return bytes(body)

    def _asked_for(self, turn: Turn | None, since: str | None) -> tuple[Request, bytes | None]:
        import httpx

        asked, own = self._asked, dict(self._request.own)
        if asked.login is not None:
            own[b"Authorization"] = f"Bearer {self._access(asked.login)}".encode()
        values: dict[str, str | int] = {}
        if since is not None:
            values[asked.cursor_parameter] = since
        if asked.counter == "page":
            values[asked.parameter] = asked.first_page
        if turn is not None and turn.value is not None:
            values[asked.parameter] = turn.value
        url = httpx.URL(asked.url)
        if turn is not None and turn.url is not None:
            url, values = self._followed(url, turn.url), {}
        if not asked.is_post:
            url = url.copy_merge_params(values) if values else url
            return self._request.at(str(url), own), None
        return self._request.at(str(url), own), _with_members(asked.body or "{}", values)

    def _followed(self, url: httpx.URL, address: str) -> httpx.URL:
        import httpx

        try:
            found = url.join(address)
        except (httpx.InvalidURL, UnicodeError):
            found = httpx.URL("")
        if (found.scheme, found.host, found.port) != (url.scheme, url.host, url.port):
            raise IngestError(
                f"the next page of {self._shown} is on another server",
                code="E0484",
                notes=(f"its address is {scrub(address)[:200]}",),
                help="headers and tokens are for one server only: correct `next`, or read the "
                "pages by a number of them",
            )
        return found

    def _access(self, login: Login) -> str:
        """The token, which is asked for once in a run, and again when it has expired."""
        if self._token is None:
            request = Request(
                login.url, api_named(self._shown), {}, None, False, self._request.templates
            )
            self._token = retried(
                partial(_token_of, self._client, request, login),
                request,
                self._settings.attempts,
                lambda: self._deadline - time.monotonic(),
            )
        return self._token

    def _pause(self, headers: httpx.Headers) -> None:
        """Wait as long as a server asks for whose limit of requests is reached."""
        if _is_used_up(headers):
            time.sleep(min(_until_reset(headers) or 0, _LONGEST_PAUSE))

    def _endless(self, pages: int, what: str) -> IngestError:
        return IngestError(
            f"the pages of {self._shown} do not end: the one after {pages} comes {what}",
            code="E0484",
            location=InDefinition.of("fetch", "url"),
            help="correct how pages follow each other behind `#api?`; if there are so many, raise "
            "`max_pages` there",
        )


def _token_of(client: httpx.Client, request: Request, login: Login) -> str:
    import base64
    import json
    from urllib.parse import quote_plus, urlencode

    pair = f"{quote_plus(login.client_id)}:{quote_plus(login.client_secret)}"
    form = {"grant_type": "client_credentials"} | ({"scope": login.scope} if login.scope else {})
    headers = {
        "Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}",
        "Content-Type": "application/x-www-form-urlencoded",
        "Accept": "application/json",
    }
    remember(login.client_secret)
    remember(headers["Authorization"].partition(" ")[2])
    with answered(client, "POST", request, headers, urlencode(form).encode()) as response:
        if response.status_code in (400, 401, 403):
            said = f"{response.status_code} {response.reason_phrase}".rstrip()
            raise _no_token(request, f"the server answered {said}")
        check_status(response, request)
        body = response.read()[:API_PAGE_BYTES]
    try:
        found: Any = json.loads(body)
        token = found["access_token"]
    except (ValueError, KeyError, TypeError, RecursionError):
        token = None
    if not isinstance(token, str) or not token.isascii() or not token.isprintable():
        raise _no_token(request, "the response has no `access_token`")
    remember(token)
    return token


def _no_token(request: Request, why: str) -> IngestError:
    return IngestError(
        scrub(f"no token for {request.shown}: {why}"),
        code="E0485",
        help="correct `token_url`, `client_id`, `client_secret` or `scope` behind `#api?`, or the "
        "environment variables in them",
    )


def _with_members(body: str, values: dict[str, str | int]) -> bytes:
    import json

    try:
        members = json.loads(body)
    except ValueError:
        members = None
    if not isinstance(members, dict):
        raise IngestError(
            "the `body` behind `#api?` is no JSON object once its variables are filled in",
            code="E0482",
            help="correct `body`, or the environment variable in it",
        )
    for name, value in values.items():
        place = members
        *outer, last = name.split(".")
        for each in outer:
            place = place.setdefault(each, {})
        place[last] = value
    return json.dumps(members, ensure_ascii=False).encode()


def _is_used_up(headers: httpx.Headers) -> bool:
    left = headers.get("x-ratelimit-remaining", headers.get("ratelimit-remaining", ""))
    return bool(left.strip() == "0")


def _until_reset(headers: httpx.Headers) -> float | None:
    """Seconds until the server takes requests again; `None`: it does not tell."""
    given = headers.get(
        "retry-after", headers.get("x-ratelimit-reset", headers.get("ratelimit-reset", ""))
    ).strip()
    if not given.isdecimal() or len(given) > 12:
        return None
    number = float(given)
    return max(0.0, number - time.time()) if number >= _EPOCH_SECONDS else number
