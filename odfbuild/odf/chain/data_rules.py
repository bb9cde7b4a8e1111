"""The rules of blocks with records: offsets, watermarks, checkpoints, and the inputs of a step."""

from __future__ import annotations

from typing import NoReturn

from odfbuild.odf.chain.rule_errors import refuse
from odfbuild.odf.chain.state import ChainState, LastData
from odfbuild.odf.model import AddData, ExecuteTransform, ExecuteTransformInput


def check_data(event: AddData | ExecuteTransform) -> None:
    """Rules of an event by itself; `ChainError` when it breaks one."""
    has_state = isinstance(event, AddData) and event.new_source_state is not None
    if not (event.new_data or event.new_checkpoint or event.new_watermark or has_state):
        refuse("E0609", "the event is empty")
    if event.new_data is None:
        return
    interval = event.new_data.offset_interval
    expected = 0 if event.prev_offset is None else event.prev_offset + 1
    if interval.start != expected:
        refuse(
            "E0607",
            f"the new records start at offset {interval.start}, expected {expected}",
        )
    if interval.end < interval.start:
        refuse("E0608", f"the offset interval [{interval.start}, {interval.end}] is not valid")


def check_data_follows(state: ChainState, event: AddData | ExecuteTransform) -> None:
    """Rules of an event after those of the chain so far; `ChainError` when it breaks one."""
    _check_progress(state, event)
    if isinstance(event, AddData):
        _check_added(state, event)
    else:
        _check_executed(state, event)


def _check_progress(state: ChainState, event: AddData | ExecuteTransform) -> None:
    """Watermarks and offsets continue those of the newest block with data of either kind."""
    last = state.data
    if last is not None:
        new = event.new_watermark
        if last.watermark is not None and (new is None or new < last.watermark):
            refuse(
                "E0606",
                f"the watermark goes back from {last.watermark} to {new or 'none'}",
            )
        if event.prev_offset != last.last_offset:
            refuse(
                "E0612",
                f"the event continues from offset {_or_none(event.prev_offset)}, "
                f"the chain's last offset is {_or_none(last.last_offset)}",
            )


def _check_schema_present(state: ChainState, event: AddData | ExecuteTransform) -> None:
    if event.new_data is not None and state.schema is None:
        refuse("E0613", "records cannot be added before a SetDataSchema event")


def _check_checkpoint(last: LastData | None, event: AddData | ExecuteTransform) -> None:
    expected = last.checkpoint if last else None
    if event.prev_checkpoint != expected:
        refuse(
            "E0614",
            f"the event continues from checkpoint {_or_none(event.prev_checkpoint)}, "
            f"the last one in the chain is {_or_none(expected)}",
        )


def _moves(last: LastData | None, event: AddData | ExecuteTransform) -> bool:
    checkpoint = event.new_checkpoint.physical_hash if event.new_checkpoint else None
    watermark = last.watermark if last else None
    return (
        event.new_data is not None
        or checkpoint != event.prev_checkpoint
        or event.new_watermark != watermark
    )


def _check_added(state: ChainState, event: AddData) -> None:
    last = state.added
    _check_schema_present(state, event)
    _check_checkpoint(last, event)
    if not _moves(last, event) and event.new_source_state == (last.source_state if last else None):
        refuse(
            "E0615",
            "the event neither has records nor advances checkpoint, watermark or source state",
        )


def _check_executed(state: ChainState, event: ExecuteTransform) -> None:
    last = state.executed
    _check_schema_present(state, event)
    if state.transform is None:
        refuse("E0616", "ExecuteTransform comes before any SetTransform")
    committed = [each.dataset_ref for each in state.transform.inputs]
    if [each.dataset_id for each in event.query_inputs] != committed:
        refuse("E0630", "the inputs are not those of SetTransform in the same order")
    if last is not None:
        for number, (new, old) in enumerate(
            zip(event.query_inputs, last.inputs, strict=False), start=1
        ):
            _check_input(number, new, old)
    _check_checkpoint(last, event)
    advanced = any(each.new_block_hash is not None for each in event.query_inputs)
    if not _moves(last, event) and not advanced:
        refuse(
            "E0617",
            "the event neither has records nor advances inputs, checkpoint or watermark",
        )


def _check_input(number: int, new: ExecuteTransformInput, old: ExecuteTransformInput) -> None:
    def refuse_input(code: str, problem: str) -> NoReturn:
        refuse(code, f"input {number}, {new.dataset_id}: {problem}")

    if new.new_block_hash is not None and new.new_block_hash == new.prev_block_hash:
        refuse_input("E0631", "its interval of blocks ends where it begins")
    if new.new_offset is not None and new.new_offset == new.prev_offset:
        refuse_input("E0632", "its interval of offsets ends where it begins")
    if new.prev_block_hash != (old.new_block_hash or old.prev_block_hash):
        refuse_input("E0633", "prevBlockHash is not the last block that was consumed")
    if new.prev_offset != (old.prev_offset if old.new_offset is None else old.new_offset):
        refuse_input("E0634", "prevOffset is not the last offset that was consumed")
    if new.new_offset is not None and new.new_block_hash is None:
        refuse_input("E0635", "records without the blocks that hold them")


def _or_none(value: object) -> str:
    return "none" if value is None else str(value)
