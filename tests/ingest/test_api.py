"""Records of HTTP APIs: paging, logins, limits, cursors; against a real web server."""

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, quote

import pytest

from odfbuild.errors import IngestError, OdfbuildError
from odfbuild.ingest.ask import is_asked
from odfbuild.ingest.check import problems_of
from odfbuild.ingest.fetch import http as http_step
from odfbuild.ingest.fetch.api_pages import next_link
from odfbuild.ingest.resume import has_moved
from odfbuild.odf.model import (
    FetchStepUrl,
    MergeStrategy,
    MergeStrategyAppend,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    ReadStep,
    ReadStepJson,
    ReadStepNdJson,
    RequestHeader,
    SetPollingSource,
)
from tests.ingest.contexts import Poller
from tests.servers.api import Answer, Api, Asked, api_server

MANY = [{"id": each} for each in range(7)]


@pytest.fixture(scope="module")
def started() -> Iterator[Api]:
    with api_server() as running:
        yield running


@pytest.fixture
def api(started: Api, monkeypatch: pytest.MonkeyPatch) -> Api:
    monkeypatch.setattr(http_step, "_FIRST_WAIT", 0.01)
    started.asked.clear()
    return started


def source(root: Path, url: str, **settings: Any) -> Poller:
    headers = settings.pop("headers", None)
    return Poller(root, FetchStepUrl(url=url, headers=headers), **settings)


def rows(found: list[bytes | None]) -> list[dict[str, Any]]:
    (data,) = found
    return [json.loads(line) for line in data.splitlines()]


def ids(found: list[bytes | None]) -> list[int]:
    return [each["id"] for each in rows(found)]


def error_of(polled: Poller) -> OdfbuildError:
    with pytest.raises(OdfbuildError) as caught:
        polled.poll()
    assert caught.value.help
    return caught.value


# --- records ---


def test_records_are_found_below_a_path_and_keep_all_digits(api, tmp_path):
    api.answer = lambda asked: Answer(
        b'{"data": {"items": [\n {"id": 1, "x": 1.10},\n {"id": 12345678901234567890, "x": 1e400}'
        b'], "n": 2}}'
    )
    found = source(tmp_path, api.url("/a?limit=2", "records=data.items")).poll()
    assert found == [b'{"id":1,"x":1.10}\n{"id":12345678901234567890,"x":1e400}\n']
    (asked,) = api.asked
    assert (asked.method, asked.query) == ("GET", {"limit": "2"})


def test_an_array_an_object_and_nothing_are_records_too(api, tmp_path):
    for body, expected in ((MANY, MANY), ({"id": 1}, [{"id": 1}]), ([], []), (None, [])):
        api.answer = lambda asked, body=body: body
        assert rows(source(tmp_path, api.url()).poll()) == expected


@pytest.mark.parametrize(
    ("body", "records", "said"),
    [
        (b"<html>", "", "it is not JSON"),
        (b'{"data": [', "records=data", "it is not JSON"),
        (b'{"date": []}', "records=data", "there is no `data`"),
        (b'{"data": {"x": 1}}', "records=data.items", "there is no `data.items`"),
        (b"[1, 2]", "", "its records are no objects"),
        (b'[{"a": NaN}]', "", "it is not JSON"),
        (b"[" * 100_000, "", "it is not JSON"),
    ],
)
def test_responses_without_records_are_told_with_their_beginning(
    api, tmp_path, body, records, said
):
    api.answer = lambda asked: Answer(body)
    error = error_of(source(tmp_path, api.url("/a", records)))
    assert error.code == "E0483"
    assert said in error.message
    assert error.notes[0].startswith("it begins with: ")


def test_unchanged_records_are_written_once(api, tmp_path):
    api.answer = lambda asked: MANY
    polled = source(tmp_path, api.url())
    assert polled.poll(crash="before") == []
    assert len(rows(polled.poll(crash="after"))) == 7
    assert polled.poll() == []
    api.answer = lambda asked: MANY[:6]
    assert len(rows(polled.poll())) == 6


# --- pages ---


def paged(asked: Asked, size: int = 3) -> tuple[list[dict[str, int]], int]:
    begin = int(asked.query.get("offset", 0))
    return MANY[begin : begin + size], begin + size


def by_address(asked: Asked) -> Any:
    items, end = paged(asked)
    following = f"/orders?offset={end}" if end < len(MANY) else None
    return {"items": items, "paging": {"next": following}}


