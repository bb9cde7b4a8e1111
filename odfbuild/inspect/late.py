"""Find late records: those after a window was closed, or behind their watermark.

Read from chains and event times, by no engine. Source: Open Data Fabric, "Watermark".
"""

from __future__ import annotations

from collections.abc import Iterator

from odfbuild.engine.event_windows import EventWindows, late_records, windows_of
from odfbuild.engine.request import history_files
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import vocabulary_of
from odfbuild.store.workspace import Workspace
from odfbuild.values import Value


class LateRecord(Value):
    """A record of `dataset`, and the watermark that held there when it came."""

    dataset: str
    offset: int
    event_time: Timestamp
    watermark: Timestamp


class Late(Value):
    """Records that came too late for windows of `dataset`, or without any for its watermark."""

    dataset: str
    has_windows: bool
    found: tuple[LateRecord, ...]


def late(workspace: Workspace, name: str, state: Projection) -> Late:
    """Records that windows of a dataset leave out; where it has none, its own late records.

    The windows are those of the query that is in force now.
    """
    windows = windows_of(state.transform.transform) if state.transform else None
    if windows is None:
        return Late(name, False, tuple(_found(workspace, name, state, state.head, None)))
    found: list[LateRecord] = []
    for each in state.inputs:
        alias = workspace.resolve(each.dataset_id)
        now = workspace.projection(alias) if alias else None
        block = each.new_block_hash or each.prev_block_hash
        if alias is not None and now is not None and block is not None:
            found += _found(workspace, alias, now, block, windows)
    return Late(name, True, tuple(found))


def _found(
    workspace: Workspace,
    name: str,
    state: Projection,
    head: Multihash,
    windows: EventWindows | None,
) -> Iterator[LateRecord]:
    files = history_files(workspace.dataset(name), head)
    for each in late_records(files, vocabulary_of(state.vocab), windows):
        for offset, micros in zip(each.offsets, each.micros, strict=True):
            yield LateRecord(name, int(offset), Timestamp(int(micros) * 1000), each.watermark)
