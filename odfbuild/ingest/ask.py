"""Ask web servers whether their data changed, without fetching it.

Each gets one conditional request by HEAD, with what the chain says was read of it last; where a
server does not answer HEAD, by GET, of which the body is not read. Whatever a server answers, the
others are asked. Source: RFC 9110, 9.3.2 (HEAD) and 13.1 (conditional requests).
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeGuard

from odfbuild.errors import IngestError
from odfbuild.ingest.facts import SourceFacts
from odfbuild.ingest.fetch.api_address import is_api
from odfbuild.ingest.fetch.http import (
    Request,
    answered,
    request_of,
    state_of,
    unless,
    validators_of,
)
from odfbuild.ingest.secrets import remember_password, resolve_address, scrub
from odfbuild.ingest.settings import IngestSettings
from odfbuild.odf.model import FetchStep, FetchStepUrl, SourceState
from odfbuild.values import Value

if TYPE_CHECKING:
    import httpx

_AT_ONCE = 8
_SECONDS = 10.0
"""How long a server may keep a plan waiting: for the connection, and for the answer."""
_NO_HEAD = (400, 403, 404, 405, 501)
"""What servers answer that know the address, but not HEAD; signed addresses are for GET only."""


class Question(Value):
    """A source that was read before, and the state in which it was."""

    step: FetchStepUrl
    state: SourceState


def is_asked(step: FetchStep) -> TypeGuard[FetchStepUrl]:
    """Whether a fetch step reads from a web server, as far as its text tells."""
    if not isinstance(step, FetchStepUrl) or is_api(step.url):
        return False
    return step.url.lower().startswith(("http://", "https://", "${{"))


def ask_servers(
    questions: Mapping[str, Question], settings: IngestSettings
) -> dict[str, SourceFacts]:
    """What servers say of the sources of these datasets; several are asked at once."""
    if not questions:
        return {}
    import httpx

    wait = httpx.Timeout(_SECONDS, connect=min(_SECONDS, settings.connect_seconds))
    with (
        httpx.Client(timeout=wait, follow_redirects=False) as client,
        ThreadPoolExecutor(_AT_ONCE) as pool,
    ):
        found = pool.map(lambda each: _ask(client, each), questions.values())
        return dict(zip(questions, found, strict=True))


def _ask(client: httpx.Client, question: Question) -> SourceFacts:
    import httpx

    shown = question.step.url
    try:
        url = resolve_address(shown)
        if not url.lower().startswith(("http://", "https://")):
            return SourceFacts("unknown", message="the address is checked for changes at apply")
        remember_password(url)
        request = request_of(question.step, url, question.state)
        facts = _answer(client, "HEAD", request, question.state)
        if facts is None:
            facts = _answer(client, "GET", request, question.state)
    except IngestError as error:
        return _unanswered(shown, error.message)
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
        return _unanswered(shown, request.words(error))
    if facts is None:
        raise AssertionError("every answer to GET tells something")
    return facts


def _answer(
    client: httpx.Client, method: str, request: Request, state: SourceState
) -> SourceFacts | None:
    """What the server says; `None` when it may answer another method."""
    with answered(client, method, request, unless(state)) as response:
        status = response.status_code
        if status == 304:
            return SourceFacts("unchanged", message=f"{request.shown} has not changed (304)")
        if method == "HEAD" and status in _NO_HEAD:
            return None
        if status != 200:
            said = f"the server answered {status} {response.reason_phrase}".rstrip()
            return _unanswered(request.shown, said)
        new = state_of(validators_of(response.headers))
        if new is None or new.kind != state.kind:
            why = "the server does not say which version it has"
            return _unanswered(request.shown, why)
        if new == state:
            return SourceFacts("unchanged", message=f"{request.shown} has the same version")
        return SourceFacts("news", message=scrub(f"{request.shown} has a new version"))


def _unanswered(shown: str, why: str) -> SourceFacts:
    return SourceFacts("unanswered", message=scrub(f"{shown} could not be compared: {why}"))
