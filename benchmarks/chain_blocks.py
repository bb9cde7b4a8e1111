"""Blocks of chains like those of a project that was run a few times."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from odfbuild.odf.flatbuffers.form import block_hash, encode_block
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import (
    AddData,
    DataField,
    DataSchema,
    DatasetKind,
    DataSlice,
    DataTypeInt32,
    DataTypeInt64,
    DataTypeOption,
    DataTypeString,
    DataTypeTimestamp,
    ExecuteTransform,
    ExecuteTransformInput,
    FetchStepUrl,
    MergeStrategyLedger,
    MetadataBlock,
    MetadataEvent,
    OffsetInterval,
    ReadStepCsv,
    Seed,
    SetDataSchema,
    SetInfo,
    SetPollingSource,
    SetTransform,
    SourceState,
    SqlQueryStep,
    TimeUnit,
    TransformInput,
    TransformSql,
)
from odfbuild.odf.multihash import ARROW0_SHA3_256, Multihash
from odfbuild.odf.timestamp import Timestamp

START = Timestamp.parse("2024-03-01T12:00:00.123456789Z")
RUNS = 6
_COLUMNS = ("country", "city", "population", "area")
_TIME = DataTypeTimestamp(unit=TimeUnit.Millisecond, timezone="UTC")
_SCHEMA = DataSchema(
    fields=(
        DataField(name="offset", type=DataTypeInt64()),
        DataField(name="op", type=DataTypeInt32()),
        DataField(name="system_time", type=_TIME),
        DataField(name="event_time", type=DataTypeOption(inner=_TIME)),
        *(DataField(name=name, type=DataTypeOption(inner=DataTypeString())) for name in _COLUMNS),
    )
)


def blocks_of_chain(number: int) -> Iterator[tuple[str, bytes]]:
    """Ten blocks, each with its hash: Seed, source or query, info, schema and six runs."""
    events = _root_events(number) if number % 2 == 0 else _derivative_events(number)
    prev = None
    for position, event in enumerate(events):
        block = MetadataBlock(
            system_time=Timestamp(START.ns + position * 3_600_000_000_000),
            prev_block_hash=prev,
            sequence_number=position,
            event=event,
        )
        data = encode_block(block)
        prev = block_hash(data)
        yield str(prev), data


def _root_events(number: int) -> Iterator[MetadataEvent]:
    yield Seed(dataset_id=_id(number), dataset_kind=DatasetKind.Root)
    yield SetPollingSource(
        fetch=FetchStepUrl(url=f"https://example.com/{number}.csv"),
        read=ReadStepCsv(header=True, ddl_schema=tuple(f"{name} STRING" for name in _COLUMNS)),
        merge=MergeStrategyLedger(primary_key=("country", "city")),
    )
    yield SetInfo(description=f"Cities, part {number}", keywords=("cities", "benchmark"))
    yield SetDataSchema(schema=_SCHEMA)
    for run in range(RUNS):
        yield AddData(
            prev_offset=10 * run - 1 if run else None,
            new_data=_slice(number, run),
            new_watermark=START,
            new_source_state=SourceState(
                source_name="default", kind="odf/etag", value=f"{number}-{run}"
            ),
        )


def _derivative_events(number: int) -> Iterator[MetadataEvent]:
    inputs = (_id(2 * number), _id(2 * number + 2))
    yield Seed(dataset_id=_id(number), dataset_kind=DatasetKind.Derivative)
    yield SetTransform(
        inputs=tuple(
            TransformInput(dataset_ref=each, alias=f"part{place}")
            for place, each in enumerate(inputs)
        ),
        transform=TransformSql(
            engine="spark",
            queries=(SqlQueryStep(query="SELECT * FROM part0 UNION ALL SELECT * FROM part1"),),
        ),
    )
    yield SetInfo(description=f"Cities of two parts, {number}", keywords=("cities",))
    yield SetDataSchema(schema=_SCHEMA)
    for run in range(RUNS):
        yield ExecuteTransform(
            query_inputs=tuple(
                ExecuteTransformInput(
                    dataset_id=each,
                    prev_block_hash=_hash(each, run - 1) if run else None,
                    new_block_hash=_hash(each, run),
                    prev_offset=10 * run - 1 if run else None,
                    new_offset=10 * run + 9,
                )
                for each in inputs
            ),
            prev_offset=10 * run - 1 if run else None,
            new_data=_slice(number, run),
            new_watermark=START,
        )


def _id(number: int) -> DatasetId:
    return DatasetId(hashlib.sha256(b"%d" % number).digest())


def _hash(dataset: DatasetId, run: int) -> Multihash:
    return Multihash.sha3_256(dataset.binary + b"%d" % run)


def _slice(number: int, run: int) -> DataSlice:
    digest = hashlib.sha256(b"%d %d" % (number, run)).digest()
    return DataSlice(
        logical_hash=Multihash.of(ARROW0_SHA3_256, digest),
        physical_hash=Multihash.sha3_256(digest),
        offset_interval=OffsetInterval(start=10 * run, end=10 * run + 9),
        size=4_096,
    )
