"""Whether a derivative dataset is stale, why, and how much it will read.

Input: what it has consumed of each input, where the inputs stand and what is planned for them.
Output: a verdict whose reasons name blocks and offsets. A changed query alone runs nothing: it goes
forward with the next records.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from odfbuild.errors import PlanError
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.chain.step import Interval
from odfbuild.odf.model import ExecuteTransformInput, TransformSql
from odfbuild.odf.multihash import Multihash
from odfbuild.plan.computation import Reading, computation_of
from odfbuild.plan.cut_offs import NO_CUT_OFFS, CutOffs, News, why_nothing
from odfbuild.plan.expected_input import Amount, ExpectedInput, Share, together
from odfbuild.plan.model import Action, Pending, Reason, ReasonCode
from odfbuild.plan.verdict import IDLE, Verdict
from odfbuild.plan.ways import Computation, Way
from odfbuild.sql.bounds import (
    changes_two_at_most,
    keeps_every_record,
    kept_values,
    never_adds_records,
)
from odfbuild.sql.forecast import expected_mode
from odfbuild.sql.mode import Mode
from odfbuild.sql.translate.named import is_remote_release
from odfbuild.values import Value
from odfbuild.wording import count


class Input(Value):
    """An input as its reader sees it: dataset, name in queries, committed state, planned work."""

    name: str
    alias: str
    state: Projection | None
    outlook: ExpectedInput | None
    appends: bool = False
    """Whether its new records never take an earlier one back."""


Since = Callable[[str, Multihash | None], Interval | None]
"""`SliceIndex.since`."""


def derivative_verdict(
    name: str,
    transform: TransformSql,
    projection: Projection | None,
    inputs: Sequence[Input],
    since: Since,
    *,
    corrected: Reason | None = None,
    changed: bool = False,
    elsewhere: str = "",
    cut_offs: CutOffs = NO_CUT_OFFS,
) -> Verdict:
    """Decide about a derivative dataset whose inputs are decided already.

    With a reason why it is `corrected` it runs also without news, so that its records follow a
    changed query. `changed`: another transformation is appended before. `elsewhere` says why a
    changelog takes all records where it is computed, if it does; `cut_offs` know of steps that
    change nothing.
    """
    consumed_of = _consumption(projection, inputs)
    untouched = projection is not None and projection.ever_ran and not corrected
    if untouched and _untouched(inputs, consumed_of):
        return IDLE
    advances = []
    for each, consumed in zip(inputs, consumed_of, strict=True):
        advance = _advance(each, consumed, since)
        if advance is None:
            return _rewritten(name, each, consumed)
        advances.append(advance)
    continued = not changed and projection is not None and not projection.query_waits
    continued &= _made_what_there_is(transform, projection)
    settled: Mapping[str, str] = {}
    if continued and not corrected and not elsewhere:
        settled = _settled(transform, inputs, advances, cut_offs)
    why = ""
    if projection is not None and len(settled) == len(inputs):
        why = why_nothing(settled) if cut_offs.is_in_full(name, projection) else ""
    given = _Given(
        name, transform, projection, inputs, advances, continued, elsewhere, settled, why
    )
    return _decide(given, corrected=corrected)


class _Advance(Value):
    """What an input has committed and its reader not consumed, with the evidence.

    A later watermark counts also without records: it may close windows of the reader.
    """

    records: int = 0
    bytes: int = 0
    files: tuple[str, ...] = ()
    moves: bool = False
    reason: Reason | None = None


_NOTHING = _Advance()


def _consumption(
    projection: Projection | None, inputs: Sequence[Input]
) -> list[ExecuteTransformInput | None]:
    if projection is None or not projection.inputs:
        return [None] * len(inputs)
    by_id = {i.dataset_id: i for i in projection.inputs}
    return [by_id.get(i.state.dataset_id) if i.state else None for i in inputs]


def _untouched(
    inputs: Sequence[Input], consumed_of: Sequence[ExecuteTransformInput | None]
) -> bool:
    """Whether every input stands where it was left and stays there."""
    for each, consumed in zip(inputs, consumed_of, strict=True):
        head = each.state.head if each.state else None
        if each.outlook or head != (consumed.new_block_hash if consumed else None):
            return False
    return True


def _advance(each: Input, consumed: ExecuteTransformInput | None, since: Since) -> _Advance | None:
    """What is new in an input; `None` when its history was rewritten under its reader."""
    state = each.state
    if state is None:
        return _NOTHING
    block = consumed.new_block_hash if consumed else None
    offset = consumed.new_offset if consumed else None
    if state.head == block:
        return _NOTHING
    if block is None:
        records, size, moves = state.records, state.data_bytes, state.watermark is not None
        files: tuple[str, ...] = ("",)  # more than can be told of
    else:
        interval = since(each.name, block)
        if interval is None:
            return None
        slices = interval.slices
        records = sum(s.offset_interval.end - s.offset_interval.start + 1 for s in slices)
        size = sum(s.size for s in slices)
        files = tuple(str(s.physical_hash) for s in slices)
        moves = interval.moves_watermark
    if not records and not moves:
        return _NOTHING
    if records:
        message = f"{each.name} has {count(records, 'new record')}"
    else:
        message = f"the watermark of {each.name} moved to {state.watermark}"
    reason = Reason(
        code=ReasonCode.INPUT_ADVANCED,
        message=message,
        input=each.name,
        from_block=block,
        from_offset=offset,
        to_block=state.head,
        to_offset=state.last_offset,
    )
    return _Advance(records, size, files, moves, reason)


def _settled(
    transform: TransformSql,
    inputs: Sequence[Input],
    advances: Sequence[_Advance],
    cut_offs: CutOffs,
) -> Mapping[str, str]:
    """Inputs that certainly bring nothing to the query, by alias, and why."""
    news = [
        News(each.name, each.alias, each.state, advance.files)
        for each, advance in zip(inputs, advances, strict=True)
        if each.state is not None and not (each.outlook and each.outlook.amount.most != 0)
    ]
    return cut_offs.settled(transform, news)


_NEVER_RAN = Reason(code=ReasonCode.NEVER_RUN, message="it was never computed")


class _Given(Value):
    """What a decision follows from. `continued`: the last step was done with the same query.

    Inputs that are `settled` (aliases) bring nothing to the query; `why_nothing` says why the step
    certainly changes nothing, if so.
    """

    name: str
    transform: TransformSql
    projection: Projection | None
    inputs: Sequence[Input]
    advances: Sequence[_Advance]
    continued: bool
    elsewhere: str
    settled: Collection[str]
    why_nothing: str


def _decide(given: _Given, *, corrected: Reason | None) -> Verdict:
    projection, inputs, advances = given.projection, given.inputs, given.advances
    # A schema is established by the first run, also when no record came out of it.
    never_ran = projection is None or not (projection.ever_ran or projection.schema)
    reasons = [_NEVER_RAN] if never_ran else [corrected] if corrected else []
    waiting = [i for i in inputs if not (i.state and i.state.schema) and not i.outlook]
    if waiting:
        return Verdict(reasons=(*reasons, *map(_no_data, waiting)))
    reasons += [advance.reason for advance in advances if advance.reason]
    reasons += [_planned(i.name, i.outlook) for i in inputs if i.outlook]
    ready = [bool(i.state and i.state.schema) or (i.outlook and i.outlook.certain) for i in inputs]
    certain = all(ready) and (
        never_ran
        or corrected is not None
        or any(advance.reason for advance in advances)
        or any(i.outlook and i.outlook.certain for i in inputs)
    )
    if not certain and not any(i.outlook for i in inputs):
        return IDLE
    # What somebody has committed already is read for certain; what is planned may bring nothing.
    sure = never_ran or corrected is not None or any(advance.reason for advance in advances)
    sure = certain and (sure or _brings_records(inputs))
    cost = _cost(given, sure=sure)
    outlook = ExpectedInput(
        certain=certain,
        records=cost.brings,
        exact=cost.brings_exactly,
        causes=_one_path(reasons),
        share=cost.share,
    )
    moves = any(advance.moves for advance in advances) or any(i.outlook for i in inputs)
    return Verdict(
        action=Action.RUN if certain else Action.POLL,
        reasons=tuple(reasons),
        pending=cost.pending,
        # Readers of what changes nothing have nothing to do, unless windows may close.
        outlook=None if given.why_nothing and not moves else outlook,
    )


def _brings_records(inputs: Sequence[Input]) -> bool:
    return any(each.outlook.amount.least for each in inputs if each.outlook)


class _Cost(Value):
    """What a run reads, and how many records it gives at most (`None`: nobody can tell)."""

    pending: Pending
    brings: int | None
    brings_exactly: bool
    share: Share | None


def _cost(given: _Given, *, sure: bool) -> _Cost:
    transform, projection = given.transform, given.projection
    inputs, advances = given.inputs, given.advances
    planned = [each.outlook for each in inputs if each.outlook]
    coming = together(planned)
    waiting = sum(advance.records for advance in advances)
    new = Amount(waiting, waiting) + coming
    committed = [each.state.records if each.state else 0 for each in inputs]
    whole = Amount(sum(committed), sum(committed)) + coming
    # Where one of several inputs is empty, the others may not be needed.
    all_there = len(inputs) == 1 or all(
        records or (each.outlook and each.outlook.amount.least)
        for records, each in zip(committed, inputs, strict=True)
    )
    # The mode takes a look at every word, and changes nothing where all is new and may not come.
    any_mode = new == whole and not new.least and not (projection and projection.records)
    any_mode &= not is_remote_release(transform.version)
    mode = Mode.MAP if any_mode else expected_mode(transform).mode
    computation = None
    if given.why_nothing:
        read = Amount()
        computation = Computation(way=Way.NONE, total=whole.most, why=given.why_nothing)
    elif mode is Mode.CHANGELOG:
        computation, read = _computation(given)
        if not (sure and all_there):
            read = Amount(0, read.most)
    else:
        read = new if mode in (Mode.MAP, Mode.CHECKPOINT) else Amount(0, whole.most)
    aliases = [each.alias for each in inputs]
    brings = None
    if given.why_nothing:
        brings = 0
    elif mode is not Mode.CHECKPOINT and never_adds_records(transform, aliases):
        brings = new.most
        if mode is not Mode.MAP:
            brings = _most_changes(transform, mode, projection, new, whole)
    exactly = brings == 0
    share = None
    if mode is Mode.MAP and brings:
        exactly = new.exact and keeps_every_record(transform, aliases)
        kept = kept_values(transform, aliases) if len(inputs) == 1 else None
        if kept and expected_mode(transform).mode is Mode.MAP:
            share = Share(inputs[0].name.lower(), *kept, brings)
    pending = Pending(
        records=new.most,
        # Slices that do not exist yet have no size.
        bytes=None if planned else sum(advance.bytes for advance in advances),
        exact=new.exact,
        read_least=read.least,
        read_most=read.most,
        read_bytes=_bytes(given, computation),
        computation=computation,
    )
    return _Cost(pending, brings, exactly, share)


def _bytes(given: _Given, computation: Computation | None) -> int | None:
    """How many bytes of inputs are known to be read where that is more than the new ones."""
    if computation is None or not computation.reads_all:
        return None
    return sum(each.state.data_bytes for each in given.inputs if each.state)


def _computation(given: _Given) -> tuple[Computation | None, Amount]:
    """How a changelog is computed, and how many records of its inputs that reads."""
    readings = []
    for each, advance in zip(given.inputs, given.advances, strict=True):
        coming = together([each.outlook]) if each.outlook else Amount()
        new = Amount(advance.records, advance.records) + coming
        new = Amount() if each.alias in given.settled else new
        readings.append(Reading(each.alias, each.state, new, coming, each.appends))
    return computation_of(
        given.transform,
        given.projection,
        readings,
        continued=given.continued,
        elsewhere=given.elsewhere,
    )


def _most_changes(
    transform: TransformSql,
    mode: Mode,
    projection: Projection | None,
    new: Amount,
    whole: Amount,
) -> int | None:
    """How many records a result that takes more than single records can gain.

    All that it said may go, and as much come as there is to read.
    """
    if new.most is None or whole.most is None:
        return None
    most = whole.most + (projection.records if projection else 0)
    # One record closes any number of windows.
    by_groups = mode is Mode.CHANGELOG and changes_two_at_most(transform)
    if by_groups and _made_what_there_is(transform, projection):
        return min(most, 2 * new.most)
    return most


def _made_what_there_is(transform: TransformSql, projection: Projection | None) -> bool:
    """Whether the last step was done with the same query."""
    if projection is None or projection.transform is None or projection.query_waits:
        return False
    made = projection.transform.transform
    return (made.queries, made.temporal_tables) == (transform.queries, transform.temporal_tables)


def _planned(name: str, outlook: ExpectedInput | None) -> Reason:
    if outlook is None:
        raise AssertionError("only a planned input is a reason")
    message = (
        f"{name} will run" if outlook.certain else f"{name} will run if its source has new data"
    )
    return Reason(
        code=ReasonCode.UPSTREAM_PLANNED, message=message, input=name, children=outlook.causes
    )


def _one_path(reasons: Sequence[Reason]) -> tuple[Reason, ...]:
    """Reasons for readers: of several planned inputs only the first, with its causes.

    A graph has exponentially many paths to its roots; each reader shows one for each of its inputs.
    """
    kept: list[Reason] = []
    seen_upstream = False
    for reason in reasons:
        upstream = reason.code is ReasonCode.UPSTREAM_PLANNED
        if not (upstream and seen_upstream):
            kept.append(reason)
        seen_upstream = seen_upstream or upstream
    return tuple(kept)


def _no_data(each: Input) -> Reason:
    return Reason(
        code=ReasonCode.INPUT_HAS_NO_DATA,
        message=f"{each.name} has no data yet, and none is planned",
        input=each.name,
    )


def _rewritten(name: str, each: Input, consumed: ExecuteTransformInput | None) -> Verdict:
    block = consumed.new_block_hash if consumed else None
    state = each.state
    reason = Reason(
        code=ReasonCode.INPUT_REWRITTEN,
        message=f"the history of {each.name} no longer holds the block that was consumed",
        input=each.name,
        from_block=block,
        from_offset=consumed.new_offset if consumed else None,
        to_block=state.head if state else None,
        to_offset=state.last_offset if state else None,
    )
    refusal = PlanError(
        f"'{name}' cannot continue: the history of its input '{each.name}' was rewritten",
        code="E0306",
        notes=(
            f"'{name}' consumed '{each.name}' up to block {block}",
            f"the head of '{each.name}', {state.head if state else None}, does not descend from it",
        ),
        help=f"restore the chain of '{each.name}' that holds that block, or compute '{name}' "
        f"from the start: --allow rebuild:{name}+",
        dataset=name,
    )
    return Verdict(reasons=(reason,), refusal=refusal)
