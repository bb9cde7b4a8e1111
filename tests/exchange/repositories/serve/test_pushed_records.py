"""Records pushed over HTTP are committed once, or refused with a reason, by a real server."""

from __future__ import annotations

import hashlib
import hmac
import json
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from odfbuild.errors import Errors
from odfbuild.exchange.repositories.serve.webhooks import hooks_of
from odfbuild.inspect.verify.integrity import verify_integrity
from odfbuild.odf.model import AddData
from odfbuild.project.settings.serving import Webhook
from tests.apply.killer import Killer
from tests.apply.tiny import Tiny
from tests.exchange.repositories.serving import ALICE, BOB, Served, served

PLAIN = "tests.exchange.repositories.plain_program"
SENSOR = "token-of-sensor-0123456789"
SECRET = "secret-of-github-0123456789"
STRIPE = "secret-of-stripe-0123456789"
ACCESS = f"""\
kind: Machine
version: 1
content:
  serve:
    access:
      - {{read: ["*"]}}
      - {{name: alice, token: {ALICE}, write: ["*"]}}
      - {{name: bob, token: {BOB}, read: ["*"]}}
      - {{name: sensor, token: {SENSOR}, ingest: ["root"]}}
    ingest:
      maxRequestMb: 1
      batchSeconds: 0.3
      webhooks:
        - {{name: github, dataset: hooks, sender: github, secret: "${{{{ env.GITHUB_SECRET }}}}"}}
        - {{name: stripe, dataset: hooks, sender: stripe, secret: {STRIPE}}}
"""
DEFINED = """\
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: {source}
      read: {{kind: NdJson, schema: [event_time TIMESTAMP, id BIGINT, value BIGINT]}}
      merge: {{kind: Append}}
"""
LINE = '{"event_time": "2024-01-01 00:00:00", "id": %d, "value": 1}\n'


def project(root: Path) -> Tiny:
    """A dataset `root` with a push source, and one for webhooks; both have a chain."""
    tiny = Tiny.fresh(root)
    (tiny.root / "datasets" / "derived.yaml").unlink()
    for name, source in (("root", "phone"), ("hooks", "hook")):
        text = DEFINED.format(name=name, source=source)
        (tiny.root / "datasets" / f"{name}.yaml").write_text(text)
    with Killer() as killer:
        assert killer.run(tiny.root, "apply", "-y")[0] == 0
    return tiny


def serving(tiny: Tiny, *options: str, access: str = ACCESS, **env: str) -> Any:
    given = {"GITHUB_SECRET": SECRET, **env}
    return served(tiny.root, "--ingest", *options, access=access, env=given, module=PLAIN)


def send(
    server: Served,
    data: str | bytes,
    *,
    to: str = "root/ingest",
    token: str | None = ALICE,
    key: str | None = None,
    **headers: str,
) -> httpx.Response:
    found = {name.replace("_", "-"): value for name, value in headers.items()}
    if token is not None:
        found["authorization"] = f"Bearer {token}"
    if key is not None:
        found["idempotency-key"] = key
    content = data.encode() if isinstance(data, str) else data
    return httpx.post(server.url(to), content=content, headers=found, trust_env=False, timeout=60)


def blocks(tiny: Tiny, name: str = "root") -> list[AddData]:
    return [event for event in tiny.events(name) if isinstance(event, AddData)]


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    """Nobody changes it."""
    return project(tmp_path_factory.mktemp("pristine") / "p")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory, pristine: Tiny) -> Tiny:
    return copied(pristine, tmp_path_factory.mktemp("pushed") / "p")


def copied(pristine: Tiny, root: Path) -> Tiny:
    return Tiny(shutil.copytree(pristine.root, root))


@pytest.fixture(scope="module")
def server(tiny: Tiny) -> Iterator[Served]:
    with serving(tiny) as running:
        yield running


def test_an_answer_names_the_block_that_holds_the_records(tiny: Tiny, server: Served) -> None:
    before = tiny.ids("root")
    said = send(server, LINE % 1 + LINE % 2, content_type="application/x-ndjson")
    assert said.status_code == 200, said.text
    state = tiny.workspace().projection("root")
    assert state is not None
    assert said.json() == {
        "dataset": "root",
        "status": "committed",
        "block": str(state.head),
        "sequenceNumber": state.blocks - 1,
        "records": 2,
        "skipped": 0,
    }
    assert tiny.ids("root") == [*before, 1, 2]


