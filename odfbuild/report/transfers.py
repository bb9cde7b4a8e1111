"""How pulls and pushes ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from odfbuild.exchange.repositories.head_rules import Vouched
from odfbuild.exchange.repositories.outcome import Transfer, TransferStatus
from odfbuild.report.forms.words import paint, size
from odfbuild.report.outcome import LISTED, error_to_data, outcome_to_data
from odfbuild.survey.outcome import ApplyOutcome
from odfbuild.wording import count

_COLORS = {
    TransferStatus.NEW: "green",
    TransferStatus.UPDATED: "green",
    TransferStatus.REPLACED: "magenta",
    TransferStatus.UP_TO_DATE: None,
    TransferStatus.FAILED: "red",
}


def render_transfers(
    transfers: Sequence[Transfer], verb: str, *, dry_run: bool = False, color: bool = False
) -> str:
    """A line for each dataset, then the counts. Of many, those with nothing new are only counted.

    `verb` is `Pull` or `Push`.
    """
    shown = list(transfers)
    if len(shown) > LISTED:
        shown = [each for each in shown if each.status is not TransferStatus.UP_TO_DATE]
    width = min(40, max((len(each.name) for each in shown), default=0))
    lines = [_line(each, width, color) for each in shown]
    counts = Counter(each.status for each in transfers)
    told = ", ".join(f"{counts[status]} {status.value}" for status in TransferStatus)
    end = f"{verb}{' (dry run)' if dry_run else ''}: {told}."
    return "\n".join([*lines, *([""] if lines else []), end])


def render_published(outcome: ApplyOutcome, *, color: bool = False) -> str:
    """What became of publications after an apply; those that had nothing new are only counted."""
    shown = [e for e in outcome.published if e.status is not TransferStatus.UP_TO_DATE]
    if not shown:
        return f"Published: {count(len(outcome.published), 'dataset')}, nothing new."
    width = min(40, max(len(each.name) for each in shown))
    lines = [_line(each, width, color) for each in shown]
    same = len(outcome.published) - len(shown)
    return "\n".join(["Published:", *lines, *([f"  and {same:,} with nothing new"] * bool(same))])


def apply_to_data(outcome: ApplyOutcome) -> dict[str, Any]:
    """An apply with what was published afterwards, as plain values."""
    published = transfers_to_data(outcome.published)["datasets"]
    return {**outcome_to_data(outcome), "published": published}


def transfers_to_data(transfers: Sequence[Transfer]) -> dict[str, Any]:
    """The same as plain values."""
    counts = Counter(each.status for each in transfers)
    return {
        "datasets": [
            {
                "name": each.name,
                "address": each.address,
                "status": each.status.value,
                "head_before": str(each.before) if each.before else None,
                "head_after": str(each.after) if each.after else None,
                "blocks": each.blocks,
                "records": each.records,
                "objects": each.objects,
                "bytes": each.bytes,
                "lost_blocks": each.lost_blocks,
                "lost_records": each.lost_records,
                **_signature_to_data(each.vouched),
                "error": each.error and error_to_data(each.error),
            }
            for each in transfers
        ],
        "summary": {status.value: counts[status] for status in TransferStatus},
    }


def _signature_to_data(vouched: Vouched | None) -> dict[str, Any]:
    """What of the chain is signed; `unsigned_blocks` is null where that was not looked at."""
    said = vouched.signed.statement if vouched and vouched.signed else None
    return {
        "signed_head": str(said.head) if said else None,
        "signed_at": str(said.time) if said else None,
        "unsigned_blocks": vouched.since if vouched else None,
    }


def _signature(vouched: Vouched) -> str:
    if vouched.signed is None:
        return "unsigned"
    return f"signed but for {count(vouched.since, 'block')}" if vouched.since else "signed"


def _line(each: Transfer, width: int, color: bool) -> str:
    status = paint(f"{each.status.value:<10}", _COLORS[each.status], on=color)
    parts = []
    if each.blocks:
        parts.append(f"{count(each.blocks, 'block')}, {count(each.records, 'record')}")
    if each.objects:
        parts.append(size(each.bytes))
    if each.lost_blocks:
        lost = f"{count(each.lost_blocks, 'block')} with {count(each.lost_records, 'record')}"
        parts.append(f"gives up {lost}")
    if each.vouched is not None:
        parts.append(_signature(each.vouched))
    if each.error is not None:
        parts.append(each.error.message)
    return f"  {status}  {each.name:<{width}}  {', '.join(parts)}".rstrip()
