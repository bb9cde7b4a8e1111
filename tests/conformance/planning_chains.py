"""Chains of the planning vectors, written to disk as real ones.

Labels such as `foo#2` stand for hashes: blocks get the hash of their bytes, the rest the hash of
their label.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pyarrow as pa

from odfbuild.odf.chain.step import InputStep
from odfbuild.odf.flatbuffers.form import encode_block
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import (
    AddData,
    AddPushSource,
    AttachmentsEmbedded,
    Checkpoint,
    DatasetKind,
    DataSlice,
    DisablePollingSource,
    DisablePushSource,
    ExecuteTransform,
    ExecuteTransformInput,
    FetchStepUrl,
    MergeStrategyAppend,
    MetadataBlock,
    MetadataEvent,
    OffsetInterval,
    ReadStepNdJson,
    Seed,
    SetAttachments,
    SetDataSchema,
    SetInfo,
    SetLicense,
    SetPollingSource,
    SetTransform,
    SetVocab,
    SourceState,
    SqlQueryStep,
    TransformInput,
    TransformSql,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.schema.arrow_schema import to_raw
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.workspace import Workspace

START = Timestamp.parse("2019-01-01T00:00:00Z")
SCHEMA = pa.schema([pa.field("offset", pa.int64(), nullable=False)])


def label_hash(label: str) -> Multihash:
    return Multihash.sha3_256(label.encode())


def did(name: str) -> DatasetId:
    return DatasetId(hashlib.sha3_256(name.encode()).digest())


class Chains:
    """The datasets of a case in a workspace, and the labels of their blocks."""

    def __init__(self, folder: Path, datasets: dict[str, list[dict[str, Any]]]) -> None:
        self.workspace = Workspace(folder / "chains", folder / "keys", folder / "cache")
        self.hashes: dict[str, Multihash] = {}
        self.names = {did(name): name for name in datasets}
        self._labels: dict[Multihash, str] = {}
        pending = dict(datasets)
        while pending:  # blocks of inputs have to be known before those that name them
            name = next(n for n in pending if not self._unknown(n, pending))
            self._write(name, pending.pop(name))

    def _unknown(self, name: str, pending: dict[str, list[dict[str, Any]]]) -> bool:
        used = {i["dataset"] for b in pending[name] for i in b.get("query_inputs", ())}
        return bool(used & (pending.keys() - {name}))

    def _write(self, name: str, blocks: list[dict[str, Any]]) -> None:
        store = self.workspace.dataset(name)
        previous, moment = None, START
        for number, spec in enumerate(blocks):
            if "system_time" in spec:
                moment = Timestamp.parse(spec["system_time"])
            block = MetadataBlock(
                system_time=moment,
                prev_block_hash=previous,
                sequence_number=number,
                event=self._event(name, spec),
            )
            previous = store.put_block(encode_block(block))
            self.name(spec["hash"], previous)
        assert previous is not None
        store.swap_head(None, previous)

    def name(self, label: str, hash: Multihash) -> None:
        self.hashes[label] = hash
        self._labels[hash] = label

    def hash(self, label: str | None) -> Multihash | None:
        if label is None:
            return None
        if label not in self.hashes:
            self.name(label, label_hash(label))
        return self.hashes[label]

    def label(self, hash: Multihash | None) -> str | None:
        return None if hash is None else self._labels[hash]

    def _event(self, name: str, spec: dict[str, Any]) -> MetadataEvent:
        mark = spec.get("new_watermark")
        common: dict[str, Any] = {
            "prev_offset": spec.get("prev_offset"),
            "prev_checkpoint": self.hash(spec.get("prev_checkpoint")),
            "new_data": self._slice(spec.get("new_data")),
            "new_watermark": Timestamp.parse(mark) if mark else None,
        }
        if checkpoint := self.hash(spec.get("new_checkpoint")):
            common["new_checkpoint"] = Checkpoint(physical_hash=checkpoint, size=1)
        match spec["event"]:
            case "Seed":
                return Seed(dataset_id=did(name), dataset_kind=DatasetKind[spec["datasetKind"]])
            case "SetDataSchema":
                return SetDataSchema(raw_arrow_schema=to_raw(SCHEMA))
            case "SetVocab":
                return SetVocab()
            case "SetInfo":
                return SetInfo(description=spec["hash"])
            case "SetLicense":
                return SetLicense(short_name="x", name="x", website_url="https://example.org")
            case "SetAttachments":
                return SetAttachments(attachments=AttachmentsEmbedded(items=()))
            case "SetPollingSource":
                return SetPollingSource(
                    fetch=FetchStepUrl(url="file:x"),
                    read=ReadStepNdJson(),
                    merge=MergeStrategyAppend(),
                )
            case "DisablePollingSource":
                return DisablePollingSource()
            case "DisablePushSource":
                return DisablePushSource(source_name="default")
            case "AddPushSource":
                return AddPushSource(
                    source_name="default", read=ReadStepNdJson(), merge=MergeStrategyAppend()
                )
            case "SetTransform":
                return SetTransform(
                    inputs=tuple(
                        TransformInput(dataset_ref=did(i["dataset"]), alias=i["alias"])
                        for i in spec["inputs"]
                    ),
                    transform=TransformSql(
                        engine="datafusion", queries=(SqlQueryStep(query="select 1"),)
                    ),
                )
            case "AddData":
                state = SourceState(source_name="s", kind="odf/etag", value="x")
                given = state if spec.get("new_source_state") else None
                return AddData(**common, new_source_state=given)
            case "ExecuteTransform":
                return ExecuteTransform(
                    **common,
                    query_inputs=tuple(
                        ExecuteTransformInput(
                            dataset_id=did(i["dataset"]),
                            prev_block_hash=self.hash(i["prev_block"]),
                            new_block_hash=self.hash(i["new_block"]),
                            prev_offset=i["prev_offset"],
                            new_offset=i["new_offset"],
                        )
                        for i in spec["query_inputs"]
                    ),
                )
        raise AssertionError(f"unknown event {spec['event']}")

    def _slice(self, spec: dict[str, Any] | None) -> DataSlice | None:
        if spec is None:
            return None
        physical = self.hash(spec["physical_hash"])
        assert physical is not None
        return DataSlice(
            logical_hash=label_hash("logical"),
            physical_hash=physical,
            offset_interval=OffsetInterval(start=spec["start"], end=spec["end"]),
            size=1,
        )

    def described(self, alias: str, step: InputStep) -> dict[str, Any]:
        """A step in the words of the vectors."""
        interval = step.offset_interval
        return {
            "alias": alias,
            "dataset": self.names[step.dataset_id],
            "prev_block": self.label(step.prev_block),
            "new_block": self.label(step.new_block),
            "prev_offset": step.prev_offset,
            "new_offset": step.new_offset,
            "offset_interval": {"start": interval.start, "end": interval.end} if interval else None,
            "data_slices": [self.label(s.physical_hash) for s in step.slices],
            "explicit_watermarks": [
                {"system_time": str(w.system_time), "event_time": str(w.event_time)}
                for w in step.watermarks
            ],
        }