def test_a_request_with_a_known_key_gets_the_same_answer(tiny: Tiny, server: Served) -> None:
    first = send(server, LINE % 10, key="k")
    count = len(tiny.ids("root"))
    send(server, LINE % 11)
    again = send(server, LINE % 10, key="k")
    assert first.status_code == again.status_code == 200
    assert again.json() == first.json()
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert len(tiny.ids("root")) == count + 1


def test_requests_at_the_same_time_are_one_block_and_each_gets_its_own_answer(
    tiny: Tiny, server: Served
) -> None:
    count = len(blocks(tiny))
    bodies = ["".join(LINE % (100 + n * 10 + i) for i in range(n + 1)) for n in range(8)]
    with ThreadPoolExecutor(16) as threads:
        asked = [(body, f"batch-{n}") for n, body in enumerate(bodies)] * 2
        said = list(threads.map(lambda each: send(server, each[0], key=each[1]), asked))
    assert [each.json()["records"] for each in said] == [*range(1, 9)] * 2
    assert [each.json() for each in said[:8]] == [each.json() for each in said[8:]]
    new = blocks(tiny)[count:]
    assert len(new) < 8, "requests at the same time are committed together"
    expected = sorted(100 + n * 10 + i for n in range(8) for i in range(n + 1))
    assert sorted(tiny.ids("root")[-36:]) == expected
    again = send(server, "", key="batch-3").json()
    assert again == said[3].json()
    assert verify_integrity(tiny.workspace()) == ()


@pytest.mark.parametrize(
    ("token", "to", "status"),
    [
        (None, "root/ingest", 401),
        ("nobodys-token-0123456789", "root/ingest", 401),
        (BOB, "root/ingest", 403),
        (SENSOR, "hooks/ingest", 403),
        (SENSOR, "root/ingest", 200),
        (ALICE, "nothing/ingest", 404),
        (ALICE, "no name/ingest", 404),
    ],
)
def test_only_who_may_push_records_does(
    server: Served, token: str | None, to: str, status: int
) -> None:
    assert send(server, LINE % 20, to=to, token=token).status_code == status


def test_a_token_for_records_is_for_nothing_else(tiny: Tiny) -> None:
    closed = ACCESS.replace('      - {read: ["*"]}\n', "")
    with serving(tiny, access=closed) as server:
        headers = {"authorization": f"Bearer {SENSOR}"}
        found = httpx.get(server.url("root/refs/head"), headers=headers, trust_env=False)
        assert found.status_code == 404
        assert send(server, LINE % 1, token=SENSOR, to="hooks/ingest").status_code == 404
        assert send(server, LINE % 1, token=SENSOR).status_code == 200


@pytest.mark.parametrize(
    ("headers", "to", "code", "status"),
    [
        ({"content_type": "application/xml"}, "root/ingest", "E1055", 415),
        ({"content_type": "text/csv; charset=latin-1"}, "root/ingest", "E1055", 415),
        ({"content_encoding": "gzip"}, "root/ingest", "E1055", 415),
        ({"odf_event_time": "yesterday"}, "root/ingest", "E1055", 415),
        ({"idempotency_key": "x" * 300}, "root/ingest", "E1055", 415),
        ({}, "root/ingest?sourceName=fax", "E0321", 400),
        ({}, "nothing/ingest", "E0301", 404),
    ],
)
def test_a_request_that_is_wrong_is_refused_as_json_with_a_code(
    tiny: Tiny, server: Served, headers: dict[str, str], to: str, code: str, status: int
) -> None:
    before = tiny.state()
    said = send(server, LINE % 30, to=to, **headers)
    assert (said.status_code, said.json()["code"]) == (status, code)
    assert said.json()["help"]
    assert tiny.state() == before


