"""`kill -9` at each change of a file while a root reads Kafka: nothing lost, nothing twice."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apply.killer import Killer
from tests.apply.tiny import Tiny
from tests.servers.kafka import Cluster, Said, kafka

pytestmark = pytest.mark.long

KILLED = -9
ROOT = """\
kind: DatasetSnapshot
version: 1
content:
  name: root
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {{kind: Url, url: "{url}"}}
      read: {{kind: NdJson, schema: [event_time TIMESTAMP, id BIGINT, value BIGINT]}}
      merge: {{kind: Append}}
"""


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    with Killer() as started:
        yield started


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with kafka() as started:
        yield started


def said(*numbers: int) -> list[Said]:
    text = '{"event_time": "2024-01-01 00:00:00", "id": %d, "value": 1}'
    return [Said(text % each, partition=each % 2) for each in numbers]


def test_an_apply_that_is_killed_at_any_step_is_completed_by_the_next(
    tmp_path: Path, killer: Killer, cluster: Cluster
) -> None:
    before = Tiny.fresh(tmp_path / "before")
    (before.root / "datasets" / "derived.yaml").unlink()
    settings = before.root / "odfbuild.yaml"
    settings.write_text(settings.read_text() + "  ingest: {targetRecordsPerSlice: 3}\n")
    definition = ROOT.format(url=cluster.url("t"))
    (before.root / "datasets" / "root.yaml").write_text(definition)
    cluster.send("t", *said(1, 2))
    assert killer.run(before.root, "apply", "-y")[0] == 0, (before.root / "run.log").read_text()
    cluster.send("t", *said(3, 4, 5, 6, 7))
    undisturbed = Tiny(shutil.copytree(before.root, tmp_path / "undisturbed"))
    code, steps = killer.run(undisturbed.root, "apply", "-y")
    assert code == 0
    expected = undisturbed.ids("root")
    assert expected == [1, 2, 3, 5, 7, 4, 6] or sorted(expected) == list(range(1, 8))
    assert steps >= 2 * len(["object", "block", "head"]), "two slices"
    for kill_at in range(steps):
        tiny = Tiny(shutil.copytree(before.root, tmp_path / str(kill_at)))
        assert killer.run(tiny.root, "apply", "-y", kill_at=kill_at) == (KILLED, kill_at)
        assert killer.run(tiny.root, "apply", "-y")[0] == 0, (tiny.root / "run.log").read_text()
        assert tiny.ids("root") == expected, f"killed at step {kill_at}"
        assert killer.run(tiny.root, "apply", "-y") == (0, 0)
        shutil.rmtree(tiny.root)
