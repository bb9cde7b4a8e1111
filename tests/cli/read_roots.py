"""Chains of roots that were read, and of what derives from them, written without Spark."""

from __future__ import annotations

from pathlib import Path

from odfbuild.apply.definitions import resolve_changes
from odfbuild.engine.release import engine_version
from odfbuild.odf.model import (
    AddData,
    DataSlice,
    ExecuteTransform,
    ExecuteTransformInput,
    OffsetInterval,
    SourceState,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.survey.survey import survey
from tests.plan.worlds import SCHEMA


def build(root: Path, name: str, state: SourceState) -> None:
    """Three records of a root, and of the derivative that reads it."""
    now = Timestamp.parse("2026-02-03T04:05:06Z")
    seen = survey(root)
    workspace = seen.workspace
    for each in seen.plan.datasets:
        if each.name in (name, f"{name}.copy"):
            events = resolve_changes(each, workspace, engine_version())
            workspace.create(each.name, each.kind, events, now)
    piece = DataSlice(
        logical_hash=Multihash.sha3_256(b"l"),
        physical_hash=Multihash.sha3_256(b"p"),
        offset_interval=OffsetInterval(start=0, end=2),
        size=30,
    )
    store = workspace.dataset(name)
    head = store.append(
        store.head(), (SCHEMA, AddData(new_data=piece, new_source_state=state)), now
    )
    copy = workspace.dataset(f"{name}.copy")
    read = ExecuteTransformInput(dataset_id=store.identity(head), new_block_hash=head, new_offset=2)
    step = ExecuteTransform(query_inputs=(read,), new_data=piece)
    copy.append(copy.head(), (SCHEMA, step), now)