def test_a_request_that_is_too_large_is_refused_before_it_is_read(server: Served) -> None:
    said = send(server, LINE % 1 * 20_000)
    assert (said.status_code, said.json()["code"]) == (413, "E1056")

    def endless() -> Iterator[bytes]:
        for _ in range(40):
            yield b" " * (1 << 16)

    headers = {"authorization": f"Bearer {ALICE}"}
    url = server.url("root/ingest")
    try:
        found = httpx.post(url, content=endless(), headers=headers, trust_env=False)
        assert found.status_code == 413
    except httpx.TransportError:
        pass  # the server hung up while it was sent


def test_a_sender_that_is_too_fast_hears_when_to_come_again(tiny: Tiny) -> None:
    few = ACCESS.replace("maxRequestMb: 1", "requestsPerMinute: 3")
    with serving(tiny, access=few) as server:
        said = [send(server, LINE % 40) for _ in range(5)]
        assert [each.status_code for each in said] == [200, 200, 200, 429, 429]
        assert said[3].json()["code"] == "E1057"
        assert 1 <= int(said[3].headers["retry-after"]) <= 20
        assert send(server, LINE % 41, token=SENSOR).status_code == 200, "others are not kept off"


def test_a_full_queue_refuses_and_loses_nothing(tiny: Tiny) -> None:
    narrow = ACCESS.replace("maxRequestMb: 1", "maxWaiting: 2")
    with serving(tiny, access=narrow) as server:
        before = len(tiny.ids("root"))
        with ThreadPoolExecutor(6) as threads:
            said = list(threads.map(lambda n: send(server, LINE % n), range(50, 56)))
        taken = [each for each in said if each.status_code == 200]
        assert len(taken) >= 2
        assert {each.json()["code"] for each in said if each.status_code == 429} == {"E1057"}
        assert len(tiny.ids("root")) == before + len(taken)


def test_a_server_takes_no_records_unless_it_is_asked_to(tiny: Tiny) -> None:
    with served(tiny.root, access=ACCESS, env={"GITHUB_SECRET": SECRET}) as server:
        said = send(server, LINE % 60)
        assert (said.status_code, said.json()["code"]) == (405, "E1054")
    enabled = ACCESS.replace("maxRequestMb: 1", "enabled: true")
    env = {"GITHUB_SECRET": SECRET}
    with served(tiny.root, access=enabled, env=env, module=PLAIN) as server:
        assert send(server, LINE % 60).status_code == 200


# --- Ends of either side ---


def test_a_server_that_dies_between_commit_and_answer_doubles_nothing(
    tmp_path: Path, pristine: Tiny
) -> None:
    tiny = copied(pristine, tmp_path / "p")
    with serving(tiny, KILL_BEFORE_ANSWER="1") as server, pytest.raises(httpx.TransportError):
        send(server, LINE % 1, key="once")
    assert tiny.ids("root") == [1]
    with serving(tiny) as server:
        said = send(server, LINE % 1, key="once").json()
    assert (said["status"], said["records"], said["sequenceNumber"]) == ("committed", 1, 3)
    assert tiny.ids("root") == [1]


@pytest.mark.slow  # starts two servers for each step
def test_a_server_that_dies_at_any_step_loses_and_doubles_nothing(
    tmp_path: Path, pristine: Tiny
) -> None:
    tiny = copied(pristine, tmp_path / "p")
    with serving(tiny) as server:
        send(server, LINE % 1, key="first")
    for step in range(20):
        number = step + 2
        with serving(tiny, KILL_AT=str(step)) as server:
            try:
                survived = send(server, LINE % number, key=f"k{number}").status_code == 200
            except httpx.TransportError:
                survived = False
        if survived:
            break
        with serving(tiny) as server:
            for _ in range(2):
                assert send(server, LINE % number, key=f"k{number}").json()["records"] == 1
        assert tiny.ids("root") == [*range(1, number + 1)]
        assert verify_integrity(tiny.workspace()) == ()
    assert 3 <= step < 20, "object, block and head are steps"


def test_a_server_that_is_ended_answers_what_it_has_taken(tiny: Tiny) -> None:
    slow = ACCESS.replace("batchSeconds: 0.3", "batchSeconds: 2")
    with serving(tiny, access=slow) as server, ThreadPoolExecutor(1) as threads:
        answer = threads.submit(send, server, LINE % 70)
        time.sleep(0.7)
        assert server.stop() == 0
        assert answer.result().status_code == 200


