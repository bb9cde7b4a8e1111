"""Data that somebody hands over: `odfbuild ingest`."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from odfbuild.odf.model import AddData, SetDataSchema
from tests.apply.in_process import Program
from tests.apply.tiny import Tiny

pytestmark = pytest.mark.spark

_TWO_SOURCES = """\
kind: DatasetSnapshot
version: 1
content:
  name: root
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: till
      read:
        kind: Csv
        header: true
        schema:
          - event_time TIMESTAMP
          - id BIGINT
          - value BIGINT
      merge:
        kind: Ledger
        primaryKey: [id]
    - kind: AddPushSource
      sourceName: phone
      read:
        kind: NdJson
        schema:
          - id BIGINT
          - value BIGINT
      preprocess:
        kind: Sql
        engine: spark
        query: SELECT id, value + 1000 AS value FROM input
      merge:
        kind: Append
"""
_HEADER = b"event_time,id,value\n"
_ONE = _HEADER + b"2024-01-01 00:00:00,1,1\n"
_TWO = _ONE + b"2024-01-02 00:00:00,2,2\n"


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    """A root with two push sources, and its reader; nothing applied."""
    tiny = Tiny.fresh(tmp_path / "p")
    (tiny.root / "datasets" / "root.yaml").write_text(_TWO_SOURCES)
    return tiny


def test_each_source_reads_and_merges_in_its_own_way(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    (tiny.root / "[1].csv").write_bytes(_TWO)
    said = odfbuild.ok("ingest", "root", "[1].csv", "--source", "till")
    assert said.out.startswith("  committed  root  2 blocks, 2 records (")
    said = odfbuild.ok("ingest", "root", "--source", "till", "--json", stdin=_TWO).data
    assert said["datasets"][0]["because"] == "the data has no new records"
    assert said["summary"]["noop"] == 1

    line = b'{"id": 2, "value": 5}\n'
    for _ in range(2):
        odfbuild.ok(
            "ingest", "root", "-", "-s", "phone", "--event-time", "2025-05-05T05:05:05Z", stdin=line
        )
    records = tiny.records("root")
    assert [(r["id"], r["value"]) for r in records] == [(1, 1), (2, 2), (2, 1005), (2, 1005)]
    assert records[-1]["event_time"].isoformat() == "2025-05-05T05:05:05+00:00"
    # The schema came once, with the first data.
    assert sum(isinstance(event, SetDataSchema) for event in tiny.events("root")) == 1

    stale = odfbuild.ok("plan", "--json").data["datasets"]
    assert [(d["name"], d["actions"]) for d in stale if d["actions"]] == [("derived", ["run"])]
    odfbuild.apply()
    assert tiny.ids("derived") == [1, 2, 2, 2]


_DECLARED = """\
kind: DatasetSnapshot
version: 1
content:
  name: news
  kind: Root
  metadata:
    - kind: SetDataSchema
      schema:
        fields:
          - {name: offset, type: Int64}
          - {name: op, type: Int32}
          - {name: system_time, type: Timestamp}
          - {name: event_time, type: Timestamp}
          - {name: id, type: String}
          - {name: tags, type: {kind: List, itemType: String}}
          - name: author
            type:
              kind: Option
              inner: {kind: Struct, fields: [{name: name, type: String}]}
    - kind: AddPushSource
      sourceName: default
      read:
        kind: NdJson
        schema:
          - op INT NOT NULL
          - id STRING
          - tags ARRAY<STRING>
          - "author STRUCT<name: STRING>"
      merge:
        kind: ChangelogStream
        primaryKey: [id]
---
kind: DatasetSnapshot
version: 1
content:
  name: titles
  kind: Derivative
  metadata:
    - kind: SetDataSchema
      schema:
        fields:
          - {name: offset, type: Int64}
          - {name: op, type: Int32}
          - {name: system_time, type: Timestamp}
          - {name: event_time, type: Timestamp}
          - {name: title, type: String}
    - kind: SetTransform
      inputs:
        - datasetRef: news
      transform:
        kind: Sql
        engine: spark
        query: SELECT event_time, upper(id) AS title FROM news
