import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odfbuild.errors import ChainError, IntegrityError
from odfbuild.odf.chain.projection import advance as project
from odfbuild.odf.chain.projection import fold, start
from odfbuild.odf.chain.rules import check
from odfbuild.odf.chain.state import ChainState, advance
from odfbuild.odf.flatbuffers.form import decode_block, encode_block
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import (
    AddPushSource,
    DataField,
    DataSchema,
    DatasetKind,
    DataType,
    DataTypeBool,
    DataTypeOption,
    DataTypeStruct,
    DisablePollingSource,
    DisablePushSource,
    FetchStepUrl,
    MergeStrategyAppend,
    MetadataBlock,
    MetadataEvent,
    ReadStepNdJson,
    Seed,
    SetDataSchema,
    SetInfo,
    SetPollingSource,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.schema.arrow_schema import schema_of, to_raw
from odfbuild.odf.timestamp import Timestamp
from tests.odf.values import objects

SEED = Seed(dataset_id=DatasetId(bytes(32)), dataset_kind=DatasetKind.Root)
POLLING = SetPollingSource(
    fetch=FetchStepUrl(url="file:///x"), read=ReadStepNdJson(), merge=MergeStrategyAppend()
)
PUSH = AddPushSource(source_name="a", read=ReadStepNdJson(), merge=MergeStrategyAppend())


def append(state: ChainState | None, event: MetadataEvent, at: int | None = None) -> ChainState:
    number = state.sequence_number + 1 if state else 0
    block = MetadataBlock(
        system_time=Timestamp(number if at is None else at),
        prev_block_hash=state.head if state else None,
        sequence_number=number,
        event=event,
    )
    check(state, block)
    return advance(state, Multihash.sha3_256(str(number).encode()), block)


def chain(*events: MetadataEvent) -> ChainState:
    state = append(None, SEED)
    for event in events:
        state = append(state, event)
    return state


def refused(state: ChainState, event: MetadataEvent, at: int | None = None) -> str:
    with pytest.raises(ChainError) as caught:
        append(state, event, at)
    assert caught.value.code.startswith("E06")
    return caught.value.rule


def test_a_disabled_push_source_makes_room_for_polling() -> None:
    assert refused(chain(PUSH), POLLING) == "InvalidEvent"
    state = chain(PUSH, DisablePushSource(source_name="a"), POLLING)
    assert refused(state, PUSH) == "InvalidEvent"


def test_a_disabled_polling_source_makes_room_for_push() -> None:
    assert refused(chain(POLLING), PUSH) == "InvalidEvent"
    chain(POLLING, DisablePollingSource(), PUSH)


def test_a_push_source_can_come_back_after_it_was_disabled() -> None:
    assert refused(chain(PUSH), PUSH) == "NoOpEvent"
    chain(PUSH, DisablePushSource(source_name="a"), PUSH)


def test_only_what_is_active_can_be_disabled() -> None:
    assert refused(chain(), DisablePollingSource()) == "NoOpEvent"
    assert refused(chain(PUSH), DisablePushSource(source_name="b")) == "NoOpEvent"


def test_time_does_not_run_backwards() -> None:
    assert refused(chain(SetInfo()), SetInfo(), at=0) == "SystemTimeIsNotMonotonic"


def test_a_block_follows_the_newest_one() -> None:
    state = chain(SetInfo())
    block = MetadataBlock(
        system_time=Timestamp(9),
        prev_block_hash=Multihash.sha3_256(b"0"),
        sequence_number=2,
        event=SetInfo(),
    )
    with pytest.raises(ChainError) as caught:
        check(state, block)
    assert caught.value.rule == "PrevBlockNotFound"


def test_the_deepest_schema_that_is_taken_is_read_back() -> None:
    def nested(depth: int) -> SetDataSchema:
        kind: DataType = DataTypeBool()
        for _ in range(depth - 1):
            inner = DataTypeStruct(fields=(DataField(name="a", type=kind),))
            kind = DataTypeOption(inner=inner)
        return SetDataSchema(schema=DataSchema(fields=(DataField(name="a", type=kind),)))

    block = MetadataBlock(system_time=Timestamp(0), sequence_number=1, event=nested(20))
    append(chain(), block.event)
    assert decode_block(encode_block(block)) == block
    with pytest.raises(ChainError, match="nested more than 20 deep"):
        append(chain(), nested(21))


ARROW = SetDataSchema(raw_arrow_schema=to_raw(pa.schema([("a", pa.list_(pa.int64()))])))


@pytest.mark.parametrize(
    ("event", "problem"),
    [
        (SetDataSchema(), "holds one schema"),
        (replace(ARROW, schema=DataSchema(fields=())), "holds one schema"),
        (SetDataSchema(raw_arrow_schema=b""), "cannot be read"),
        (SetDataSchema(raw_arrow_schema=b"\xff" * 40), "cannot be read"),
    ],
)
def test_a_schema_that_nobody_could_read_is_not_appended(
    event: SetDataSchema, problem: str
) -> None:
    append(chain(), ARROW)
    with pytest.raises(ChainError, match=problem):
        append(chain(), event)


@given(st.binary(max_size=200) | st.data())
def test_an_arrow_schema_is_read_or_refused(data: Any) -> None:
    if not isinstance(data, bytes):
        raw = bytearray(ARROW.raw_arrow_schema or b"")
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
        data = bytes(raw)
    with suppress(IntegrityError):
        schema_of(SetDataSchema(raw_arrow_schema=data))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(MetadataEvent.__args__).flatmap(objects), max_size=8))
def test_any_event_is_taken_or_refused_and_projected_alike(events: list[MetadataEvent]) -> None:
    seed = MetadataBlock(system_time=Timestamp(0), sequence_number=0, event=SEED)
    head = Multihash.sha3_256(b"")
    state = advance(None, head, seed)
    taken = [seed]
    for event in events:
        block = MetadataBlock(
            system_time=Timestamp(0), prev_block_hash=head, sequence_number=len(taken), event=event
        )
        with suppress(ChainError):
            check(state, block)
            state = advance(state, head, block)
            taken.append(block)
    projected = start(head, seed)
    for block in taken[1:]:
        projected = project(projected, head, block)
    assert projected == fold(None, [(head, block) for block in taken])


def test_planning_imports_nothing_heavy() -> None:
    code = (
        "import sys, odfbuild.odf.chain.rules, odfbuild.odf.normalise, odfbuild.odf.schema.ddl, "
        "odfbuild.odf.schema.compare; "
        "print([m for m in ('pyarrow', 'numpy', 'flatbuffers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_layout_of_values_is_the_same_whatever_else_a_process_has_loaded() -> None:
    script = (
        "import sys; {}; from odfbuild.odf.chain.projection import layout, Projection;"
        "print(layout(Projection))"
    )
    loaded = ("pass", "import odfbuild.odf.model.messages", "import odfbuild.cli.main")
    said = {
        subprocess.run(
            [sys.executable, "-c", script.format(each)], capture_output=True, text=True, check=True
        ).stdout
        for each in loaded
    }
    assert len(said) == 1
