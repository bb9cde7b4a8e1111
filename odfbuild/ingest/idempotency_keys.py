"""The idempotency keys in a chain, without reading the chain each time.

The chain is the only record of a key. What it says up to a block is kept beside it, like other
side-cars; only the blocks after that are read.
"""

from __future__ import annotations

from dataclasses import replace

from odfbuild.errors import ChainError
from odfbuild.ingest.push_sources import IDEMPOTENCY_KEY, Counted, requests_in
from odfbuild.odf.model import AddData, SourceState
from odfbuild.odf.multihash import Multihash
from odfbuild.store.committed import Committed
from odfbuild.store.disposable import read_disposable, write_disposable

_FILE = "idempotency-keys.bin"
_STAMP = b"odfbuild idempotency keys 1\n"
WORTH_KEEPING = 32
"""Fewer blocks than this are read faster than the keys of all are written."""


def block_of_key(committed: Committed, state: SourceState) -> int | None:
    """Number of the block with the data that recorded `state`; `None` when there is none.

    Later blocks carry a state on, so the first one that has it has the data.
    """
    return blocks_of_keys(committed).get((state.source_name, state.value))


def blocks_of_keys(committed: Committed) -> dict[tuple[str, str], int]:
    """The number of the block by source and key, of all keys in a chain."""
    if committed.head is None:
        return {}
    covered, known = _kept(committed)
    try:
        new, blocks = _keys(committed, covered)
    except ChainError:  # the chain was rewritten
        covered, known = None, {}
        new, blocks = _keys(committed, None)
    found = {**new, **known}
    if committed.side_cars is not None and blocks >= max(WORTH_KEEPING, len(known) // 8):
        write_disposable(committed.side_cars / _FILE, _STAMP, (committed.head, found))
    return found


def request_of_key(
    committed: Committed, state: SourceState, number: int
) -> tuple[Multihash, Counted] | None:
    """The block with that number, and what came of the request that `state` stands for.

    `None` when the chain has no such block.
    """
    if committed.head is None:
        return None
    for hash, block in committed.store.walk(committed.head):
        if block.sequence_number != number:
            continue
        event = block.event
        if not isinstance(event, AddData):
            return None
        interval = event.new_data.offset_interval if event.new_data else None
        alone = Counted(keys=(state.value,), records=None)
        found = next((e for e in requests_in(event) if state.value in e.keys), alone)
        if found.records is None:
            found = replace(found, records=interval.end - interval.start + 1 if interval else 0)
        return hash, found
    return None


def _kept(committed: Committed) -> tuple[Multihash | None, dict[tuple[str, str], int]]:
    if committed.side_cars is None:
        return None, {}
    form = tuple[Multihash, dict[tuple[str, str], int]]
    return read_disposable(committed.side_cars / _FILE, _STAMP, form) or (None, {})


def _keys(committed: Committed, after: Multihash | None) -> tuple[dict[tuple[str, str], int], int]:
    """Keys in the blocks after `after` with the first block of each, and how many blocks those are.

    `ChainError` when `after` is not in the history of the head.
    """
    found: dict[tuple[str, str], int] = {}
    blocks = 0
    if committed.head is None or committed.head == after:
        return found, 0
    for _, block in committed.store.walk(committed.head, after):
        blocks += 1
        if not isinstance(block.event, AddData):
            continue
        state = block.event.new_source_state
        if state is not None and state.kind == IDEMPOTENCY_KEY:
            found[state.source_name, state.value] = block.sequence_number
            for each in requests_in(block.event):
                found |= {(state.source_name, key): block.sequence_number for key in each.keys}
    return found, blocks