def by_link(asked: Asked) -> Answer:
    items, end = paged(asked)
    links = f'</orders?offset=0>; rel="first", </orders?offset={end}>; rel="next"'
    return Answer(items, headers={"Link": links} if end < len(MANY) else {})


def by_token(asked: Asked) -> Any:
    begin = int(asked.query.get("after", "t0")[1:])
    end = begin + 3
    return {"items": MANY[begin:end], "meta": {"cursor": f"t{end}" if end < len(MANY) else ""}}


def by_page(asked: Asked) -> Any:
    number = int(asked.query["page"]) - 1
    return {"items": MANY[number * 3 : number * 3 + 3]}


@pytest.mark.parametrize(
    ("answer", "parameters", "requests"),
    [
        (by_address, "records=items&next=paging.next", 3),
        (by_link, "next=@link", 3),
        (by_token, "records=items&token=meta.cursor&token_parameter=after", 3),
        (lambda asked: paged(asked)[0], "offset_parameter=offset", 4),
        (by_page, "records=items&page_parameter=page", 4),
    ],
)
def test_pages_follow_each_other_to_the_end(api, tmp_path, answer, parameters, requests):
    api.answer = answer
    assert ids(source(tmp_path, api.url("/orders?limit=3", parameters)).poll()) == [*range(7)]
    assert len(api.asked) == requests


def test_a_post_has_its_parameters_in_the_body(api, tmp_path):
    def answer(asked: Asked) -> Any:
        body = json.loads(asked.body)
        assert asked.method == "POST"
        assert body["filter"] == {"state": "open"}
        begin = body["page"].get("from", 0)
        return {"hits": MANY[begin : begin + 4]}

    api.answer = answer
    body = quote('{"filter": {"state": "open"}, "page": {"size": 4}}')
    url = api.url("/search", f"records=hits&offset_parameter=page.from&body={body}")
    assert ids(source(tmp_path, url).poll()) == [*range(7)]


@pytest.mark.parametrize(
    ("answer", "parameters", "said"),
    [
        (
            lambda asked: {"items": [{"id": 1}], "next": "/orders"},
            "records=items&next=next",
            "again",
        ),
        (lambda asked: [{"id": 1}], "offset_parameter=offset&max_pages=5", "after that"),
    ],
)
def test_pages_without_an_end_are_refused(api, tmp_path, answer, parameters, said):
    api.answer = answer
    error = error_of(source(tmp_path, api.url("/orders", parameters)))
    assert error.code == "E0484"
    assert error.message.endswith(said)
    assert len(api.asked) <= 5


@pytest.mark.parametrize("address", ["http://localhost:1/x", "file:///etc/passwd", "//evil/x"])
def test_a_page_on_another_server_is_refused(api, tmp_path, address):
    api.answer = lambda asked: {"items": [{"id": 1}], "next": address}
    error = error_of(source(tmp_path, api.url("/orders", "records=items&next=next")))
    assert error.code == "E0484"
    assert "another server" in error.message


def test_links_are_read_as_the_standard_has_them():
    assert next_link('<a>; rel=prev, <b?x=1,2>; title="x"; rel="last next"') == "b?x=1,2"
    assert next_link("<a>; rel=nextish") is None
    assert next_link("") is None


def test_a_run_that_fails_in_the_middle_commits_nothing_and_begins_again(api, tmp_path):
    down = [True]

    def answer(asked: Asked) -> Any:
        if down and asked.query.get("offset") == "3":
            return Answer({"error": "x"}, 500)
        return by_address(asked)

    api.answer = answer
    polled = source(tmp_path, api.url("/orders", "records=items&next=paging.next"), attempts=2)
    assert error_of(polled).code == "E0406"
    assert polled.committed == []
    down.clear()
    assert ids(polled.poll()) == [*range(7)]


def test_too_many_bytes_are_refused(api, tmp_path):
    api.answer = lambda asked: MANY
    assert error_of(source(tmp_path, api.url(), max_bytes=10)).code == "E0409"


# --- limits of requests ---


def test_a_server_that_is_busy_is_asked_again_when_it_says(api, tmp_path):
    answers = [
        Answer("busy", 429, {"Retry-After": "0"}),
        Answer("busy", 403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "0"}),
        Answer("busy", 503, {"Retry-After": "0"}),
    ]
    api.answer = lambda asked: answers.pop() if answers else MANY
    assert ids(source(tmp_path, api.url()).poll()) == [*range(7)]
    assert len(api.asked) == 4


