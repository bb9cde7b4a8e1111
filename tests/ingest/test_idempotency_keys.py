"""The idempotency keys in a chain are found whatever is kept beside it, and cost what is new."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from odfbuild.ingest import idempotency_keys
from odfbuild.ingest.idempotency_keys import block_of_key, request_of_key
from odfbuild.ingest.push_sources import (
    IDEMPOTENCY_KEY,
    REQUESTS,
    Counted,
    attribute_of,
    requests_in,
)
from odfbuild.odf.model import AddData, SourceState
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.workspace import Workspace
from tests.store.chains import NOW, create, workspace


def state(key: int, source: str = "s") -> SourceState:
    return SourceState(source_name=source, kind=IDEMPOTENCY_KEY, value=str(key))


def record(space: Workspace, states: list[SourceState]) -> None:
    """Commit blocks that record these states, each with a watermark of its own."""
    store = space.dataset("a")
    before = space.projection("a")
    assert before is not None
    first = before.blocks
    events = [
        AddData(new_watermark=Timestamp(NOW.ns + (first + n) * 10**6), new_source_state=each)
        for n, each in enumerate(states)
    ]
    store.append(store.head(), events, NOW)


def found(space: Workspace, key: int, source: str = "s") -> int | None:
    return block_of_key(space.committed("a", space.projection("a")), state(key, source))


def kept(space: Workspace) -> Path:
    return space.cache / "side-cars" / "a" / "idempotency-keys.bin"


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    """A chain of a seed and 40 keys, the last of them carried on by two more blocks."""
    space = workspace(tmp_path)
    create(space, "a")
    record(space, [*map(state, range(40)), state(39), state(39)])
    return space


def test_a_key_leads_to_the_block_of_its_data(space: Workspace) -> None:
    for _ in range(2):
        assert [found(space, key) for key in range(40)] == list(range(1, 41))
        assert (found(space, 40), found(space, 1, "other")) == (None, None)
        assert kept(space).exists()


def test_only_blocks_that_are_new_are_read(
    space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    found(space, 0)
    record(space, [state(100), state(101)])
    read = []
    decode = DatasetStore.decode
    monkeypatch.setattr(
        DatasetStore, "decode", lambda self, *given: read.append(given) or decode(self, *given)
    )
    committed = space.committed("a", space.projection("a"))
    read.clear()
    assert block_of_key(committed, state(101)) == 44
    assert len(read) == 2
    before = kept(space).read_bytes()
    monkeypatch.setattr(idempotency_keys, "WORTH_KEEPING", 1)
    record(space, list(map(state, range(200, 207))))
    assert (found(space, 206), found(space, 39)) == (51, 40)
    assert kept(space).read_bytes() != before


def test_what_is_kept_may_be_lost_damaged_or_of_another_chain(space: Workspace) -> None:
    chance = random.Random(3)
    for turn in range(30):
        assert (found(space, 7), found(space, 99)) == (8, None)
        data = bytearray(kept(space).read_bytes())
        if turn % 3 == 0:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        elif turn % 3 == 1:
            del data[chance.randrange(len(data)) :]
        else:
            data += b"x"
        kept(space).write_bytes(data)
    shutil.rmtree(space.dataset("a").path)
    again = workspace(space.state.parent)
    create(again, "a")
    assert found(again, 7) is None
    record(again, [state(70), state(7)])
    assert (found(again, 7), found(again, 39)) == (2, None)


def test_keys_of_requests_that_share_a_block_lead_to_it_and_to_what_came_of_each(
    space: Workspace,
) -> None:
    store, before = space.dataset("a"), space.projection("a")
    assert before is not None
    requests = [
        Counted(keys=("x", "y"), records=3, skipped=1),
        Counted(keys=("99",), records=0),
        Counted(keys=(), records=5),
    ]
    event = AddData(
        new_watermark=Timestamp(NOW.ns + before.blocks * 10**6),
        new_source_state=state(99),
        extra=attribute_of(requests),
    )
    store.append(store.head(), [event], NOW)
    committed = space.committed("a", space.projection("a"))
    for key, counted in (("x", requests[0]), ("y", requests[0]), ("99", requests[1])):
        asked = SourceState(source_name="s", kind=IDEMPOTENCY_KEY, value=key)
        assert block_of_key(committed, asked) == before.blocks
        assert request_of_key(committed, asked, before.blocks) == (store.head(), counted)
    assert request_of_key(committed, state(3), 4) is not None


@pytest.mark.parametrize("told", [1, [1], [{"keys": "x"}], [{"keys": ["x"], "records": "1"}]])
def test_attributes_of_another_form_are_not_ours(told: object) -> None:
    assert requests_in(AddData(extra={REQUESTS: told})) == ()
