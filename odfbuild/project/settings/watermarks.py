"""How watermarks of root datasets move: `watermarks` of odfbuild.yaml.

Pure: times come in, a time goes out, so that the same step always ends with the same watermark.
Source: Open Data Fabric, "Watermark".
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Annotated

from odfbuild.declared_settings import setting
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.timestamp import Timestamp
from odfbuild.project.settings.by_name import Patterns, last_matching
from odfbuild.project.settings.freshness import age, parse_age
from odfbuild.values import Value

_STEPS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 86_400}
"""Seconds to which `nowMinus` is rounded down, by its unit: not every apply moves a watermark."""


def _ns(age: str) -> int:
    return parse_age(age) // timedelta(microseconds=1) * 1000


class Lag(Value):
    """A time before the clock, and what its end is rounded down to, in nanoseconds."""

    ns: int
    step: int

    @classmethod
    def parse(cls, age: str) -> Lag:
        """A lag as odfbuild.yaml says it."""
        return cls(_ns(age), _STEPS[age.strip()[-1]] * 1_000_000_000)

    def end(self, now: Timestamp) -> Timestamp:
        """The time that lies so long before `now`."""
        return Timestamp((now.ns - self.ns) // self.step * self.step)


_FIRST = Timestamp.parse("0001-01-01T00:00:00Z")
"""No time before it can be written."""


class WatermarkRule(Value):
    """How watermarks move of root datasets whose name matches; times are nanoseconds."""

    match: Patterns = setting()
    delay: Annotated[int, age(_ns)] = setting(
        0, "So long before the latest event time of the records"
    )
    max_ahead: Annotated[int, age(_ns)] | None = setting(
        None, "Records further in the future than this do not move it"
    )
    now_minus: Annotated[Lag, age(Lag.parse)] | None = setting(
        None,
        "At least so long before the clock, also without new records, rounded down to "
        "whole seconds, minutes, hours or days, as it is written",
    )

    def counts_until(self, now: Timestamp) -> Timestamp | None:
        """The latest event time that may move the watermark; `None`: any may."""
        return None if self.max_ahead is None else Timestamp(now.ns + self.max_ahead)

    def by_clock(self, now: Timestamp) -> Timestamp | None:
        """What the clock alone promises; `None`: nothing."""
        return None if self.now_minus is None else self.now_minus.end(now)

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


BY_RECORDS = WatermarkRule(())
"""Where nothing is said: the latest event time."""


def rule_of(rules: Iterable[WatermarkRule], name: str) -> WatermarkRule:
    """The rule that holds for a dataset."""
    return last_matching(rules, name) or BY_RECORDS
