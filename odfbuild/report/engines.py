"""Resident engines, as text and as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from odfbuild.wording import count

if TYPE_CHECKING:
    from odfbuild.apply.deprecate import Deprecated
    from odfbuild.engine.process.resident.card import Card
    from odfbuild.engine.process.resident.find import Status
    from odfbuild.inspect.verify.finding import Finding

_NONE = "No resident engine is running."


def started_to_data(card: Card, fresh: bool) -> dict[str, Any]:
    """The engine that serves now, and whether it was started just now."""
    return {**_card_to_data(card), "started": fresh}


def render_statuses(found: Sequence[Status]) -> str:
    """A paragraph for each engine."""
    return "\n".join(map(_paragraph, found)) or _NONE


def _paragraph(each: Status) -> str:
    card = each.card
    if not each.ready:
        doing = "is starting Spark"
    elif each.calls:
        doing = f"carries out {count(each.calls, 'request')}"
    else:
        left = max(0, each.idle_minutes * 60 - each.idle_seconds)
        doing = f"has no work, ends in {count(round(left / 60), 'minute')}"
    memory = f", {each.memory / (1 << 20):,.0f} MiB of memory" if each.memory else ""
    return (
        f"{card.project}\n"
        f"  process {card.pid}, since {card.since}: {doing}\n"
        f"  odfbuild {card.odfbuild}, Spark {card.spark}, Java {card.java}\n"
        f"  {count(each.served, 'request')} so far{memory}"
    )


def statuses_to_data(found: Sequence[Status]) -> list[dict[str, Any]]:
    """The same as plain values."""
    return [
        {
            **_card_to_data(each.card),
            "ready": each.ready,
            "processes": list(each.processes),
            "requests": each.calls,
            "served": each.served,
            "idleSeconds": round(each.idle_seconds, 1),
            "idleMinutes": each.idle_minutes,
            "memory": each.memory or None,
        }
        for each in found
    ]


def render_stopped(found: Sequence[Card]) -> str:
    """A line for each engine that was ended."""
    lines = [f"Process {each.pid} no longer serves {each.project}." for each in found]
    return "\n".join(lines) or _NONE


def stopped_to_data(found: Sequence[Card]) -> list[dict[str, Any]]:
    """The same as plain values."""
    return list(map(_card_to_data, found))


def _card_to_data(card: Card) -> dict[str, Any]:
    return {
        "project": card.project,
        "pid": card.pid,
        "odfbuild": card.odfbuild,
        "spark": card.spark,
        "java": card.java,
        "since": card.since,
    }


def render_deprecated(done: Sequence[Deprecated], now: str) -> str:
    """A line for each dataset."""
    if not done:
        return f"Nothing was computed by another release than {now}."
    return "\n".join(_line(each) for each in done)


def _line(each: Deprecated) -> str:
    releases = ", ".join(each.releases)
    if not each.reproduced:
        return f"  ! {each.name}: {each.now} does not stand in for {releases}"
    where = "" if each.block is None else f", as block #{each.block} says"
    return f"  {each.name}: {each.now} stands in for {releases}{where}"


def deprecated_to_data(
    done: Sequence[Deprecated], findings: Sequence[Finding], now: str
) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "release": now,
        "datasets": [
            {
                "name": each.name,
                "releases": list(each.releases),
                "release": each.now,
                "reproduced": each.reproduced,
                "block": each.block,
            }
            for each in done
        ],
        "findings": [
            {"dataset": each.dataset, "code": each.code, "message": each.message}
            for each in findings
        ],
    }
