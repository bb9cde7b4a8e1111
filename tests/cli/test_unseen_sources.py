"""Sources that plan cannot see: one line in every form, and what `plan --refresh` asks of servers.

The web server is real and listens on loopback. Chains are written without Spark.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from odfbuild.ingest.fetch.result import etag, last_modified
from odfbuild.odf.timestamp import Timestamp
from tests.apply.in_process import Program
from tests.cli.read_roots import build
from tests.project.write_project import derived_yaml, root_yaml, write_project
from tests.report.golden import assert_golden
from tests.servers.faulty import Faulty, faulty_server, response

QUERY = "SELECT event_time, id, name FROM src"
READ = 'W/"1"'
MODIFIED = Timestamp.parse("2026-01-02T03:04:05Z")
NOT_MODIFIED = b"HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n"


def found(*headers: str, status: str = "200 OK") -> bytes:
    return response(b"", *headers, status=status, length=70_000)


ANSWERS = {
    "unchanged": lambda head: NOT_MODIFIED,
    "same": lambda head: found(f"ETag: {READ}"),
    "new": lambda head: found('ETag: W/"2"'),
    "plain": lambda head: found(),
    "broken": lambda head: found(status="500 Internal Server Error"),
    "no-head": lambda head: (
        found(status="405 Method Not Allowed") if head else found('ETag: W/"2"')
    ),
    "dated": lambda head: NOT_MODIFIED,
    "moved": lambda head: (
        b"HTTP/1.1 302 Found\r\nLocation: /same\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    ),
}
ELSEWHERE = {
    "broker": "kind: Mqtt\n        host: broker.invalid\n        port: 1883\n        "
    "topics: [{path: t}]",
    "program": "kind: Container\n        image: docker.invalid/program:1",
}
STATES = dict.fromkeys([*ANSWERS, *ELSEWHERE], etag(READ)) | {"dated": last_modified(MODIFIED)}


def answer(connection: socket.socket, request: str) -> None:
    method, path, _ = request.split(" ", 2)
    connection.sendall(ANSWERS[path.lstrip("/")](method == "HEAD"))


@pytest.fixture
def server() -> Iterator[Faulty]:
    with faulty_server(answer) as running:
        yield running


@pytest.fixture
def project(tmp_path: Path, server: Faulty) -> Path:
    """Each root with a derivative, all of them read and up to date."""
    files = {}
    for name in STATES:
        url = f"http://127.0.0.1:{server.port}/{name}"
        fetch = ELSEWHERE.get(name, f"kind: Url\n        url: {url}")
        text = root_yaml(name, "id BIGINT, name STRING")
        local = "kind: FilesGlob\n        path: data/*.csv\n        order: ByName"
        assert local in text
        files[f"{name}.yaml"] = text.replace(local, fetch)
        files[f"{name}.copy.yaml"] = derived_yaml(f"{name}.copy", name, QUERY)
    root = write_project(tmp_path / "project", files)
    for name, state in STATES.items():
        build(root, name, state)
    return root


@pytest.fixture
def odfbuild(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Program:
    return Program(project, monkeypatch, capsys)


def comment(text: str, server: Faulty) -> str:
    """A comment without what differs from run to run."""
    text = re.sub(r"sha256:[0-9a-f]{64}", "sha256:…", text)
    return text.replace(f"127.0.0.1:{server.port}", "127.0.0.1:…")


def test_the_comment_of_a_pull_request_has_one_line_for_all_that_plan_cannot_see(
    odfbuild: Program, server: Faulty
) -> None:
    text = odfbuild.ok("plan", "--md").out
    assert_golden("plan-not-refreshed.md", comment(text, server).rstrip("\n"))
    assert server.requests == []


def test_the_comment_of_a_refreshed_plan_has_what_servers_said(
    odfbuild: Program, server: Faulty
) -> None:
    text = odfbuild.ok("plan", "--refresh", "--md").out
    assert_golden("plan-refreshed.md", comment(text, server).rstrip("\n"))


def test_a_refreshed_plan_reads_like_this(odfbuild: Program, server: Faulty) -> None:
    text = odfbuild.ok("plan", "--refresh").out
    assert_golden("plan-refreshed.txt", comment(text, server).rstrip("\n"))


def test_a_plan_of_what_cannot_be_seen_reads_like_this(odfbuild: Program) -> None:
    assert odfbuild.ok("plan").out.splitlines() == [
        "Not checked by plan: 10 sources, and 10 datasets downstream (--full lists all, --refresh "
        "asks web servers).",
        "",
        "No changes. All datasets that plan can check are up to date.",
    ]


def test_full_lists_each_source_and_its_downstream_datasets(odfbuild: Program) -> None:
    out = odfbuild.ok("plan", "--full").out
    for name in STATES:
        assert re.search(rf"^  \? {name} ", out, re.MULTILINE), out
        assert re.search(rf"^  \? {name}\.copy ", out, re.MULTILINE), out
    assert "the broker is polled for messages at apply" in out


def test_json_tells_them_apart_from_what_will_run(odfbuild: Program) -> None:
    plan = odfbuild.ok("plan", "--refresh", "--json").data
    actions = {each["name"]: each["actions"] for each in plan["datasets"]}
    assert {name: actions[name] for name in STATES} == {
        "unchanged": [],
        "same": [],
        "new": ["run"],
        "plain": ["poll"],
        "broken": ["poll"],
        "no-head": ["run"],
        "dated": [],
        "moved": [],
        "broker": ["poll"],
        "program": ["poll"],
    }
    assert all(actions[f"{name}.copy"] == actions[name] for name in STATES)
    assert (plan["summary"]["run"], plan["summary"]["poll"]) == (4, 8)
    codes = {each["name"]: each["reasons"][-1]["code"] for each in plan["datasets"]}
    assert [codes[name] for name in ("plain", "broken", "broker", "new", "same")] == [
        "source_not_answered",
        "source_not_answered",
        "source_not_checked",
        "source_has_news",
        "source_unchanged",
    ]


def test_servers_get_one_conditional_head_and_a_get_only_where_they_refuse_that(
    odfbuild: Program, server: Faulty
) -> None:
    odfbuild.ok("plan", "--refresh")
    asked = sorted(" ".join(each.split(" ", 2)[:2]) for each in server.requests)
    assert asked == sorted([*(f"HEAD /{name}" for name in ANSWERS), "HEAD /same", "GET /no-head"])
    for each in server.requests:
        path = each.split(" ", 2)[1]
        expected = (
            "If-Modified-Since: Fri, 02 Jan 2026 03:04:05 GMT"
            if path == "/dated"
            else f"If-None-Match: {READ}"
        )
        assert expected.lower() in each.lower()


def test_the_exit_code_is_0_until_something_is_known_to_change(odfbuild: Program) -> None:
    assert odfbuild("plan", "--detailed-exitcode").code == 0
    assert odfbuild("plan", "--detailed-exitcode", "--refresh").code == 2
    quiet = ("unchanged", "plain", "broken", "broker")
    selected = [part for name in quiet for part in ("-s", f"{name}+")]
    assert odfbuild("plan", "--detailed-exitcode", "--refresh", *selected).code == 0


def test_what_a_server_said_is_not_kept_for_the_next_plan(odfbuild: Program) -> None:
    before = odfbuild.ok("plan").out
    odfbuild.ok("plan", "--refresh")
    assert odfbuild.ok("plan").out == before


def test_a_source_that_was_changed_since_it_was_read_is_not_asked(
    odfbuild: Program, server: Faulty, project: Path
) -> None:
    file = project / "datasets" / "same.yaml"
    file.write_text(file.read_text().replace("/same", "/new"))
    odfbuild.ok("plan", "--refresh", "-s", "same+")
    assert server.requests == []


def test_a_secret_in_an_address_is_sent_and_not_shown(
    odfbuild: Program, server: Faulty, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = project / "datasets" / "broken.yaml"
    text = file.read_text().replace("/broken", "/broken?key=${{ env.SOURCE_KEY }}")
    file.write_text(text.replace("name: broken", "name: keyed"))
    copy = derived_yaml("keyed.copy", "keyed", QUERY)
    (project / "datasets" / "broken.copy.yaml").write_text(copy)
    build(project, "keyed", etag(READ))
    monkeypatch.setitem(ANSWERS, "broken?key=geheim-geheim", ANSWERS["broken"])
    monkeypatch.setenv("SOURCE_KEY", "geheim-geheim")
    said = odfbuild.ok("plan", "--refresh", "--full", "-s", "keyed+")
    assert "HEAD /broken?key=geheim-geheim " in server.requests[0]
    assert "geheim" not in said.out + said.err
    monkeypatch.delenv("SOURCE_KEY")
    said = odfbuild.ok("plan", "--refresh", "-s", "keyed+")
    assert "'${{ env.SOURCE_KEY }}' has no value" in said.out


def test_a_saved_plan_is_shown_as_it_was_made(odfbuild: Program, project: Path) -> None:
    made = odfbuild.ok("plan", "--refresh", "-o", "plan.json").out
    assert odfbuild.ok("show", "plan.json").out == made
    assert json.loads((project / "plan.json").read_text())["news"] == []


def test_a_page_has_one_line_for_them_and_does_not_draw_them(odfbuild: Program) -> None:
    page = odfbuild.ok("plan", "--format", "html").out
    assert "Not checked by plan: 10 sources, and 10 datasets downstream." in page
    assert "<svg" not in page
