"""`odfbuild new http` looks at the first page of an API, and `doctor --deep` asks for one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.apply.in_process import Program
from tests.servers.api import Answer, Api, api_server

ORDERS = [{"id": n, "amount": n + 0.5, "updated": f"2026-01-0{n}T00:00:00Z"} for n in (1, 2, 3)]


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with api_server() as running:
        yield running


@pytest.mark.parametrize(
    ("body", "headers", "proposed"),
    [
        (ORDERS, {}, "#api?"),
        (ORDERS, {"Link": '</orders?page=2>; rel="next"'}, "#api?next=@link"),
        (
            {"data": {"items": ORDERS, "tags": [{"a": 1}]}, "links": {"next": "/orders?page=2"}},
            {},
            "#api?records=data.items&next=links.next",
        ),
        (
            {"items": ORDERS, "nextPageToken": "abc"},
            {},
            "#api?records=items&token=nextPageToken&token_parameter=pageToken",
        ),
        ({"items": ORDERS, "next": None}, {}, "#api?records=items"),
    ],
)
def test_records_and_pages_are_proposed_as_the_response_shows_them(
    odfbuild: Program, api: Api, body: Any, headers: dict[str, str], proposed: str
) -> None:
    api.answer = lambda asked: Answer(body, headers=headers)
    url = f"http://127.0.0.1:{api.port}/orders?limit=3"
    text = odfbuild.ok("new", "http", "orders", url, "-n").out
    (line,) = [line.strip() for line in text.splitlines() if "url:" in line]
    assert line in (f"url: {url}{proposed}", f'url: "{url}{proposed}"')
    for part in ("kind: NdJson", "id BIGINT", "kind: Snapshot", "amount DECIMAL(18, 2)"):
        assert part in text


def test_what_is_given_is_kept(odfbuild: Program, api: Api) -> None:
    api.answer = lambda asked: {"a": ORDERS, "b": ORDERS[:1], "next": "/x"}
    given = "records=b&page_parameter=p&cursor=updated&cursor_parameter=since"
    text = odfbuild.ok("new", "http", "orders", api.url("/orders", given), "-n", "--key", "id").out
    assert f"#api?{given}\n" in text.replace('"', "")
    assert "kind: Ledger" in text


def test_other_answers_and_addresses_are_errors(odfbuild: Program, api: Api) -> None:
    api.answer = lambda asked: Answer(b"<html>")
    assert "E0483" in odfbuild("new", "http", "orders", api.url()).err
    assert "E0482" in odfbuild("new", "http", "orders", api.url("/orders", "rec=x")).err
    assert "E0143" in odfbuild("new", "http", "orders", "ftp://host/x").err


def test_doctor_asks_for_a_page(odfbuild: Program, api: Api) -> None:
    api.answer = lambda asked: ORDERS
    odfbuild.ok("new", "http", "orders", api.url())

    def found() -> dict[str, str]:
        said = odfbuild("doctor", "--deep", "--json")
        (check,) = [e for e in json.loads(said.out)["checks"] if e["name"] == "http apis"]
        return check

    assert found()["detail"] == "answered for orders (3 records in a page)"
    api.answer = lambda asked: Answer({}, 404)
    assert found()["status"] == "fail"