def test_a_client_that_hangs_up_has_its_records_committed_or_not_and_others_go_on(
    tiny: Tiny, server: Served
) -> None:
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(
            server.url("root/ingest"),
            content=(LINE % 80).encode(),
            headers={"authorization": f"Bearer {ALICE}", "idempotency-key": "gone"},
            trust_env=False,
            timeout=0.1,
        )
    assert send(server, LINE % 80, key="gone").json()["records"] == 1
    assert tiny.ids("root").count(80) == 1


# --- Webhooks ---


def github(body: bytes, delivery: str, secret: str = SECRET, event: str = "push") -> dict[str, str]:
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {
        "x_hub_signature_256": f"sha256={signature}",
        "x_github_event": event,
        "x_github_delivery": delivery,
        "content_type": "application/json",
    }


def stripe(body: bytes, at: float, secret: str = STRIPE) -> dict[str, str]:
    signed = str(int(at)).encode() + b"." + body
    signature = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return {"stripe_signature": f"t={int(at)},v1={'0' * 64},v1={signature},v0=abc"}


def post(server: Served, name: str, body: bytes, headers: dict[str, str]) -> httpx.Response:
    return send(server, body, to=f"webhooks/{name}", token=None, **headers)


def test_a_signed_message_is_a_record_once_however_often_it_comes(
    tiny: Tiny, server: Served
) -> None:
    body = b'{\n  "id": 1\n}'
    before = len(tiny.ids("hooks"))
    said = [post(server, "github", body, github(body, each)) for each in ("a", "a", "b")]
    assert [each.status_code for each in said] == [200] * 3
    assert said[0].json() == said[1].json() == said[2].json()
    other = b'{"id": 2}'
    assert post(server, "github", other, github(other, "c")).json()["records"] == 1
    assert len(tiny.ids("hooks")) == before + 2


@pytest.mark.parametrize(
    ("name", "headers"),
    [
        ("github", {}),
        ("github", github(b"{}", "x", secret="another-secret-0123456789")),
        ("github", github(b"{} ", "x")),
        ("github", {**github(b"{}", "x"), "x_hub_signature_256": "sha1=00"}),
        ("github", {**github(b"{}", "x"), "x_github_delivery": "a b"}),
        ("stripe", {}),
        ("stripe", {"stripe_signature": "t=1,v1=x,v1="}),
        ("stripe", stripe(b"{}", 1_000_000)),
        ("stripe", {"stripe_signature": "t=99999999999999999999,v1=" + "0" * 64}),
    ],
)
def test_a_message_without_a_right_signature_is_refused(
    tiny: Tiny, server: Served, name: str, headers: dict[str, str]
) -> None:
    before = tiny.state()
    said = post(server, name, b"{}", headers)
    assert (said.status_code, said.json()["code"]) == (401, "E1058")
    assert SECRET not in said.text
    assert tiny.state() == before


def test_a_message_that_is_no_json_is_refused(server: Served) -> None:
    body = b"payload=%7B%7D"
    said = post(server, "github", body, github(body, "form"))
    assert (said.status_code, said.json()["code"]) == (415, "E1055")


def test_an_unknown_webhook_is_not_there(server: Served) -> None:
    assert post(server, "gitlab", b"{}", {}).status_code in (404, 405)


def test_secrets_stand_neither_in_the_log_nor_in_chains(tiny: Tiny, server: Served) -> None:
    body = b'{"id": 3}'
    post(server, "github", body, github(body, "logged"))
    send(server, LINE % 90)
    text = server.log()
    for secret in (ALICE, SENSOR, SECRET, STRIPE):
        assert secret not in text
    assert " alice POST /root/ingest 200 " in text
    assert " webhook:github POST /webhooks/github 200 " in text
    assert json.dumps(SECRET) not in str(tiny.events("hooks"))


def test_wrong_webhooks_are_told_at_the_start_all_at_once() -> None:
    def hook(name: str, secret: str = SECRET) -> Webhook:
        return Webhook(name=name, dataset="hooks", sender="github", secret=secret)

    wrong = [hook("a"), hook("a"), hook("ingest"), hook("b/c"), hook("d", "short")]
    with pytest.raises(Errors) as raised:
        hooks_of(wrong)
    assert [each.code for each in raised.value.errors] == ["E1059"] * 4
