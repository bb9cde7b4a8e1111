"""Which part of its inputs a step read: said by its checkpoint, so that the chain tells it.

What `info/branches/<branch>` says can be edited; a checkpoint is named by its hash in the block.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from odfbuild.store.branches import Limit
from odfbuild.values import Value

if TYPE_CHECKING:
    from pathlib import Path

    from odfbuild.odf.model import ExecuteTransform
    from odfbuild.store.dataset import DatasetStore

_LARGEST = 1 << 20
"""Larger checkpoints are those of other engines."""


class StepLimit(Value):
    """The limit of a step, and the identities of those of its inputs that were sampled."""

    limit: Limit
    sampled: frozenset[str]

    def of(self, dataset_id: object) -> Limit:
        """How one input was limited."""
        sampled = str(dataset_id) in self.sampled
        return Limit(sample=self.limit.sample if sampled else None, since=self.limit.since)


def limit_of_step(store: DatasetStore, event: ExecuteTransform) -> StepLimit | None:
    """How the inputs of a step were limited; `None`: it read all of them.

    `IntegrityError` E0811 when the checkpoint, which says so, is not here.
    """
    checkpoint = event.new_checkpoint
    if checkpoint is None or checkpoint.size > _LARGEST:
        return None
    try:
        said = json.loads(store.bring("checkpoints", checkpoint.physical_hash).read_bytes())
        limit = Limit.of(said.get("limit"))
        return None if limit is None else StepLimit(limit, frozenset(said["sampled"]))
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        return None  # of another engine


def is_of_coordinator(checkpoint: Path) -> bool:
    """Whether a checkpoint is no state of an engine, but tells how far inputs were read."""
    try:
        if checkpoint.stat().st_size > _LARGEST:
            return False
        found = json.loads(checkpoint.read_bytes())
        return isinstance(found, dict) and "consumed" in found
    except (ValueError, RecursionError):
        return False
