"""How a changelog is computed, and over how many records, in sentences. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from odfbuild.plan.model import Pending, Plan, ReasonCode
from odfbuild.plan.ways import Way
from odfbuild.wording import count


def computation_lines(pending: Pending | None) -> Iterator[str]:
    """How a changelog is computed; with what makes it read all records, and what to change."""
    way = pending.computation if pending is not None else None
    if way is None:
        return
    if way.way is Way.KEPT and way.keys:
        yield f"{_OF_LEVELS}: the same {' or '.join(way.keys)}; {_NOT_KEPT}"
        return
    if way.way in _WAYS:
        yield _WAYS[way.way] + (f": the same {' or '.join(way.keys)}" if way.keys else "")
        return
    if way.way is Way.NONE:
        yield f"nothing is computed: {way.why}"
        return
    verb = "may be computed" if way.way is Way.AT_RUN else "computed"
    place = f", {way.place}" if way.place is not None else ""
    yield f"{verb} over all records: {way.why}{place}"
    if way.help:
        yield f"to change that: {way.help}"


_OF_LEVELS = "computed over the records of affected keys and the totals that are kept of all groups"
_NOT_KEPT = (
    "over all records where none are kept yet, or where a least or greatest value is retracted"
)
_WAYS = {
    Way.ADDED: "computed from new records alone",
    Way.TOTALS: "computed from new records alone: their totals are added to those so far",
    Way.KEPT: f"computed from new records and the totals that are kept of all groups; {_NOT_KEPT}",
    Way.KEYS: "computed over the records of affected keys",
}


def of_how_many(pending: Pending) -> str:
    """Of how many records a step reads some: of those that there are, where it may need fewer."""
    way = pending.computation
    if way is None or way.total is None or way.reads_all:
        return " in all"
    return f" of {way.total:,} records"


def cut_off_lines(plan: Plan) -> Iterator[str]:
    """Of inputs whose new records change nothing for some readers: how many they do affect."""
    reached: defaultdict[str, list[bool]] = defaultdict(list)
    for each in plan.datasets:
        way = each.pending.computation if each.pending is not None else None
        stays = way is not None and way.way is Way.NONE
        for name in dict.fromkeys(r.input for r in each.reasons if _is_news(r.code)):
            reached[name or ""].append(not stays)
    for name, readers in reached.items():
        if not all(readers):
            readers_of = f"{count(sum(readers), 'reader')} of {name}"
            yield f"{readers_of} affected: no other one uses a column that changed."


def _is_news(code: ReasonCode) -> bool:
    return code in (ReasonCode.INPUT_ADVANCED, ReasonCode.UPSTREAM_PLANNED)
