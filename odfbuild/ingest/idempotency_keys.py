"""The idempotency keys in a chain, without reading the chain each time.

The chain is the only record of a key. What it says up to a block is kept beside it, like other
side-cars; only the blocks after that are read.
"""

from __future__ import annotations

from odfbuild.errors import ChainError
from odfbuild.ingest.push_sources import IDEMPOTENCY_KEY
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
    if committed.head is None:
        return None
    covered, known = _kept(committed)
    try:
        new, blocks = _keys(committed, covered)
    except ChainError:  # the chain was rewritten
        covered, known = None, {}
        new, blocks = _keys(committed, None)
    found = {**new, **known}
    if committed.side_cars is not None and blocks >= max(WORTH_KEEPING, len(known) // 8):
        write_disposable(committed.side_cars / _FILE, _STAMP, (committed.head, found))
    return found.get((state.source_name, state.value))


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
        state = block.event.new_source_state if isinstance(block.event, AddData) else None
        if state is not None and state.kind == IDEMPOTENCY_KEY:
            found[state.source_name, state.value] = block.sequence_number
    return found, blocks
