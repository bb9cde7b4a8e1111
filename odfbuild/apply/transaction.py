"""Collect everything that one commit of a dataset contains, then commit it.

Definition events and the first slice they lead to go together: either the chain has them all, or
none. Objects come before blocks, blocks before the head, so a crash at any point leaves at most
unreferenced files. Source: Open Data Fabric, "Metadata Chain"; reference behaviour, write order.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.odf.chain.projection import Projection, advance
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import DatasetKind, MetadataBlock, MetadataEvent
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.garbage import renew
from odfbuild.store.keys import new_pair
from odfbuild.store.workspace import Workspace

if TYPE_CHECKING:
    from odfbuild.apply.audit import Audit

_NOWHERE = Multihash(b"")


@dataclass(slots=True)
class Transaction:
    """Events to append to `alias` on top of `base` (`None`: the dataset is to be created).

    `state` is what the chain will say once this is committed. `replaces` is the head that the chain
    has now, when `base` is an older block and what came after it is to be no longer part of it.
    `audit` looks at records before they are taken in.
    """

    workspace: Workspace
    alias: str
    kind: DatasetKind
    base: Projection | None
    system_time: Timestamp
    replaces: Multihash | None = None
    audit: Audit | None = None
    events: list[MetadataEvent] = field(default_factory=list)
    objects: list[tuple[Path, Multihash]] = field(default_factory=list)
    checkpoints: list[tuple[Path, Multihash]] = field(default_factory=list)
    state: Projection = field(init=False)
    identity: tuple[DatasetId, bytes] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        personal = self.workspace.personal
        if self.base is None and personal and personal.has(self.alias):
            self.identity = new_pair()  # encrypted values are tied to it
        self.state = self.base or Projection(
            dataset_id=self.identity[0] if self.identity else DatasetId(bytes(32)),
            kind=self.kind,
            head=_NOWHERE,
            blocks=1,
            system_time=self.system_time,
        )

    def add(self, *events: MetadataEvent) -> None:
        """Put events behind those already gathered."""
        for event in events:
            block = MetadataBlock(
                system_time=self.system_time,
                prev_block_hash=self.state.head,
                sequence_number=self.state.blocks,
                event=event,
            )
            self.state = advance(self.state, _NOWHERE, block)
            self.events.append(event)

    def add_data(self, staged: Path, physical_hash: Multihash) -> None:
        """Take over a staged data file; it moves into the dataset on commit."""
        self.objects.append((staged, physical_hash))

    def add_checkpoint(self, staged: Path, physical_hash: Multihash) -> None:
        """Take over a staged checkpoint file; it moves into the dataset on commit."""
        self.checkpoints.append((staged, physical_hash))

    @contextmanager
    def undone_by_error(self) -> Iterator[None]:
        """What is added within counts only if nothing is raised there."""
        events, objects, state = len(self.events), len(self.objects), self.state
        checkpoints = len(self.checkpoints)
        try:
            yield
        except BaseException:
            self.state = state
            del self.events[events:], self.objects[objects:], self.checkpoints[checkpoints:]
            raise

    @property
    def is_empty(self) -> bool:
        """Whether a commit would change nothing."""
        return self.base is not None and not self.events and self.replaces is None

    def commit(self) -> int:
        """Append everything and move the head once; returns the number of blocks added.

        Raises `StaleHeadError` when another writer has moved the head, and nothing is visible then.
        """
        if self.is_empty:
            return 0
        if self.base is None:
            self.workspace.create(
                self.alias,
                self.kind,
                self.events,
                self.system_time,
                objects=self.objects,
                checkpoints=self.checkpoints,
                identity=self.identity,
            )
            return len(self.events) + 1
        store = self.workspace.dataset(self.alias)
        store.put_objects("data", self.objects)
        store.put_objects("checkpoints", self.checkpoints)
        head = self.replaces or self.base.head
        if self.replaces is not None:
            renew(store, self.replaces)
        store.append(head, self.events, self.system_time, onto=self.base.head)
        return len(self.events)
