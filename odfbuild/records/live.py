"""How many records datasets have now: those of the history without what was retracted.

A retraction takes one record away, and is none itself; a correction is a retraction and a record.
So the number follows from the operations of records, and no other column is read: the statistics
of a slice tell that it only appends, and the column itself the rest. What was counted is kept by
head; a later head is counted from there. Nothing is fetched, and nothing is read without PyArrow
but chains of roots whose sources only append.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from odfbuild.errors import OdfbuildError
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import (
    AddPushSource,
    DatasetKind,
    SetPollingSource,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.vocabulary import vocabulary_of
from odfbuild.store.committed import Committed, CommittedSlice
from odfbuild.store.disposable import read_disposable, write_disposable
from odfbuild.store.workspace import Workspace

_STAMP = b"odfbuild live records 1\n"
_Taken: TypeAlias = dict[str, tuple[bytes, int]]
"""By identity of a dataset: a head, and how many records were retracted up to it."""


def live_records(
    workspace: Workspace, states: Mapping[str, Projection], *, newest: bool = True
) -> dict[str, int | None]:
    """The number of records in the current state of each dataset, by name.

    `None` where it takes data files that are not on this machine, or PyArrow, to tell. What is
    counted of states that are not the `newest` is not kept.
    """
    file = workspace.cache / "live-records.bin"
    kept: _Taken = read_disposable(file, _STAMP, _Taken) or {}
    new: dict[str, tuple[bytes, int]] = {}
    found: dict[str, int | None] = {}
    for name, state in states.items():
        identity, head = str(state.dataset_id), state.head.binary
        known = kept.get(identity)
        taken = known[1] if known is not None and known[0] == head else None
        if state.records == 0:
            taken = 0
        elif taken is None:
            taken = _taken_back(workspace.committed(name, state), state, known)
            if taken is not None:
                new[identity] = (head, taken)
        # What was retracted is in the history, too.
        found[name] = None if taken is None else state.records - 2 * taken
    if new and newest:
        write_disposable(file, _STAMP, {**kept, **new})
    return found


def _taken_back(
    committed: Committed, state: Projection, known: tuple[bytes, int] | None
) -> int | None:
    """How many records were retracted up to `state`; `known` tells it of an earlier head."""
    try:
        if only_appends(committed, state):
            return 0
        if importlib.util.find_spec("pyarrow") is None:
            return None
        column = vocabulary_of(state.vocab).operation_type
        if known is not None:
            try:
                later = committed.slices(Multihash.from_bytes(known[0]))
            except OdfbuildError:  # the history was rewritten
                pass
            else:
                more = _in_slices(later, column)
                return None if more is None else known[1] + more
        return _in_slices(committed.slices(), column)
    except (OdfbuildError, OSError, ValueError):
        return None  # `verify` tells what is wrong with it


def only_appends(committed: Committed, state: Projection) -> bool:
    """Whether a chain can hold nothing else: a root whose sources never took records back."""
    if state.kind is not DatasetKind.Root:
        return False
    now = (state.polling_source, *state.push_sources.values())
    if not all(each.merge.ONLY_APPENDS for each in now if each):
        return False
    sources = [
        event
        for _, block in committed.store.summary(state.head)[0]
        if isinstance(event := block.event, SetPollingSource | AddPushSource)
    ]
    return bool(sources) and all(each.merge.ONLY_APPENDS for each in sources)


def _in_slices(slices: Iterable[CommittedSlice], column: str) -> int | None:
    """How many records of slices take one back; `None` when a file is not here."""
    from odfbuild.records.operations import taken_back

    total = 0
    for each in slices:
        if not each.store.has_object("data", each.data.physical_hash):
            return None
        total += taken_back(each.store.object_path("data", each.data.physical_hash), column)
    return total
