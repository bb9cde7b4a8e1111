"""Which objects the history of a served dataset refers to: only these are given and spared.

A storage keeps the objects of all datasets under their hashes, so that a hash alone would give an
object of a dataset that the one who asks may not read. What only a branch, or a history of before,
refers to is not given either.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass, field

from odfbuild.errors import OdfbuildError
from odfbuild.odf.model import AddData, ExecuteTransform
from odfbuild.odf.multihash import Multihash
from odfbuild.records.links import link_columns, linked_hashes
from odfbuild.records.records import records_of
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.storage import ObjectKind
from odfbuild.store.workspace import Workspace


@dataclass(slots=True)
class _History:
    """What the blocks up to `head` name, and what its records link (`None`: not looked at yet)."""

    head: Multihash | None = None
    objects: set[tuple[ObjectKind, Multihash]] = field(default_factory=set)
    linked: frozenset[Multihash] | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class NamedObjects:
    """Objects by dataset. A chain is read once, and then its new blocks."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._histories: defaultdict[str, _History] = defaultdict(_History)

    def __contains__(self, asked: tuple[DatasetStore, ObjectKind, Multihash]) -> bool:
        """Whether the head of a dataset leads to an object; not when its chain is damaged."""
        store, kind, hash = asked
        history = self._histories[store.folder]
        try:
            with history.lock:
                _follow(history, store)
                if (kind, hash) in store.withdrawn():
                    return False
                if (kind, hash) in history.objects:
                    return True
                if kind != "data":
                    return False
                if history.linked is None:
                    history.linked = self._linked(store)
                return hash in history.linked
        except OdfbuildError:
            return False

    def _linked(self, store: DatasetStore) -> frozenset[Multihash]:
        state = self._workspace.projection(store.name)
        if state is None or state.schema is None:
            return frozenset()
        records = records_of(self._workspace, store.name, state, view="history")
        columns = link_columns(records.schema)
        return linked_hashes(records.batches(columns)) if columns else frozenset()


def _follow(history: _History, store: DatasetStore) -> None:
    """Add the blocks behind those that are known; all anew where the history was replaced."""
    head = store.main_head()
    if head == history.head:
        return
    found: set[tuple[ObjectKind, Multihash]] = set()
    current = head
    while current is not None and current != history.head:
        block = store.read_block(current)
        event = block.event
        if isinstance(event, AddData | ExecuteTransform):
            if event.new_data is not None:
                found.add(("data", event.new_data.physical_hash))
            if event.new_checkpoint is not None:
                found.add(("checkpoints", event.new_checkpoint.physical_hash))
        current = block.prev_block_hash
    history.objects = found if current is None else history.objects | found
    history.head, history.linked = head, None
