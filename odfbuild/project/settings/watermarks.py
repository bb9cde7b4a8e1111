"""How watermarks of root datasets move: `watermarks` of odfbuild.yaml.

Pure: times come in, a time goes out, so that the same step always ends with the same watermark.
Source: Open Data Fabric, "Watermark".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.timestamp import Timestamp
from odfbuild.project.settings.by_name import MATCH, last_matching, patterns_of
from odfbuild.project.settings.freshness import AGE, parse_age
from odfbuild.values import dataclass

_ABOUT = {
    "delay": "So long before the latest event time of the records",
    "maxAhead": "Records further in the future than this do not move it",
    "nowMinus": "At least so long before the clock, also without new records, rounded down to "
    "whole seconds, minutes, hours or days, as it is written",
}

SCHEMA: dict[str, Any] = {
    "type": "array",
    "description": "How watermarks of root datasets move; of several that match, the last one wins",
    "items": {
        "type": "object",
        "additionalProperties": False,
        "required": ["match"],
        "properties": {
            "match": MATCH,
            **{key: {**AGE, "description": about} for key, about in _ABOUT.items()},
        },
    },
}
"""What `watermarks` may hold."""

_STEPS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 86_400}
"""Seconds to which `nowMinus` is rounded down, by its unit: not every apply moves a watermark."""


_FIRST = Timestamp.parse("0001-01-01T00:00:00Z")
"""No time before it can be written."""


@dataclass(frozen=True, slots=True)
class WatermarkRule:
    """How watermarks move of root datasets whose name matches; times are nanoseconds.

    `step` is what the time that follows from the clock is rounded down to.
    """

    match: tuple[str, ...] = ()
    delay: int = 0
    max_ahead: int | None = None
    now_minus: int | None = None
    step: int = 1

    def counts_until(self, now: Timestamp) -> Timestamp | None:
        """The latest event time that may move the watermark; `None`: any may."""
        return None if self.max_ahead is None else Timestamp(now.ns + self.max_ahead)

    def by_clock(self, now: Timestamp) -> Timestamp | None:
        """What the clock alone promises; `None`: nothing."""
        if self.now_minus is None:
            return None
        return Timestamp((now.ns - self.now_minus) // self.step * self.step)

    def is_due(self, state: Projection, now: Timestamp) -> bool:
        """Whether the clock alone moves the watermark of a root that had something to read."""
        promised = self.by_clock(now)
        if promised is None or state.schema is None:
            return False
        return state.watermark is None or state.watermark < promised

    def watermark(
        self, last: Timestamp | None, newest: Timestamp | None, now: Timestamp
    ) -> Timestamp | None:
        """The watermark after a step at the system time `now`; it never goes back.

        `last` is the one before, `newest` the latest event time of the step that counts.
        """
        by_records = None if newest is None else Timestamp(newest.ns - self.delay)
        known = (each for each in (last, by_records, self.by_clock(now)) if each is not None)
        return max((each for each in known if each >= _FIRST), default=None)


BY_RECORDS = WatermarkRule()
"""Where nothing is said: the latest event time."""


def watermarks_from(data: Iterable[Mapping[str, Any]]) -> tuple[WatermarkRule, ...]:
    """Rules from what `SCHEMA` lets through."""
    return tuple(
        WatermarkRule(
            patterns_of(each),
            _ns(each.get("delay")) or 0,
            _ns(each.get("maxAhead")),
            _ns(each.get("nowMinus")),
            _STEPS[each.get("nowMinus", "s")[-1]] * 1_000_000_000,
        )
        for each in data
    )


def rule_of(rules: Iterable[WatermarkRule], name: str) -> WatermarkRule:
    """The rule that holds for a dataset."""
    return last_matching(rules, name) or BY_RECORDS


def _ns(age: str | None) -> int | None:
    return None if age is None else parse_age(age) // timedelta(microseconds=1) * 1000
