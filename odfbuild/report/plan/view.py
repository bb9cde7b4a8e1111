"""The rows of a plan, which all output formats show in the same order and words.

A row is a dataset that something happens to. Text, Markdown and HTML only lay these rows out, so
that no reader sees another plan than the others. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import unified_diff
from itertools import islice
from typing import Any, overload

from odfbuild.errors import Location
from odfbuild.odf.model import MetadataEvent, SetDataSchema
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.yaml_form import to_data
from odfbuild.plan.branch import Start
from odfbuild.plan.changes.classify import category
from odfbuild.plan.document import summary
from odfbuild.plan.drift import ChainDrift
from odfbuild.plan.engines import translation_of
from odfbuild.plan.expected_input import Amount, total
from odfbuild.plan.model import (
    Action,
    ColumnEffect,
    DatasetPlan,
    Plan,
    Reason,
    ReasonCode,
)
from odfbuild.plan.tables import CERTAIN, TableStep
from odfbuild.plan.windows import WindowRecords
from odfbuild.report.forms.rows import EventView, Row
from odfbuild.report.forms.words import behind_window, short, size
from odfbuild.report.forms.yaml_text import yaml_lines
from odfbuild.report.plan.computation import computation_lines, cut_off_lines, of_how_many
from odfbuild.report.plan.instances import grouped
from odfbuild.report.plan.readers import Readers
from odfbuild.report.plan.sharing import ExternalLine, external_lines, publishing_lines
from odfbuild.report.plan.unseen import NOTHING_UNSEEN, Unseen, is_unseen, unseen_of
from odfbuild.sql.mode import Mode
from odfbuild.values import Value
from odfbuild.wording import count


class PlanView(Value, kw_only=True):
    """A plan as rows between a head line and closing lines; what drifted comes before the rows.

    What may happen, because `unseen` sources may have new data, is told apart from what will.
    """

    project: str
    head: str
    drift: Sequence[ChainDrift]
    rows: Sequence[Row]
    external: Sequence[ExternalLine]
    publishing: tuple[str, ...]
    notes: tuple[str, ...]
    closing: str
    refused: int
    waiting: int
    unseen: Unseen = NOTHING_UNSEEN
    promotes: str | None = None
    branch: str | None = None
    publishes: bool = False
    complete: bool = True

    @property
    def nothing(self) -> str:
        """What stands for a plan in which nothing happens."""
        if self.promotes:
            return f"No changes. The heads have all that the branch '{self.promotes}' has."
        if self.branch is not None:
            return f"No changes in branch {self.branch}."
        seen = " that plan can check" if self.unseen else ""
        if self.waiting:
            waiting = f"{count(self.waiting, 'dataset')} with results of an earlier query"
            return f"No changes. {waiting}; all others{seen} are up to date."
        which = "All datasets" if self.complete else "The selected datasets"
        return f"No changes. {which}{seen} are up to date."

    @property
    def has_changes(self) -> bool:
        """Whether something happens to any dataset or table, or one is refused."""
        return self.publishes or any(row.action for row in self.rows)

    @property
    def title(self) -> str:
        """What happens and what is refused, as a heading."""
        refused = f", {self.refused} refused" if self.refused else ""
        return (self.closing if self.has_changes else self.nothing).rstrip(".") + refused


def view(plan: Plan) -> PlanView:
    """The rows of a plan: refusals first, then what drops records, orphaned chains last.

    The rest is in order of work.
    """
    rank = {Action.REFUSE: 0, Action.REBUILD: 1, Action.DELETE: 1, Action.FORGET: 3}
    found = [
        d
        for d in plan.datasets
        if (d.actions and not is_unseen(d)) or _is_cosmetic(d) or d.query_waits
    ]
    found.sort(key=lambda d: rank.get(d.actions[0], 2) if d.actions else 2)
    affected = sum(bool(dataset.actions) for dataset in found)
    selected = "" if plan.complete or plan.branch else " selected"
    total = count(len(plan.datasets), "dataset") + selected
    where = f" in branch {plan.branch.name}" if plan.branch else ""
    counts = summary(plan)
    of = plan.project if plan.promotes is None else f"the promotion of {plan.promotes}"
    starts = {each.dataset: each for each in plan.branch.starts} if plan.branch else {}

    def rows(datasets: Sequence[DatasetPlan]) -> Sequence[Row]:
        return _Rows(datasets, readers, windows, starts)

    readers, windows = Readers(plan), {each.dataset: each for each in plan.windows}
    return PlanView(
        project=plan.project,
        head=f"Plan for {of}{where}: {total}, {affected} affected",
        drift=plan.drift,
        rows=rows(found),
        unseen=unseen_of(plan, rows),
        external=external_lines(plan),
        publishing=(*_of_branch(plan), *publishing_lines(plan)),
        notes=tuple(_notes(plan, counts)),
        closing=_closing(counts),
        refused=counts["refuse"] + sum(each.step is TableStep.REFUSE for each in plan.tables),
        waiting=sum(dataset.query_waits for dataset in found),
        promotes=plan.promotes,
        branch=plan.branch.name if plan.branch else None,
        publishes=any(each.step in (*CERTAIN, TableStep.REFUSE) for each in plan.tables),
        complete=plan.complete,
    )


def closing_line(plan: Plan) -> str:
    """The last line of every plan that has something in it; its form is stable."""
    return _closing(summary(plan))


def _closing(counts: Mapping[str, int]) -> str:
    if "promote" in counts:
        return f"Promotion: {counts['promote']} to move, {counts['run']} to run first."
    return (
        f"Plan: {counts['create']} to create, {counts['change']} to change, "
        f"{counts['run']} to run, {counts['reset']} to reset, {counts['delete']} to delete."
    )


def _is_cosmetic(dataset: DatasetPlan) -> bool:
    return any(reason.code is ReasonCode.COSMETIC for reason in dataset.reasons)


class _Rows(Sequence[Row]):
    """Rows that are made up to the last one looked at: most of a large plan is never shown."""

    def __init__(
        self,
        datasets: Sequence[DatasetPlan],
        readers: Readers,
        windows: Mapping[str, WindowRecords],
        starts: Mapping[str, Start],
    ) -> None:
        self._length = len(datasets)
        self._made: list[Row] = []
        self._rest = grouped(
            (
                _row(dataset, readers, windows.get(dataset.name), starts.get(dataset.name)),
                dataset.location,
            )
            for dataset in datasets
        )

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        last = max(index.indices(self._length)[:2]) if isinstance(index, slice) else index
        wanted = self._length if last < 0 else last + 1
        self._made += islice(self._rest, max(0, wanted - len(self._made)))
        return self._made[index]


def _row(
    dataset: DatasetPlan, readers: Readers, windows: WindowRecords | None, start: Start | None
) -> Row:
    action = dataset.actions[0] if dataset.actions else None
    place = str(dataset.location) if dataset.location else None
    if dataset.refusal is not None or action in (None, Action.FORGET):
        return Row(
            name=dataset.name,
            action=action,
            what=_what(dataset, action),
            place=place,
            refusal=dataset.refusal,
            reasons=tuple(
                reason_line(reason) for reason in dataset.reasons if reason.code in _OF_ORPHANED
            ),
            causes=tuple(_causes(dataset)),
        )
    changed = Action.APPEND in dataset.actions
    shown = [change for change in dataset.changes if change.before is not None or changed]
    last = dataset.actions[-1]
    then = last if last is not action and last in (Action.RUN, Action.POLL) else None
    return Row(
        name=dataset.name,
        action=action,
        what=_what(dataset, action),
        place=place,
        events=(
            *(event_view(c.before, c.after, c.location) for c in shown),
            *_translation(dataset),
        ),
        notes=(
            *_columns(dataset),
            *readers.of(dataset),
            *_mode(dataset),
            *computation_lines(dataset.pending),
            *_checked_against(dataset),
            *_vintage(dataset),
            *(_windows(windows) if windows else ()),
            *((_start(action, start),) if start else ()),
        ),
        then=(then, _amount(dataset)) if then else None,
        files=dataset.pending.files if dataset.pending else (),
        reasons=tuple(
            _because(reason)
            for reason in dataset.reasons
            if reason.code not in _SAID_ALREADY and not _is_implied(reason, dataset)
        ),
        causes=tuple(_causes(dataset)),
    )


def _checked_against(dataset: DatasetPlan) -> Iterator[str]:
    """What is built first because its values are needed to check the new records."""
    if dataset.checked_against and {Action.RUN, Action.POLL} & {*dataset.actions}:
        yield f"waits for {', '.join(dataset.checked_against)}, to which its checks refer"


def _what(dataset: DatasetPlan, action: Action | None) -> str:
    events = ", ".join(change.after.KIND for change in dataset.changes)
    match action:
        case Action.PROMOTE:
            return _promotion(dataset)
        case Action.RENAME:
            what = f"renamed from {dataset.renamed_from}; its chain stays the same"
            return f"{what}; {category(dataset)}: {events}" if events else what
        case Action.CREATE:
            return f"new {dataset.kind.name.lower()}: {events}" if events else "new"
        case Action.REBUILD:
            return "rebuilt: its history starts over"
        case Action.APPEND:
            return f"{category(dataset)}: {events}"
        case Action.RUN | Action.POLL:
            return _amount(dataset)
        case Action.FORGET:
            return "orphaned: its definition was removed; its chain stays"
        case Action.DELETE:
            return "deleted: its chain and its records"
        case Action.REFUSE:
            return "refused"
    waiting = [each.message for each in dataset.reasons if each.code is ReasonCode.QUERY_WAITS]
    if waiting:
        return waiting[0]
    return "cosmetic: only white space or comments changed in SQL; nothing is appended"


def _start(action: Action | None, start: Start) -> str:
    rebuilt = action is Action.REBUILD
    return f"instead of the history up to {start.place}" if rebuilt else str(start)


def _promotion(dataset: DatasetPlan) -> str:
    """How the head gets to what the branch has."""
    promoted = dataset.promoted
    if promoted is None:
        raise AssertionError("what is promoted says how")
    if promoted.replays:
        return "replayed on top of the head" if promoted.onto else "computed again in the branch"
    amount = count(promoted.blocks, "block")
    if promoted.records:
        amount += f", {count(promoted.records, 'record')}"
    return f"{'new' if dataset.expected_head is None else 'moved to the branch'}: {amount}"


# The line of the dataset, the diff or the amount says these.
_SAID_ALREADY = {
    ReasonCode.NEW,
    ReasonCode.RENAMED,
    ReasonCode.SOURCE_CHANGED,
    ReasonCode.TRANSFORM_CHANGED,
    ReasonCode.VOCAB_CHANGED,
    ReasonCode.INFO_CHANGED,
    ReasonCode.SCHEMA_CHANGED,
    # Why it does not run as well is told by the whole trees.
    ReasonCode.SOURCE_UNCHANGED,
    ReasonCode.HEAD_UNMOVED,
    ReasonCode.BRANCH_ONLY,
}


_OF_ORPHANED = {ReasonCode.STILL_READ, ReasonCode.LOOKS_RENAMED}


def _is_implied(reason: Reason, dataset: DatasetPlan) -> bool:
    return reason.code is ReasonCode.NEVER_RUN and Action.CREATE in dataset.actions


def event_view(
    before: MetadataEvent | None, after: MetadataEvent | None, location: Location | None
) -> EventView:
    """The difference between two events as a unified diff of their readable form."""
    kind = next(event.KIND for event in (after, before) if event is not None)
    place = str(location) if location is not None and location.line is not None else None
    if before is not None and after is not None and type(before) is not type(after):
        return EventView(kind=kind, place=place, diff=())
    old, new = (_without_kind(event) for event in (before, after))
    diff = list(unified_diff(yaml_lines(old), yaml_lines(new), lineterm="", n=2))[2:]
    kept = [line for line in diff if (before and after) or line[0] != "@"]
    return EventView(kind=kind, place=place, diff=tuple(kept))


def _translation(dataset: DatasetPlan) -> Iterable[EventView]:
    """The Spark SQL that runs for a query of another engine."""
    found = translation_of(dataset)
    if found is None:
        return
    steps = found.queries or ()
    for step in steps:
        title = "in Spark SQL" + (f", step {step.alias}" if step.alias else "") + ":"
        lines = tuple(f" {line}" for line in step.query.splitlines())
        yield EventView(kind="Translation", place=None, diff=lines, title=title)


def _without_kind(event: MetadataEvent | None) -> dict[str, Any]:
    if isinstance(event, SetDataSchema) and event.raw_arrow_schema is not None:
        # The bytes of an Arrow schema tell people nothing.
        from odfbuild.odf.schema.attributes import in_odf_form

        event = SetDataSchema(schema=in_odf_form(event))
    return {} if event is None else {k: v for k, v in to_data(event).items() if k != "kind"}


def _columns(dataset: DatasetPlan) -> list[str]:
    """What becomes of the columns, where a query or source changed."""
    effect = dataset.columns
    if effect is None or not dataset.changes:
        return [] if effect is None else _gained(effect)
    if not effect.known:
        return ["its columns are known only when it runs; apply checks them before it commits"]
    lines = _gained(effect)
    if effect.changed:
        lines.append(f"columns with other values: {', '.join(effect.changed)}")
    return lines


def _gained(effect: ColumnEffect) -> list[str]:
    if not effect.added:
        return []
    return [f"SetDataSchema adds columns, NULL in existing records: {', '.join(effect.added)}"]


def _mode(dataset: DatasetPlan) -> list[str]:
    """How a result is kept up to date where it is more than record by record."""
    if dataset.mode is None or dataset.mode.mode is Mode.MAP:
        return []
    return [f"kept up to date as {dataset.mode.mode.value}: {dataset.mode.reason}"]


def _vintage(dataset: DatasetPlan) -> list[str]:
    """What becomes of the records that there are when a query changed."""
    if dataset.records_to_correct:
        which = count(dataset.records_to_correct, "record")
        if Action.RUN in dataset.actions:
            return [f"may correct up to {which}: the whole history is recomputed"]
        return [
            f"the next step may correct up to {which}: it recomputes the whole history; "
            f"--allow correct:{dataset.name} does that now"
        ]
    if not dataset.records_under_old_query:
        return []
    kept = count(dataset.records_under_old_query, "existing record")
    verb = "is" if dataset.records_under_old_query == 1 else "are"
    blocks = [f"#{era.sequence_number}" for era in dataset.eras]
    by = {0: "the previous query", 1: f"the query of block {''.join(blocks[:1])}"}.get(
        len(blocks), f"the queries of blocks {', '.join(blocks)}"
    )
    return [f"{kept} {verb} not recomputed: made by {by}"]


def _windows(windows: WindowRecords) -> Iterable[str]:
    """What is known of records that lie in closed windows, or in open ones of another query."""
    if windows.late is None:
        yield f"the number of records that arrived after the window was closed {_NOT_HERE}"
    elif windows.late:
        yield behind_window(windows.late)
    if windows.for_new_query is None:
        yield f"the number of earlier records that the new query reads again {_NOT_HERE}"
    elif windows.for_new_query:
        again = count(windows.for_new_query, "earlier record")
        yield f"the new query reads {again} again: their windows are still open"
    if windows.dropped:
        which = count(windows.dropped, "record")
        yield (
            f"{which} of open windows will be in no result: the windows of the new query are "
            "others. A rebuild includes them"
        )
    if windows.repeated:
        which = count(windows.repeated, "record")
        yield (
            f"{which} of closed windows will be counted again in windows of the new query. "
            "A rebuild counts them once"
        )


_NOT_HERE = "is unknown here: counting needs their data and the extra `spark`"


def _amount(dataset: DatasetPlan) -> str:
    """How much there is to read, as honestly as it is known."""
    pending = dataset.pending
    if pending is None:
        return "an unknown number of records"
    if pending.records is None:
        text = "an unknown number of records"
    elif pending.records == 0:
        text = "no new records"
    elif pending.compared:
        text = f"{count(pending.records, 'record')} to compare with the last state"
    else:
        text = f"{'' if pending.exact else 'up to '}{count(pending.records, 'new record')}"
    if pending.files:
        text += f" in {count(len(pending.files), 'file')}"
    if pending.bytes:
        text += f" ({size(pending.bytes)})"
    if dataset.inputs and not _reads_new_ones(dataset):
        text += (
            f"; reads {_range(Amount(pending.read_least, pending.read_most))}{of_how_many(pending)}"
        )
    return f"{text}, if there is new data" if Action.POLL in dataset.actions else text


def _reads_new_ones(dataset: DatasetPlan) -> bool:
    """Whether a run reads nothing but new records."""
    pending = dataset.pending
    if pending is not None and pending.computation is not None:
        return pending.computation.total == pending.records
    everything_is_new = pending is not None and pending.read_most == pending.records
    return everything_is_new or dataset.mode is None or dataset.mode.mode is Mode.MAP


def _range(amount: Amount) -> str:
    """`12`, `up to 12`, `10 to 12` or `10 or more`."""
    if amount.most is None:
        return f"{amount.least:,} or more" if amount.least else "an unknown number"
    if amount.exact:
        return f"{amount.most:,}"
    return f"{amount.least:,} to {amount.most:,}" if amount.least else f"up to {amount.most:,}"


def reason_line(reason: Reason, start: int | None = None, end: int | None = None) -> str:
    """A reason with its evidence: offsets and blocks, with their numbers where these are known."""
    text = reason.message
    if reason.to_offset is not None:
        first = 0 if reason.from_offset is None else reason.from_offset + 1
        if first <= reason.to_offset:
            text += f", offsets {first} to {reason.to_offset}"
    if reason.to_block is not None:
        text += f", block {_block(start, reason.from_block)} → {_block(end, reason.to_block)}"
    return text


def _because(reason: Reason) -> str:
    """A reason as a line below a dataset; that a change is cosmetic is no reason for anything."""
    line = reason_line(reason) + _root_cause(reason)
    return line if reason.code is ReasonCode.COSMETIC else f"because {line}"


def _block(number: int | None, block: Multihash | None) -> str:
    return short(block) if number is None else f"#{number} {short(block)}"


def _causes(dataset: DatasetPlan) -> Iterable[str]:
    for reason in dataset.reasons:
        yield from _tree(reason, 0)


def _tree(reason: Reason, indent: int) -> Iterable[str]:
    yield " " * indent + reason_line(reason)
    for child in reason.children:
        yield from _tree(child, indent + 2)


def _root_cause(reason: Reason) -> str:
    if not reason.children:
        return ""
    while reason.children:
        reason = reason.children[-1]
    return f" ({reason.message})"


def _notes(plan: Plan, counts: Mapping[str, int]) -> list[str]:
    lines = []
    if counts["refuse"]:
        rest = "apply runs the others" if plan.promotes is None else "no head moves"
        lines.append(f"{count(counts['refuse'], 'dataset')} refused; {rest}.")
    return lines + _total(plan) + [*cut_off_lines(plan)]


def _of_branch(plan: Plan) -> Iterable[str]:
    """What waits for the head, and that nothing of the branch can be promoted."""
    if plan.branch is None:
        return
    if plan.branch.limit is not None:
        yield f"Computed over part of the inputs ({plan.branch.limit}): it cannot be promoted."
    for each in plan.branch.waiting:
        yield f"Not in this branch: {each.dataset} ({each.why})."


def _total(plan: Plan) -> list[str]:
    """What all runs read: of sources, and of datasets, where a record counts for each reader."""
    running = [d for d in plan.datasets if Action.RUN in d.actions and d.pending is not None]
    known = [d for d in running if d.pending and d.pending.read_most is not None]
    unknown = count(len(running) - len(known), "dataset")
    if not running:
        return []
    if not known:
        return [f"How much {unknown} will read is not known before the run."]
    read = [
        f"{_range(amount)} record{'s' * (amount.most != 1)} of {place}"
        for place, amount in (
            ("sources", _read_by(d for d in known if not d.inputs)),
            ("datasets", _read_by(d for d in known if d.inputs)),
        )
        if amount.most
    ]
    besides = f", and an unknown number for {unknown}" * (len(known) < len(running))
    waiting = sum(d.pending.bytes or 0 for d in running if d.pending)
    on_disk = f"; {size(waiting)} of new input on disk" if waiting else ""
    return [f"Will read {' and '.join(read) or 'no records'}{besides}{on_disk}."]


def _read_by(datasets: Iterable[DatasetPlan]) -> Amount:
    each = [d.pending for d in datasets if d.pending is not None]
    return total([Amount(pending.read_least, pending.read_most) for pending in each])
