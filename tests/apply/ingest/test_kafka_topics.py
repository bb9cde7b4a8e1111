"""Topics of Kafka through Spark: types, merges, tombstones, bad records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from odfbuild.engine.contract import Engine
from tests.apply.in_process import Program, share
from tests.apply.tiny import Tiny
from tests.servers.kafka import Cluster, Said, kafka

pytestmark = pytest.mark.spark

ROOT = """\
kind: DatasetSnapshot
version: 1
content:
  name: root
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {{kind: Url, url: "{url}"}}
      read: {{kind: NdJson, schema: [{schema}]}}
      merge: {merge}
"""
KEYED = "{kind: UpsertStream, primaryKey: [id]}"


@dataclass(frozen=True)
class Made:
    """A project whose root reads a topic of its own."""

    tiny: Tiny
    program: Program
    cluster: Cluster
    topic: str

    def define(self, query: str, schema: str, merge: str, more: str = "") -> None:
        url = self.cluster.url(self.topic, query)
        text = ROOT.format(url=url, schema=schema, merge=merge)
        (self.tiny.root / "datasets" / "root.yaml").write_text(text)
        if more:
            settings = self.tiny.root / "odfbuild.yaml"
            settings.write_text(settings.read_text() + more)

    def state(self) -> dict[object, object]:
        """The last record of each key, without those that were retracted."""
        found = {}
        for each in self.tiny.records("root"):
            if each["op"] in (0, 3):
                found[each["id"]] = each["value"]
            elif each["op"] == 1:
                del found[each["id"]]
        return found


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with kafka() as started:
        yield started


@pytest.fixture
def made(
    cluster: Cluster,
    tmp_path: Path,
    spark_engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Made:
    share(spark_engine, monkeypatch)
    tiny = Tiny.fresh(tmp_path / "p")
    (tiny.root / "datasets" / "derived.yaml").unlink()
    return Made(tiny, Program(tiny.root, monkeypatch, capsys), cluster, tmp_path.name)


def test_a_topic_of_changes_becomes_what_its_keys_amount_to(made: Made) -> None:
    made.define(
        "key=id&keyFormat=json&timestamp=event_time",
        "op INT, event_time TIMESTAMP, id BIGINT, 'value DECIMAL(5, 2)'",
        KEYED,
    )
    made.cluster.send(
        made.topic,
        Said('{"value": 1.10}', "1"),
        Said('{"value": 2}', "2"),
        Said('{"value": 3}', "1"),
    )
    made.program.apply()
    assert {key: str(value) for key, value in made.state().items()} == {1: "3.00", 2: "2.00"}
    made.cluster.send(made.topic, Said(None, "1"), Said('{"value": 4}', "3"), Said(None, "9"))
    made.program.apply()
    assert {key: str(value) for key, value in made.state().items()} == {2: "2.00", 3: "4.00"}
    before = made.tiny.state()
    made.program.apply()
    assert made.tiny.state() == before
    made.program.ok("verify", "--integrity")


def test_bad_messages_stop_the_run_or_are_counted(made: Made) -> None:
    columns = "event_time TIMESTAMP, id BIGINT, value BIGINT, at BIGINT, about STRING"
    made.define("timestamp=event_time&offset=at&headers=about", columns, "{kind: Append}")
    made.cluster.send(
        made.topic,
        Said('{"id": 1, "value": 1}', headers=(("a", "b"),)),
        Said("what"),
        Said('{"id": "x", "value": 1}'),
        Said('{"id": 4, "value": 1}'),
    )
    said = made.program("apply", "-y")
    assert said.code == 1
    assert "E0445" in said.err
    assert "offset 1 of partition 0" in said.err
    made.define(
        "timestamp=event_time&offset=at&headers=about",
        columns,
        "{kind: Append}",
        "  ingest: {badRecords: {root: skip}}\n",
    )
    made.program.apply()
    found = [(each["id"], each["at"], each["about"]) for each in made.tiny.records("root")]
    assert found == [(1, 0, '{"a": "b"}'), (4, 3, "{}")]
    assert made.program("plan").code == 0


def test_plan_asks_no_cluster(made: Made) -> None:
    text = ROOT.format(
        url="kafka://127.0.0.1:1/t", schema="id BIGINT, value BIGINT", merge="{kind: Append}"
    )
    (made.tiny.root / "datasets" / "root.yaml").write_text(text)
    assert made.program("validate").code == 0
    assert "root" in made.program("plan").out