def test_a_limit_that_is_used_up_is_waited_for(api, tmp_path, monkeypatch):
    paused = []
    sleep = time.sleep  # threads of other tests may use it

    def pause(seconds):
        return paused.append(seconds) if seconds > 10 else sleep(seconds)

    monkeypatch.setattr(time, "sleep", pause)
    limits = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time()) + 30)}
    api.answer = lambda asked: Answer(by_address(asked), headers=limits)
    source(tmp_path, api.url("/orders", "records=items&next=paging.next")).poll()
    assert len(paused) == 2
    assert all(20 < each <= 30 for each in paused)


# --- logins ---


class Guarded:
    """Gives a token for client credentials, which is accepted some times."""

    def __init__(self, uses: int = 100) -> None:
        self.uses = uses
        self.left = 0
        self.given = 0

    def __call__(self, asked: Asked) -> Any:
        if asked.path == "/token":
            pair = base64.b64decode(asked.headers["authorization"].split()[1]).decode()
            form = parse_qs(asked.body.decode())
            assert form["grant_type"] == ["client_credentials"]
            if pair != "me:s3cret%2Fwith%26signs" or form["scope"] != ["read all"]:
                return Answer({"error": "invalid_client"}, 401)
            self.given += 1
            self.left = self.uses
            return {"access_token": f"token-number-{self.given}", "token_type": "bearer"}
        if self.left == 0 or asked.headers["authorization"] != f"Bearer token-number-{self.given}":
            return Answer({}, 401)
        self.left -= 1
        return by_address(asked)


def guarded_url(api: Api) -> str:
    token = f"http://127.0.0.1:{api.port}/token"
    return api.url(
        "/orders",
        f"records=items&next=paging.next&token_url={token}&client_id=me"
        "&client_secret=${{ env.API_SECRET }}&scope=read+all",
    )


@pytest.mark.parametrize("uses", [100, 1])
def test_a_token_is_asked_for_once_and_again_when_it_expires(api, tmp_path, monkeypatch, uses):
    monkeypatch.setenv("API_SECRET", "s3cret/with&signs")
    api.answer = guarded = Guarded(uses)
    polled = source(tmp_path, guarded_url(api))
    assert ids(polled.poll()) == [*range(7)]
    assert guarded.given == (1 if uses == 100 else 3)
    assert "s3cret" not in polled.state.value


def test_a_login_that_is_refused_is_told_without_its_secret(api, tmp_path, monkeypatch):
    monkeypatch.setenv("API_SECRET", "wrong-s3cret")
    api.answer = Guarded()
    error = error_of(source(tmp_path, guarded_url(api)))
    assert error.code == "E0485"
    assert "s3cret" not in f"{error.message}{error.notes}{error.help}"
    monkeypatch.setenv("API_SECRET", "s3cret/with&signs")
    api.answer = Guarded(0)
    error = error_of(source(tmp_path, guarded_url(api)))
    assert error.code == "E0405"
    api.answer = lambda asked: {"token": "x"}
    assert error_of(source(tmp_path, guarded_url(api))).code == "E0485"


def test_headers_of_the_definition_are_sent_with_each_page(api, tmp_path, monkeypatch):
    monkeypatch.setenv("API_KEY", "key-of-the-api")
    api.answer = by_address
    header = RequestHeader(name="X-Key", value="${{ env.API_KEY }}")
    source(tmp_path, api.url("/orders", "records=items&next=paging.next"), headers=(header,)).poll()
    assert [each.headers["x-key"] for each in api.asked] == ["key-of-the-api"] * 3


# --- cursors ---