"""


def test_what_the_schema_requires_is_asked_of_the_values(tiny: Tiny, odfbuild: Program) -> None:
    """The source declares everything optional: its columns, the items, the members."""
    (tiny.root / "datasets" / "news.yaml").write_text(_DECLARED)
    odfbuild.apply()
    odfbuild.ok("ingest", "news", stdin=b'{"op": 0, "id": "a", "tags": ["x"], "author": null}')
    odfbuild.ok(
        "ingest", "news", stdin=b'{"op": 0, "id": "b", "tags": [], "author": {"name": "B"}}'
    )
    for line, column in (
        (b'{"op": 0, "id": null, "tags": []}', "id"),
        (b'{"op": 0, "id": "c"}', "tags"),
        (b'{"op": 0, "id": "c", "tags": ["x", null]}', "tags[]"),
        (b'{"op": 0, "id": "c", "tags": [], "author": {"name": null}}', "author.name"),
    ):
        refused = odfbuild("ingest", "news", stdin=line)
        assert refused.code == 1
        assert f"error[E0520]: column '{column}' is required" in refused.err
    assert [record["tags"] for record in tiny.records("news")] == [["x"], []]
    odfbuild.apply()
    assert [record["title"] for record in tiny.records("titles")] == ["A", "B"]
    odfbuild.ok("verify", "news", "titles")


def test_a_key_counts_once_for_each_source_however_much_came_after(
    tiny: Tiny, odfbuild: Program
) -> None:
    odfbuild.apply()
    till = ("ingest", "root", "--source", "till", "--idempotency-key", "monday")
    phone = ("ingest", "root", "--source", "phone", "--idempotency-key", "monday")
    line = b'{"id": 7, "value": 7}'
    odfbuild.ok(*till, stdin=_ONE)
    odfbuild.ok(*phone, stdin=line)
    odfbuild.ok("ingest", "root", "--source", "phone", stdin=line)
    odfbuild.ok("ingest", "root", "-s", "phone", "--idempotency-key", "tuesday", stdin=line)
    before = tiny.state()
    again = odfbuild.ok(*phone, stdin=line)
    said = "  unchanged  root  data with the key 'monday' is in block 5 already ("
    assert again.out.startswith(said)
    assert "block 4" in odfbuild.ok(*till, stdin=b"anything").out
    assert tiny.state() == before

    # A key is recorded also where the data holds nothing new, and carried on by what comes next.
    odfbuild.ok("ingest", "root", "-s", "till", "--idempotency-key", "empty", stdin=_ONE)
    odfbuild.ok("ingest", "root", "-s", "phone", stdin=line)
    states = [
        (event.new_source_state.source_name, event.new_source_state.value)
        for event in tiny.events("root")
        if isinstance(event, AddData) and event.new_source_state
    ]
    assert states == [
        ("till", "monday"),
        ("phone", "monday"),
        ("phone", "monday"),
        ("phone", "tuesday"),
        ("till", "empty"),
        ("till", "empty"),
    ]
    assert "kind: odfbuild/idempotency-key" in odfbuild.ok("log", "root", "-n", "1").out


def test_what_cannot_be_ingested_is_refused_and_changes_nothing(
    tiny: Tiny, odfbuild: Program
) -> None:
    other = (tiny.root / "datasets" / "derived.yaml").with_name("polled.yaml")
    other.write_text(_POLLED)
    odfbuild.apply()
    before = tiny.state()
    refused = {
        ("nothing",): "there is no chain of 'nothing' here",
        ("root",): "they are: phone, till",
        ("root", "-s", "tills"): "did you mean 'till'?",
        ("derived",): "it is computed from other datasets",
        ("polled",): "it polls its source",
        ("root", "no.csv", "-s", "till"): "cannot read 'no.csv'",
        ("root", "-s", "till"): "standard input",
        ("root", "-s", "phone"): "standard input",
    }
    for arguments, part in refused.items():
        said = odfbuild("ingest", *arguments, stdin=b"id,value\nx,y\n")
        assert (said.code, "error[E0" in said.err) == (1, True), said
        assert part in said.err, said.err
        assert "Traceback" not in said.err
    assert odfbuild("ingest", "root", "--event-time", "soon").code == 64
    assert tiny.state() == before

    with tiny.workspace().claim(["root"]):
        held = odfbuild("ingest", "root", "-s", "till", "--json", "--lock-timeout=0", stdin=_ONE)
    assert (held.code, held.data["exit_code"]) == (9, 9)
    assert "another process holds the lock of 'root'" in held.err
    assert tiny.state() == before


_POLLED = """\
kind: DatasetSnapshot
version: 1
content:
  name: polled
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: FilesGlob, path: data/*.csv, order: ByName}
      read:
        kind: Csv
        header: true
        schema: [event_time TIMESTAMP, id BIGINT, value BIGINT]
      merge: {kind: Append}
"""


def test_a_pipe_is_read_once_and_data_of_one_moment_do_not_mix(
    tiny: Tiny, odfbuild: Program
) -> None:
    odfbuild.apply()
    fifo = tiny.root / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=fifo.write_bytes, args=(_TWO,))
    writer.start()
    odfbuild.ok("ingest", "root", "fifo", "-s", "till")
    writer.join()
    assert tiny.ids("root") == [1, 2]
