"""`notify` of machine.yaml: a real web server gets what has just failed, and what works again."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from odfbuild.ingest.fetch.result import etag
from tests.apply.in_process import Program
from tests.cli.read_roots import build
from tests.project.write_project import derived_yaml, root_yaml, write_project
from tests.servers.faulty import Faulty, faulty_server, response

QUERY = "SELECT event_time, id, name FROM src"


@dataclass
class Both:
    """A server of data, which may be broken, and of a webhook, which keeps what it gets."""

    server: Faulty
    broken: bool = True
    refuses: bool = False
    messages: list[Any] = field(default_factory=list)

    def answer(self, connection: socket.socket, request: str) -> None:
        head, _, body = request.partition("\r\n\r\n")
        if not head.startswith("POST"):
            good = b"HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n"
            bad = response(b"", status="404 Not Found")
            connection.sendall(bad if self.broken else good)
            return
        (length,) = (
            int(line.partition(":")[2])
            for line in head.splitlines()
            if line.lower().startswith("content-length")
        )
        data = body.encode()
        while len(data) < length:
            data += connection.recv(65536)
        if self.refuses:
            connection.sendall(response(b"", status="403 Forbidden"))
            return
        self.messages.append((head.split()[1], json.loads(data)))
        connection.sendall(response(b"ok"))


@pytest.fixture
def both() -> Iterator[Both]:
    made: list[Both] = []

    def answer(connection: socket.socket, request: str) -> None:
        made[0].answer(connection, request)

    with faulty_server(answer) as server:
        made.append(Both(server))
        yield made[0]


@pytest.fixture
def project(tmp_path: Path, both: Both) -> Path:
    local = "kind: FilesGlob\n        path: data/*.csv\n        order: ByName"
    text = root_yaml("orders", "id BIGINT, name STRING")
    assert local in text
    files = {
        "orders.yaml": text.replace(local, f"kind: Url\n        url: {both.server.url}"),
        "orders.copy.yaml": derived_yaml("orders.copy", "orders", QUERY),
    }
    config = "freshness:\n  - match: [orders]\n    maxAge: 1d\n"
    root = write_project(tmp_path / "project", files, config)
    build(root, "orders", etag('"1"'))
    return root


@pytest.fixture
def odfbuild(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Program:
    return Program(project, monkeypatch, capsys)


@pytest.fixture
def notify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "machine.yaml"
    monkeypatch.setenv("ODFBUILD_CONFIG", str(file))
    return file


def write(file: Path, *entries: str) -> None:
    listed = "".join(f"    - {each}\n" for each in entries)
    file.write_text(f"kind: Machine\nversion: 1\ncontent:\n  notify:\n{listed}")


def hook(both: Both, path: str) -> str:
    return f"http://127.0.0.1:{both.server.port}/{path}"


def test_a_failure_and_its_recovery_reach_a_webhook_once_each(
    odfbuild: Program, notify: Path, both: Both
) -> None:
    write(notify, f"webhook: {hook(both, 'json')}")
    assert odfbuild("apply", "-y").code == 1
    assert odfbuild("apply", "-y").code == 1
    ((path, message),) = both.messages
    (problem,) = message["problems"]
    assert (path, message["project"], message["recovered"]) == ("/json", "small", [])
    assert (problem["event"], problem["dataset"], problem["code"]) == (
        "failure",
        "orders",
        "E0405",
    )
    assert message["text"].startswith(
        "odfbuild, project small:\norders failed: cannot fetch http://127.0.0.1:"
    )
    both.broken = False
    odfbuild.apply()
    odfbuild.apply()
    _, (_, message) = both.messages
    assert message["problems"] == []
    assert message["recovered"] == [{"event": "failure", "dataset": "orders"}]
    both.broken = True
    assert odfbuild("apply", "-y").code == 1
    assert len(both.messages) == 3


def test_slack_and_teams_get_messages_in_their_form(
    odfbuild: Program, notify: Path, both: Both
) -> None:
    write(
        notify,
        f"{{webhook: '{hook(both, 'slack')}', form: slack}}",
        f"{{webhook: '{hook(both, 'teams')}', form: teams}}",
        f"{{webhook: '{hook(both, 'others')}', match: [others.*]}}",
        f"{{webhook: '{hook(both, 'late')}', on: [late]}}",
    )
    assert odfbuild("apply", "-y").code == 1
    (slack, teams) = both.messages
    assert slack[0] == "/slack"
    assert slack[1]["text"].splitlines()[1].startswith("orders failed: cannot fetch")
    assert teams[0] == "/teams"
    (card,) = teams[1]["attachments"]
    assert card["content"]["body"][1]["text"].startswith("orders failed: cannot fetch")


def test_a_command_gets_the_message_on_its_standard_input(
    odfbuild: Program, notify: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "kept.json"
    script = f"import sys; open({str(kept)!r}, 'wb').write(sys.stdin.buffer.read())"
    write(notify, f"command: {json.dumps([sys.executable, '-c', script])}")
    assert odfbuild("apply", "-y").code == 1
    assert json.loads(kept.read_text())["problems"][0]["dataset"] == "orders"


def test_a_stale_dataset_is_told_once_by_freshness(
    odfbuild: Program, notify: Path, both: Both
) -> None:
    write(notify, f"webhook: {hook(both, 'json')}")
    assert odfbuild("freshness", "--at", "2026-02-04T00:00:00Z").code != 0
    assert both.messages == []
    assert odfbuild("freshness").code != 0
    assert odfbuild("freshness").code != 0
    ((_, message),) = both.messages
    assert [(each["event"], each["dataset"]) for each in message["problems"]] == [
        ("stale", "orders")
    ]


def test_a_receiver_that_does_not_answer_stops_nothing_and_is_told_the_next_time(
    odfbuild: Program, notify: Path, both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK", hook(both, "geheim-geheim"))
    write(notify, "webhook: '${{ env.HOOK }}'")
    both.refuses = True
    said = odfbuild("apply", "-y")
    assert said.code == 1
    assert (
        "error[E0912]: no alert could be sent to ${{ env.HOOK }}: it answered 403 Forbidden"
        in said.err
    )
    assert "geheim" not in said.out + said.err
    both.refuses = False
    assert odfbuild("apply", "-y").code == 1
    assert len(both.messages) == 1


def test_only_the_machine_names_receivers_and_each_entry_one(
    odfbuild: Program, notify: Path, project: Path, both: Both
) -> None:
    write(notify, "match: ['*']")
    said = odfbuild("plan")
    assert said.code == 1
    assert "error[E0173]" in said.err
    assert f"--> {notify}:5:7" in said.err
    write(notify, f"{{webhook: '{hook(both, 'json')}', on: [failures]}}")
    said = odfbuild("plan")
    assert "expected one of failure, stale, late, drift, recovery" in said.err
    notify.write_text("kind: Machine\nversion: 1\ncontent: {}\n")
    file = project / "odfbuild.yaml"
    file.write_text(f"{file.read_text()}  notify:\n    - webhook: {hook(both, 'json')}\n")
    said = odfbuild("plan")
    assert said.code == 1
    assert "notify" in said.err and "--> odfbuild.yaml" in said.err