class Changes:
    """Records with the time of their last change, of which a server gives those since a time."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []

    def put(self, number: int, minute: int) -> None:
        at = f"2026-01-01T12:{minute:02}:00Z"
        self.records = [each for each in self.records if each["id"] != number]
        self.records.append({"id": number, "meta": {"at": at}})

    def __call__(self, asked: Asked) -> Any:
        since = asked.query.get("since", "")
        return [each for each in self.records if each["meta"]["at"] >= since]


CURSOR = "cursor=meta.at&cursor_parameter=since"


def test_a_cursor_asks_for_what_is_new_and_loses_nothing(api, tmp_path):
    api.answer = changes = Changes()
    polled = source(tmp_path, api.url("/orders", CURSOR))
    assert polled.poll() == []
    changes.put(1, 1)
    changes.put(2, 2)
    assert polled.poll(crash="before") == []
    assert ids(polled.poll(crash="after")) == [1, 2]
    assert polled.state.value.startswith("2026-01-01T12:02:00Z f1220")
    assert polled.poll() == []
    changes.put(3, 2)  # of the same minute, written later
    assert ids(polled.poll()) == [2, 3]
    assert polled.poll() == []
    changes.put(1, 5)
    assert ids(polled.poll()) == [2, 3, 1]
    assert polled.poll() == []
    assert api.asked[-1].query == {"since": "2026-01-01T12:05:00Z"}


def test_a_server_that_gives_later_records_only_is_understood(api, tmp_path):
    records = [{"id": 1, "n": 10}]
    api.answer = lambda asked: [e for e in records if e["n"] > int(asked.query.get("since", 0))]
    polled = source(tmp_path, api.url("/orders", "cursor=n&cursor_parameter=since"))
    assert ids(polled.poll()) == [1]
    assert polled.poll() == []
    records.append({"id": 2, "n": 9})
    records.append({"id": 3, "n": 100})
    assert ids(polled.poll()) == [3]
    assert polled.state.value.startswith("100 ")


@pytest.mark.parametrize("value", [None, "yesterday", "2026-01-01 12:00:00", True, [1], 1.5])
def test_values_that_cannot_be_compared_are_refused(api, tmp_path, value):
    api.answer = lambda asked: [{"id": 1, "at": 5}, {"id": 2, "at": value}]
    error = error_of(source(tmp_path, api.url("/a", "cursor=at&cursor_parameter=since")))
    assert error.code == "E0487"
    assert '"id":2' in error.notes[0]


# --- definitions ---


def problems(
    url: str, merge: MergeStrategy | None = None, read: ReadStep | None = None
) -> list[IngestError]:
    event = SetPollingSource(
        fetch=FetchStepUrl(url=url),
        read=read or ReadStepNdJson(),
        merge=merge or MergeStrategyLedger(primary_key=("id",)),
    )
    return [error for _, error in problems_of(event)]


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ("record=data", "'record' is no parameter"),
        ("records=a..b", "`records` is 'a..b'"),
        ("records=", "its 'records' is empty"),
        ("records=a&records=b", "it has 'records' twice"),
        ("next=a&token=b&token_parameter=c", "it has `next` and `token`"),
        ("token=b", "`token` and `token_parameter` belong together"),
        ("cursor=b", "`cursor` and `cursor_parameter` belong together"),
        ("first_page=0", "`first_page` is for `page_parameter`"),
        ("max_pages=0", "`max_pages` is '0'"),
        ("method=PUT", "`method` is PUT"),
        ("method=GET&body={}", "`method` is GET"),
        ("body=[1]", "its `body` is no JSON object"),
        ("client_id=x", "its login lacks `token_url`"),
        ("token_url=ftp://x&client_id=x&client_secret=y", "`token_url` is no address"),
    ],
)
def test_wrong_addresses_are_found_before_anything_is_fetched(parameters, said):
    (error,) = problems(f"https://host/orders#api?{parameters}")
    assert error.code == "E0482"
    assert said in error.message
    assert error.help


def test_an_address_with_variables_is_checked_too():
    secret = "token_url=https://x/t&client_id=${{ env.ID }}&client_secret=${{ env.S || 'x' }}"
    assert problems(f"https://${{{{ env.HOST }}}}/orders#api?{secret}") == []
    (error,) = problems("https://${{ env.HOST }}/orders#api?recods=x")
    assert error.code == "E0482"
    assert problems("https://host/page.csv#section", read=ReadStepNdJson()) == []


def test_what_does_not_fit_is_refused():
    (error,) = problems("https://host/orders#api?records=x", read=ReadStepJson())
    assert error.code == "E0486"
    for merge in (MergeStrategySnapshot(primary_key=("id",)), MergeStrategyAppend()):
        (error,) = problems(f"https://host/orders#api?{CURSOR}", merge)
        assert error.code == "E0487"
    assert problems("https://host/orders#api?records=x", MergeStrategyAppend()) == []


def test_plans_do_not_ask_and_another_login_keeps_the_position():
    step = FetchStepUrl(url="https://host/orders#api?records=x")
    assert not is_asked(step)
    before = SetPollingSource(fetch=step, read=ReadStepNdJson(), merge=MergeStrategyAppend())
    projection: Any = SimpleNamespace(polling_source=before)
    login = "&token_url=https://x/t&client_id=a&client_secret=b&max_pages=7"
    assert not has_moved(FetchStepUrl(url=f"{step.url}{login}"), projection)
    assert has_moved(FetchStepUrl(url=f"{step.url}&next=n"), projection)
