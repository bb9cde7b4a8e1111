"""A plan as text for people.

One line for each dataset that something happens to, its details below, and a closing line that
programs may rely on. Meaning is never carried by colour alone. Pure: a `Plan` in, text out.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import unified_diff

from odfbuild.odf.model import MergeStrategySnapshot, SetPollingSource
from odfbuild.odf.yaml_form import to_data
from odfbuild.plan.document import category, summary
from odfbuild.plan.model import (
    Action,
    DatasetPlan,
    EventChange,
    Plan,
    Reason,
    ReasonCode,
)
from odfbuild.report.errors import render_error
from odfbuild.report.words import count, paint, short, size
from odfbuild.report.yaml_text import yaml_lines

NO_CHANGES = "No changes. All datasets are up to date."
DETAILED = 40
"""Up to so many datasets are shown with details."""
LISTED = 200
"""Up to so many are shown at all, unless everything is asked for."""

_COLORS = {
    Action.CREATE: "green",
    Action.APPEND: "yellow",
    Action.RUN: "cyan",
    Action.POLL: "blue",
    Action.FORGET: "red",
    Action.REFUSE: "magenta",
}


def render_plan(plan: Plan, *, color: bool = False, full: bool = False) -> str:
    """The plan as lines of text, without a newline at the end.

    `full` shows every detail of every dataset however many there are, and whole trees of reasons.
    """
    shown = _shown(plan)
    if not any(d.actions for d in shown):
        return "\n".join([*_cosmetics(shown, color=color), NO_CHANGES])
    width = min(40, max(len(dataset.name) for dataset in shown))
    lines = [_headline(plan, shown), ""]
    for number, dataset in enumerate(shown):
        if not full and number >= LISTED:
            lines.append(f"  … and {count(len(shown) - number, 'more dataset')}; --full lists all")
            break
        lines.append(_dataset_line(dataset, width, color=color))
        if full or len(shown) <= DETAILED or dataset.refusal is not None:
            lines += [f"      {line}".rstrip() for line in _details(dataset, color, full)]
    lines += ["", *_closing(plan)]
    return "\n".join(lines)


def closing_line(plan: Plan) -> str:
    """The last line of every plan that has something in it; its form is stable."""
    counts = summary(plan)
    return (
        f"Plan: {counts['create']} to create, {counts['change']} to change, "
        f"{counts['run']} to run, {counts['reset']} to reset, {counts['delete']} to delete."
    )


def _shown(plan: Plan) -> list[DatasetPlan]:
    """What is worth a line: refusals first, forgotten ones last, the rest in order of work."""
    rank = {Action.REFUSE: 0, Action.FORGET: 2}
    found = [d for d in plan.datasets if d.actions or _is_cosmetic(d)]
    return sorted(found, key=lambda d: rank.get(d.actions[0], 1) if d.actions else 1)


def _is_cosmetic(dataset: DatasetPlan) -> bool:
    return any(reason.code is ReasonCode.COSMETIC for reason in dataset.reasons)


def _cosmetics(shown: Iterable[DatasetPlan], *, color: bool) -> list[str]:
    lines = []
    for dataset in shown:
        lines.append(_dataset_line(dataset, len(dataset.name), color=color))
    return [*lines, ""] if lines else []


def _headline(plan: Plan, shown: list[DatasetPlan]) -> str:
    affected = sum(bool(dataset.actions) for dataset in shown)
    return f"Plan for {plan.project}: {count(len(plan.datasets), 'dataset')}, {affected} affected"


def _dataset_line(dataset: DatasetPlan, width: int, *, color: bool) -> str:
    action = dataset.actions[0] if dataset.actions else None
    glyph = paint(action.value, _COLORS[action], on=color) if action else "="
    return f"  {glyph} {dataset.name:<{width}}  {_what(dataset, action)}".rstrip()


def _what(dataset: DatasetPlan, action: Action | None) -> str:
    events = ", ".join(change.after.KIND for change in dataset.changes)
    match action:
        case Action.CREATE:
            return f"new {dataset.kind.name.lower()}: {events}" if events else "new"
        case Action.APPEND:
            return f"{category(dataset)}: {events}"
        case Action.RUN | Action.POLL:
            return _amount(dataset)
        case Action.FORGET:
            return "forgotten: its definition is gone; the chain stays"
        case Action.REFUSE:
            return "refused"
    return "cosmetic: only white space or comments changed in SQL; nothing is appended"


def _details(dataset: DatasetPlan, color: bool, full: bool) -> list[str]:
    lines: list[str] = []
    if dataset.refusal is not None:
        return render_error(dataset.refusal, color=color).splitlines()
    if not dataset.actions or Action.FORGET in dataset.actions:
        return lines
    for change in dataset.changes:
        if change.before is not None or Action.APPEND in dataset.actions:
            lines += _change(change, color)
    lines += _columns(dataset)
    lines += _vintage(dataset)
    if len(dataset.actions) > 1:
        last = dataset.actions[-1]
        lines.append(f"{paint(last.value, _COLORS[last], on=color)} {_amount(dataset)}")
    if full and dataset.pending is not None:
        lines += [f"reads {file}" for file in dataset.pending.files]
    for reason in dataset.reasons:
        if full:
            lines += _reason_tree(reason)
        elif reason.code not in _SAID_ALREADY and not _is_implied(reason, dataset):
            lines.append(_reason(reason) + _root_cause(reason))
    return lines


# The line of the dataset, the diff or the amount says these.
_SAID_ALREADY = {
    ReasonCode.NEW,
    ReasonCode.SOURCE_CHANGED,
    ReasonCode.TRANSFORM_CHANGED,
    ReasonCode.VOCAB_CHANGED,
    ReasonCode.INFO_CHANGED,
    ReasonCode.SCHEMA_CHANGED,
    # Why it does not run as well is told by `--full`.
    ReasonCode.SOURCE_UNCHANGED,
}


def _is_implied(reason: Reason, dataset: DatasetPlan) -> bool:
    return reason.code is ReasonCode.NEVER_RUN and Action.CREATE in dataset.actions


def _columns(dataset: DatasetPlan) -> list[str]:
    """What becomes of the columns, where a query or source changed."""
    effect = dataset.columns
    if effect is None:
        return []
    if not effect.known:
        return ["which columns it gives is known when it runs; apply checks them before it commits"]
    lines = []
    if effect.added:
        lines.append(f"adds columns, empty in the records that exist: {', '.join(effect.added)}")
    if effect.changed:
        lines.append(f"computes differently: {', '.join(effect.changed)}")
    return lines


def _change(change: EventChange, color: bool) -> list[str]:
    """The difference between two events as a unified diff of their readable form."""
    before, after = ({} if e is None else to_data(e) for e in (change.before, change.after))
    same_kind = before.pop("kind", None) == after.pop("kind", None)
    if change.before is not None and not same_kind:
        return []
    diff = list(unified_diff(yaml_lines(before), yaml_lines(after), lineterm="", n=2))[2:]
    return [_paint_diff(line, color) for line in diff if change.before or line[0] != "@"]


def _paint_diff(line: str, color: bool) -> str:
    return paint(line, {"+": "green", "-": "red", "@": "dim"}.get(line[0]), on=color)


def _vintage(dataset: DatasetPlan) -> list[str]:
    if not dataset.records_under_old_query:
        return []
    stay = count(dataset.records_under_old_query, "record")
    verb = "stays" if dataset.records_under_old_query == 1 else "stay"
    blocks = [f"#{era.sequence_number}" for era in dataset.eras]
    if len(blocks) == 1:
        return [f"{stay} {verb} with the query of block {blocks[0]}"]
    if blocks:
        return [f"{stay} {verb} with the queries of blocks {', '.join(blocks)}"]
    return [f"{stay} {verb} with the old query"]


def _amount(dataset: DatasetPlan) -> str:
    """How much there is to read, as honestly as it is known."""
    pending = dataset.pending
    if pending is None:
        return "an unknown number of records"
    if pending.records is None:
        text = "an unknown number of records"
    elif pending.records == 0:
        text = "no new records"
    elif _compares(dataset):
        text = f"{count(pending.records, 'record')} to compare with the last state"
    else:
        text = f"{'' if pending.exact else 'up to '}{count(pending.records, 'new record')}"
    if pending.files:
        text += f" in {count(len(pending.files), 'file')}"
    if pending.bytes:
        text += f" ({size(pending.bytes)})"
    return f"{text}, if there is news" if Action.POLL in dataset.actions else text


def _compares(dataset: DatasetPlan) -> bool:
    if Action.CREATE in dataset.actions or dataset.snapshot is None:
        return False
    return any(
        isinstance(e, SetPollingSource) and isinstance(e.merge, MergeStrategySnapshot)
        for e in dataset.snapshot.metadata
    )


def _reason(reason: Reason) -> str:
    text = f"{reason.code.value}: {reason.message}"
    if reason.to_offset is not None:
        first = 0 if reason.from_offset is None else reason.from_offset + 1
        if first <= reason.to_offset:
            text += f", offsets {first} to {reason.to_offset}"
    if reason.to_block is not None:
        text += f", block {short(reason.from_block)} → {short(reason.to_block)}"
    return text


def _reason_tree(reason: Reason, indent: int = 0) -> list[str]:
    lines = [" " * indent + _reason(reason)]
    for child in reason.children:
        lines += _reason_tree(child, indent + 2)
    return lines


def _root_cause(reason: Reason) -> str:
    if not reason.children:
        return ""
    while reason.children:
        reason = reason.children[-1]
    return f" ({reason.code.value}: {reason.message})"


def _closing(plan: Plan) -> list[str]:
    counts = summary(plan)
    lines = []
    if counts["refuse"]:
        lines.append(f"{count(counts['refuse'], 'dataset')} refused; apply does the others.")
    if counts["poll"]:
        lines.append(f"{count(counts['poll'], 'dataset')} to be checked by apply.")
    lines += _total(plan)
    return [*lines, closing_line(plan)]


def _total(plan: Plan) -> list[str]:
    running = [d for d in plan.datasets if Action.RUN in d.actions]
    if not running:
        return []
    pending = [d.pending for d in running if d.pending is not None]
    known = [p for p in pending if p.records is not None]
    records = count(sum(p.records or 0 for p in known), "record")
    amount = sum(p.bytes or 0 for p in pending)
    on_disk = f", {size(amount)} of them on disk now" if amount else ""
    if len(known) < len(running):
        unknown = count(len(running) - len(known), "dataset")
        return [f"Will read {records}{on_disk}; {unknown} cannot tell before the run."]
    bound = "" if all(p.exact for p in known) else "up to "
    return [f"Will read {bound}{records}{on_disk}."]
