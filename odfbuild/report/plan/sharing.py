"""What a plan says of datasets of others, and of what apply publishes, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from odfbuild.plan.model import News, PinnedDataset, Plan
from odfbuild.report.forms.words import short
from odfbuild.wording import count


@dataclass(frozen=True, slots=True)
class ExternalLine:
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


def publishing_lines(plan: Plan) -> Iterable[str]:
    """What apply pushes, one line for each repository."""
    found: dict[str, list[str]] = {}
    for each in plan.publications:
        found.setdefault(each.repository, []).append(each.dataset)
    for repository, names in sorted(found.items()):
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
        yield f"Apply publishes to {repository} what is new there of {shown}."
