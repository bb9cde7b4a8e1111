"""Datasets at an earlier time: the head, and the state of the chain there.

System times of a chain never go back, so a dataset at a time is its newest block of that time or
before. Reads the blocks after it, and those before it as far as nothing is cached. What a dataset
was before it was reset or rebuilt is not part of its chain, and not seen. Source: SQL:2011,
`FOR SYSTEM_TIME AS OF`.
"""

from __future__ import annotations

from collections.abc import Iterable

from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.cache import project
from odfbuild.store.workspace import Workspace
from odfbuild.values import Value


class PointInTime(Value):
    """A system time, or the one at which `block` of `dataset` was committed; that one counts then.

    Several blocks may have one time: of `dataset` nothing after `block` is seen.
    """

    time: Timestamp
    dataset: str | None = None
    block: Multihash | None = None

    def __str__(self) -> str:
        """The time."""
        return str(self.time)


def states_at(
    workspace: Workspace, moment: PointInTime, names: Iterable[str] | None = None
) -> dict[str, Projection]:
    """What chains said at a moment, of those of `names` (default: all) that had begun by then."""
    found = {}
    for name, now in workspace.projections(names).items():
        state = _state_at(workspace, name, now, moment)
        if state is not None:
            found[name] = state
    return found


def _state_at(
    workspace: Workspace, name: str, now: Projection, moment: PointInTime
) -> Projection | None:
    if moment.dataset == name and moment.block is not None:
        head: Multihash | None = moment.block
    elif now.system_time <= moment.time:
        return now
    else:
        head = next(
            (
                hash
                for hash, block in workspace.dataset(name).walk(now.head)
                if block.system_time <= moment.time
            ),
            None,
        )
    if head is None:
        return None
    return now if head == now.head else project(workspace.dataset(name), head, None)
