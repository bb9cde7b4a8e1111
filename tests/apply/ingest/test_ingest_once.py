"""Data with a key is ingested exactly once: killed at any step, or sent by several at once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest

from odfbuild.inspect.verify.integrity import verify_integrity
from odfbuild.odf.model import AddData
from odfbuild.odf.schema.arrow_schema import schema_of
from odfbuild.records.key_index import key_index
from tests.apply.killer import Killer
from tests.apply.tiny import Tiny

SENDERS = 3
KILLED, HELD = -9, 9
SIDE_CARS = ".odfbuild/side-cars"
_PUSHED = """\
kind: DatasetSnapshot
version: 1
content:
  name: root
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: phone
      read: {kind: NdJson, schema: [event_time TIMESTAMP, id BIGINT, value BIGINT]}
      merge: {kind: Append}
    - kind: AddPushSource
      sourceName: till
      read: {kind: NdJson, schema: [event_time TIMESTAMP, id BIGINT, value BIGINT]}
      merge: {kind: Ledger, primaryKey: [id]}
"""
_LINE = '{"event_time": "2024-01-01 00:00:00", "id": %d, "value": 1}\n'


@pytest.fixture(scope="module")
def senders() -> Iterator[list[Killer]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(Killer("tests.apply.ingest.indexed_at_once"))
            for _ in range(SENDERS)
        ]


@pytest.fixture
def tiny(tmp_path: Path, senders: list[Killer]) -> Tiny:
    """A dataset with two push sources and a record of each."""
    tiny = Tiny.fresh(tmp_path / "p")
    (tiny.root / "datasets" / "root.yaml").write_text(_PUSHED)
    (tiny.root / "datasets" / "derived.yaml").unlink()
    for number in range(1, 10):
        (tiny.root / f"{number}.json").write_text(_LINE % number)
    assert senders[0].run(tiny.root, "apply", "-y")[0] == 0
    for number, source in ((8, "phone"), (9, "till")):
        assert senders[0].run(tiny.root, *ingest(number, source, "old"))[0] == 0
    return tiny


def ingest(number: int, source: str, key: str) -> tuple[str, ...]:
    """The command that ingests a record."""
    return ("ingest", "root", f"{number}.json", "-s", source, "--idempotency-key", key)


def keys(tiny: Tiny) -> list[str]:
    """Keys in the chain, in the order of their blocks."""
    events = [event for event in tiny.events("root") if isinstance(event, AddData)]
    return [event.new_source_state.value for event in events if event.new_source_state]


@pytest.mark.parametrize("source", ["phone", "till"])
def test_a_request_that_is_killed_at_any_step_is_completed_by_the_same_request(
    tmp_path: Path, tiny: Tiny, senders: list[Killer], source: str
) -> None:
    killer = senders[0]
    command = ingest(1, source, "k")
    before = shutil.copytree(tiny.root, tmp_path / "before")
    assert killer.run(tiny.root, *command, also=SIDE_CARS)[0] == 0
    expected = tiny.state()
    assert tiny.ids("root") == [8, 9, 1]
    # A side-car that is older than two seconds is marked as looked at, which is a step more.
    for kill_at in count():
        again = Tiny(shutil.copytree(before, tmp_path / str(kill_at)))
        code, steps = killer.run(again.root, *command, kill_at=kill_at, also=SIDE_CARS)
        if code == 0:
            break
        assert (code, steps) == (KILLED, kill_at)
        # The sender got no answer, and sends again; then somebody sends it once more.
        for _ in range(2):
            assert killer.run(again.root, *command)[0] == 0, (again.root / "run.log").read_text()
            assert again.state() == expected, f"killed at step {kill_at}"
        assert verify_integrity(again.workspace()) == ()
        assert seen(again) == [1, 8, 9]
        shutil.rmtree(again.root)
    assert kill_at > (8 if source == "till" else 4)


def seen(tiny: Tiny) -> list[int]:
    """Keys in the index, as far as the killed request and its repetition brought it."""
    space = tiny.workspace()
    state = space.projection("root")
    assert state is not None
    assert state.schema is not None
    index = key_index(space.committed("root", state), schema_of(state.schema), ["id"])
    assert index is not None
    return sorted(index.find(pa.table({"id": list(range(12))}))["id"].to_pylist())


def test_of_requests_with_one_key_at_the_same_time_one_counts(
    tiny: Tiny, senders: list[Killer]
) -> None:
    def send(killer: Killer) -> list[int]:
        codes = []
        while not codes or codes[-1] == HELD:
            codes.append(killer.run(tiny.root, *ingest(1, "phone", "same"))[0])
        return codes

    with ThreadPoolExecutor(SENDERS) as threads:
        codes = list(threads.map(send, senders))
    assert {each[-1] for each in codes} == {0}
    assert tiny.ids("root") == [8, 9, 1]
    assert keys(tiny) == ["old", "old", "same"]


def test_requests_with_different_keys_at_the_same_time_all_count(
    tiny: Tiny, senders: list[Killer]
) -> None:
    def send(each: tuple[int, Killer]) -> None:
        number, killer = each
        while (code := killer.run(tiny.root, *ingest(number, "phone", f"k{number}"))[0]) == HELD:
            pass
        assert code == 0

    with ThreadPoolExecutor(SENDERS) as threads:
        list(threads.map(send, enumerate(senders, 1)))
    assert sorted(tiny.ids("root")) == [1, 2, 3, 8, 9]
    assert sorted(keys(tiny)) == ["k1", "k2", "k3", "old", "old"]
    assert verify_integrity(tiny.workspace()) == ()
