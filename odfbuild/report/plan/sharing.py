"""What a plan says of datasets of others, and of what apply publishes, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from odfbuild.errors import OdfbuildError
from odfbuild.plan.model import News, PinnedDataset, Plan
from odfbuild.plan.tables import TableStep
from odfbuild.report.forms.words import short
from odfbuild.values import Value
from odfbuild.wording import count


class ExternalLine(Value):
    """A dataset of others: what is pinned of it, in words."""

    sign: str
    name: str
    what: str


def external_lines(plan: Plan) -> list[ExternalLine]:
    """A line for each dataset of others; where repositories were asked, with their news."""
    news = {each.dataset: each for each in plan.news or ()}
    return [_external_line(each, news.get(each.name)) for each in plan.external]


def _external_line(each: PinnedDataset, news: News | None) -> ExternalLine:
    source = "" if each.reference.lower() == each.name.lower() else f", from {each.reference}"
    told = _news(news) if news else ""
    if each.head is None:
        what = f"not pulled yet{source}{told or f': odfbuild pull {each.name}'}"
        return ExternalLine("!", each.name, what)
    pinned = f"pinned at block #{each.blocks - 1} {short(each.head)}"
    sign = "<" if told else "="
    return ExternalLine(sign, each.name, f"{pinned}, {count(each.records, 'record')}{source}{told}")


def _news(news: News) -> str:
    """What a pull would bring; nothing where it would bring nothing."""
    if news.error is not None:
        return f"; a pull would fail: {news.error.message}"
    if not news.blocks:
        return ""
    more = f"{count(news.blocks, 'new block')} with {count(news.records, 'record')}"
    return f"; {more}: odfbuild pull {news.dataset}"


LISTED = 10
"""Up to so many tables are told one by one."""


def table_lines(plan: Plan) -> Iterable[str]:
    """What apply does with published tables; those that only follow their datasets are counted.

    Whether one that is not known on this machine is up to date, apply finds out: `table ls` lists
    it, and it is no news.
    """
    told = [each for each in plan.tables if each.step not in (TableStep.FOLLOW, TableStep.LOOK)]
    # What is wrong and what is written anew comes first.
    told.sort(key=lambda each: _RANK.get(each.step, 2))
    for each in told[:LISTED]:
        where = f"Table {each.name} ({each.format} in {each.location})"
        if each.refusal is not None:
            yield f"{where} is refused: {_refusal(each.refusal)}"
        elif each.anew is not None:
            yield f"{where} is written as a whole: {each.anew}."
        else:
            touched = f", {count(each.partitions, 'partition')}" if each.partitions else ""
            yield f"{where} is behind by {each.because}{touched}."
    more = len(told) - LISTED
    if more > 0:
        yield f"{count(more, 'more table')}; --format json lists all."
    moving = {each.name for each in plan.datasets if each.actions}
    follow = sum(
        each.dataset in moving and each.step in (TableStep.FOLLOW, TableStep.LOOK)
        for each in plan.tables
    )
    if follow:
        yield f"Apply publishes {count(follow, 'table')} of datasets that get new records."


def _refusal(error: OdfbuildError) -> str:
    """What is wrong, where, and the way out, in sentences."""
    place = f" ({error.location})" if error.location else ""
    said = [error.message, *error.notes, *([error.help] if error.help else [])]
    ended = (each if each.endswith(("?", ".")) else f"{each}." for each in said)
    return f"{error.code}{place} {' '.join(each[:1].upper() + each[1:] for each in ended)}"


_RANK = {TableStep.REFUSE: 0, TableStep.REWRITE: 1}


def retention_lines(plan: Plan) -> Iterable[str]:
    """What is older than it is kept, and whether apply withdraws it."""
    for each in plan.retention:
        what = (
            f"{each.dataset} has {count(each.records, 'record')} of {each.until} and before in "
            f"{count(each.objects, 'object')}; {each.why}"
        )
        if each.refusal is not None:
            yield f"{what}. They cannot be withdrawn: {_refusal(each.refusal)}"
        elif each.allowed:
            yield f"{what}. Apply withdraws them for good."
        else:
            yield f"{what}. To withdraw them for good: --allow withdraw:{each.dataset}"


def publishing_lines(plan: Plan) -> Iterable[str]:
    """What apply withdraws, publishes as tables, and pushes, one line for each repository."""
    yield from retention_lines(plan)
    yield from table_lines(plan)
    found: dict[str, list[str]] = {}
    for each in plan.publications:
        found.setdefault(each.repository, []).append(each.dataset)
    for repository, names in sorted(found.items()):
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
        yield f"Apply publishes to {repository} what is new there of {shown}."
