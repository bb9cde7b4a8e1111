"""The upstream blocks from which the records of a dataset were made.

Read from the chains alone. An upstream dataset is looked at as it was when it was read, not as it
is now, down to the roots; so two paths to one root can end at different blocks of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from odfbuild.errors import IntegrityError
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import SetTransform
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.cache import project
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.workspace import Workspace
from odfbuild.values import Value


class Era(Value, kw_only=True):
    """Records `first` to `last` were made by the query of one `SetTransform` block.

    `engine` is its name and, where it was written down, its release.
    """

    sequence_number: int
    block: Multihash
    since: Timestamp
    first: int
    last: int
    engine: str
    query: str


class Vintage(Value, kw_only=True):
    """A dataset as it was at `block`, with what it was computed from then.

    `name` is its alias, or its identity where it has no chain here. `block` is `None` where nothing
    was consumed yet. `last_offset` is that of the newest record that was read. `behind` counts the
    blocks that came after; `None`: the block is not in the chain of now (`block` may be lost). What
    stands elsewhere in the tree is `repeated` without its inputs.
    """

    name: str
    block: Multihash | None
    sequence_number: int | None = None
    system_time: Timestamp | None = None
    last_offset: int | None = None
    behind: int | None = None
    repeated: bool = False
    inputs: tuple[Vintage, ...] = ()


def vintage(workspace: Workspace, name: str) -> Vintage:
    """The vintage of a dataset at its head, down to the roots."""
    head = workspace.dataset(name).head()
    return _Reader(workspace).look(name, head, None)


def eras(workspace: Workspace, name: str) -> tuple[Era, ...]:
    """Which query made which records, oldest first; none of a root."""
    state = workspace.projection(name)
    if state is None or not state.eras:
        return ()
    store = workspace.dataset(name)
    wanted = {era.sequence_number: era for era in state.eras}
    found = []
    for hash, block in store.walk(state.head):
        era = wanted.get(block.sequence_number)
        if era is None or not isinstance(block.event, SetTransform):
            continue
        transform = block.event.transform
        queries = [step.query for step in transform.queries or ()] or [transform.query or ""]
        found.append(
            Era(
                sequence_number=era.sequence_number,
                block=hash,
                since=block.system_time,
                first=era.first,
                last=era.last,
                engine=" ".join(filter(None, (transform.engine, transform.version))),
                query="; ".join(queries),
            )
        )
    return tuple(reversed(found))


class _Reader:
    """Looks at datasets as they were; tells the inputs of each of them once."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._names = {p.dataset_id: name for name, p in workspace.readable().items()}
        self._told: set[tuple[str, Multihash]] = set()

    def look(self, name: str, block: Multihash | None, offset: int | None) -> Vintage:
        """A dataset at a block; `offset` is what its reader consumed, `None` at the top."""
        if block is None:
            return Vintage(name=name, block=None)
        if name not in self._names.values():
            return Vintage(name=name, block=block, last_offset=offset)
        store = self._workspace.dataset(name)
        try:
            state = self._state(store, block)
        except IntegrityError:
            return Vintage(name=name, block=block, last_offset=offset)
        found = Vintage(
            name=name,
            block=block,
            sequence_number=state.blocks - 1,
            system_time=state.system_time,
            last_offset=state.last_offset if offset is None else offset,
            behind=_behind(store, block, state.blocks - 1),
        )
        repeated = (name, block) in self._told and bool(state.consumed)
        self._told.add((name, block))
        inputs = () if repeated else tuple(self._inputs(state))
        return replace(found, repeated=repeated, inputs=inputs)

    def _inputs(self, state: Projection) -> Sequence[Vintage]:
        consumed = {each.dataset_id: each for each in state.inputs}
        refs = [each.dataset_ref for each in state.transform.inputs] if state.transform else []
        found = []
        for ref in refs:
            if not isinstance(ref, DatasetId):
                continue  # never in a chain
            left = consumed.get(ref)
            name = self._names.get(ref, str(ref))
            block = left.new_block_hash if left else None
            found.append(self.look(name, block, left.new_offset if left else None))
        return found

    def _state(self, store: DatasetStore, block: Multihash) -> Projection:
        now = self._workspace.projection(store.name)
        return now if now is not None and now.head == block else project(store, block, None)


def _behind(store: DatasetStore, block: Multihash, number: int) -> int | None:
    """Blocks of the chain after `block`; `None` when it is not part of it."""
    head = store.head()
    for count, (hash, each) in enumerate(store.walk(head) if head is not None else ()):
        if hash == block:
            return count
        if each.sequence_number <= number:
            return None
    return None
