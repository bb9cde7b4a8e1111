"""Names of time zones in calls, which Spark looks up at the first record only."""

from __future__ import annotations

import re

from sqlglot import exp

from odfbuild.sql.check.select import Select
from odfbuild.wording import closest

_ARGUMENTS = {
    "from_utc_timestamp": (1,),
    "to_utc_timestamp": (1,),
    "convert_timezone": (0, 1),
    "make_timestamp": (6,),
    "make_timestamp_ltz": (6,),
}
"""Which arguments of a function name one; `convert_timezone` has one or two before its time."""
_OTHER = re.compile(r"(UTC|GMT|UT|Z)?([+-].*|0)?|[A-Z]{3}|SystemV/.*")
"""Offsets, and names that only Java knows."""
_OLD_AND_NEW = ("US/Pacific", "Europe/Kyiv")
"""What a whole and recent database has. Debian keeps names of old in a package of their own, small
images have no database at all, and Java brings its own, whatever the system has."""


def check_time_zones(select: Select, node: exp.Anonymous) -> None:
    """Tell of texts that name no time zone."""
    given = node.expressions
    places = _ARGUMENTS.get(node.name.lower(), ())
    if len(given) == 2 and len(places) == 2:
        places = places[:1]
    for each in (given[place] for place in places if place < len(given)):
        if isinstance(each, exp.Literal) and each.is_string and not _is_time_zone(each.name):
            meant = closest(each.name, _names())
            help_ = (
                f"did you mean '{meant}'?" if meant else "write it as 'Europe/Paris', or '+01:00'"
            )
            select.tell("E0501", f"there is no time zone '{each.name}'", help_, each)


def _is_time_zone(name: str) -> bool:
    from zoneinfo import ZoneInfo

    if _OTHER.fullmatch(name):
        return True
    try:
        ZoneInfo(name)
    except (ValueError, OSError):
        return False
    except LookupError:
        return not set(_OLD_AND_NEW) <= set(_names())
    return True


def _names() -> list[str]:
    from zoneinfo import available_timezones

    return sorted(available_timezones())
