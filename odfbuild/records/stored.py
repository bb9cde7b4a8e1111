"""The records of a dataset as they are stored: its slices, and what its chain says about them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.store.committed import files_of

if TYPE_CHECKING:
    from odfbuild.odf.chain.projection import Projection
    from odfbuild.odf.multihash import Multihash
    from odfbuild.store.committed import Committed, CommittedSlice


@dataclass(frozen=True)
class Stored:
    """Slices up to the head of `state`, of which only blocks after `since` count.

    `schema` is that of the dataset, system columns included.
    """

    schema: pa.Schema
    vocab: Vocabulary
    committed: Committed
    state: Projection
    since: Multihash | None = None

    @cached_property
    def slices(self) -> tuple[CommittedSlice, ...]:
        """Oldest first."""
        return self.committed.slices(self.since)

    @cached_property
    def files(self) -> tuple[Path, ...]:
        """Files with the same records in the same order, fewer where slices are small."""
        return files_of(self.slices, self.committed.copies())

    def lasting(self) -> Stored:
        """The same, from files that stay where they are."""
        return replace(self, committed=replace(self.committed, side_cars=None))

    @property
    def data_columns(self) -> list[str]:
        """Names of columns but the system columns; the event time is among them."""
        system = (self.vocab.offset, self.vocab.operation_type, self.vocab.system_time)
        return [name for name in self.schema.names if name not in system]


def path_of(each: CommittedSlice) -> Path:
    """Where the file of a slice is, once it has been brought here."""
    return each.store.object_path("data", each.data.physical_hash)
