"""Pushed records are read and merged by Spark as `odfbuild ingest` does, several in one job."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.inspect.verify.integrity import verify_integrity
from tests.apply.killer import Killer
from tests.apply.tiny import Tiny
from tests.exchange.repositories.serve.test_pushed_records import (
    ACCESS,
    SECRET,
    blocks,
    github,
    post,
    send,
    stripe,
)
from tests.exchange.repositories.serving import Served, served

pytestmark = pytest.mark.spark

SOURCE = """\
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {read}
      merge: {merge}
"""
COLUMNS = "[event_time TIMESTAMP, id BIGINT, value BIGINT]"
HOOKED = "[event STRING, payload STRING, id STRING, created BIGINT]"
DATASETS = {
    "root": (f"{{kind: Csv, header: true, schema: {COLUMNS}}}", "{kind: Ledger, primaryKey: [id]}"),
    "latest": (f"{{kind: NdJson, schema: {COLUMNS}}}", "{kind: UpsertStream, primaryKey: [id]}"),
    "hooks": (f"{{kind: NdJson, schema: {HOOKED}}}", "{kind: Append}"),
}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    tiny = Tiny.fresh(tmp_path_factory.mktemp("spark") / "p")
    (tiny.root / "datasets" / "derived.yaml").unlink()
    for name, (read, merge) in DATASETS.items():
        text = SOURCE.format(name=name, read=read, merge=merge)
        (tiny.root / "datasets" / f"{name}.yaml").write_text(text)
    with Killer() as killer:
        assert killer.run(tiny.root, "apply", "-y")[0] == 0
    return tiny


@pytest.fixture(scope="module")
def server(tiny: Tiny) -> Iterator[Served]:
    env = {"GITHUB_SECRET": SECRET}
    with served(tiny.root, "--ingest", access=ACCESS, env=env) as running:
        yield running


def csv(*ids: int, value: object = 1) -> str:
    rows = [f"2024-01-01T00:00:00Z,{each},{value}\n" for each in ids]
    return "event_time,id,value\n" + "".join(rows)


def together(server: Served, *asked: tuple[str, str | bytes, str]) -> list[httpx.Response]:
    """Send requests in this order, so close to each other that they are committed together."""

    def one(each: tuple[int, tuple[str, str | bytes, str]]) -> httpx.Response:
        number, (to, data, key) = each
        time.sleep(number * 0.02)
        return send(server, data, to=f"{to}/ingest", key=key)

    with ThreadPoolExecutor(len(asked)) as threads:
        return list(threads.map(one, enumerate(asked)))


def test_records_come_in_each_format_with_the_columns_of_the_source(
    tiny: Tiny, server: Served
) -> None:
    moment = "2024-01-01T00:00:00Z"
    rows = [{"event_time": moment, "id": id, "value": 5} for id in (2, 3, 4)]
    file = io.BytesIO()
    stamp = pa.array([1_704_067_200_000], pa.timestamp("ms", "UTC"))
    table = pa.table({"event_time": stamp, "id": pa.array([5]), "value": pa.array([5])})
    pq.write_table(table, file)
    sent: list[tuple[str, Any]] = [
        ("text/csv", csv(1, value=5)),
        ("application/x-ndjson", json.dumps(rows[0])),
        ("application/json", json.dumps(rows[1:2])),
        ("application/vnd.apache.parquet", file.getvalue()),
    ]
    for media, data in sent:
        said = send(server, data, content_type=media)
        assert (said.status_code, said.json()["records"]) == (200, 1), said.text
    assert tiny.ids("root") == [1, 2, 3, 5]
    said = send(server, json.dumps(rows[2], indent=1), content_type="application/json")
    assert said.json()["records"] == 1, said.text
    said = send(server, b'{"id": 1', content_type="application/json")
    assert (said.status_code, said.json()["code"]) == (422, "E0423"), said.text


def test_a_bad_request_fails_alone(tiny: Tiny, server: Served) -> None:
    send(server, csv(10))
    said = together(
        server,
        ("root", csv(11), "good-1"),
        ("root", csv(12, value="none"), "bad"),
        ("root", csv(13), "good-2"),
    )
    assert [each.status_code for each in said] == [200, 422, 200], [each.text for each in said]
    assert said[1].json()["code"] == "E0421"
    assert {11, 13} <= {*tiny.ids("root")}
    assert 12 not in tiny.ids("root")
    fixed = send(server, csv(12), key="bad").json()
    assert (fixed["status"], fixed["records"]) == ("committed", 1), "a key counts when it is used"


def test_merges_of_a_batch_go_in_turn_and_share_a_block(tiny: Tiny, server: Served) -> None:
    send(server, csv(20))
    count = len(blocks(tiny))
    said = together(
        server,
        ("root", csv(20, 21), "m1"),
        ("root", csv(21, 22), "m2"),
        ("root", csv(20), "m3"),
    )
    assert [each.json()["records"] for each in said] == [1, 1, 0], [each.text for each in said]
    assert len({each.json()["block"] for each in said}) == 1
    assert len(blocks(tiny)) == count + 1
    assert tiny.ids("root")[-2:] == [21, 22]
    for n, each in enumerate(said):
        assert send(server, csv(99), key=f"m{n + 1}").json() == each.json()

    line = '{"event_time": "2024-01-01T00:00:00Z", "id": 1, "value": %d}'
    send(server, line % 1, to="latest/ingest")
    said = together(server, *(("latest", line % n, f"u{n}") for n in (2, 3)))
    assert [each.json()["records"] for each in said] == [2, 2], [each.text for each in said]
    assert len({each.json()["block"] for each in said}) == 1
    assert verify_integrity(tiny.workspace()) == ()


def test_messages_of_services_become_records(tiny: Tiny, server: Served) -> None:
    body = b'{\n  "ref": "refs/heads/main",\n  "n": 1.10\n}'
    said = post(server, "github", body, github(body, "d-1"))
    assert said.json()["records"] == 1, said.text
    event = b'{\n  "id": "evt_1",\r\n  "created": 1700000000\n}'
    now = time.time()
    both = [post(server, "stripe", event, stripe(event, now - ago)) for ago in (0, 60)]
    assert both[0].json()["records"] == 1, both[0].text
    assert both[0].json() == both[1].json()
    files = sorted((tiny.root / "chains" / "hooks" / "data").iterdir())
    rows = [row for file in files for row in pq.read_table(file).to_pylist()]
    assert len(rows) == 2
    [push] = [row for row in rows if row["event"] == "push"]
    assert json.loads(push["payload"]) == {"ref": "refs/heads/main", "n": 1.1}
    [paid] = [row for row in rows if row["id"] == "evt_1"]
    assert paid["created"] == 1_700_000_000
