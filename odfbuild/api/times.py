"""Times as arguments: what the command line takes as text, values of Python, and our own."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from odfbuild.errors import PlanError
from odfbuild.odf.timestamp import Timestamp

if TYPE_CHECKING:
    from odfbuild.store.as_of import PointInTime
    from odfbuild.store.workspace import Workspace

_EXIT_USAGE = 64
"""As the command line ends for the same text."""

Time = datetime | Timestamp | str
"""A `datetime` with a time zone, a `Timestamp` as projects hand out, or text."""


def timestamp(time: Time, argument: str) -> Timestamp:
    """The instant; `PlanError` E0376 for text that is not RFC 3339, as on the command line.

    `ValueError` for a `datetime` without time zone, `TypeError` for what is no time.
    """
    if isinstance(time, Timestamp):
        return time
    if isinstance(time, str):
        try:
            return Timestamp.parse(time)
        except ValueError:
            example = "2026-01-31T08:00:00Z"
            message = f"'{time}' is not a date and time of RFC 3339, such as {example}"
            help = f"write it as {example}, or give a `datetime` with a time zone"
            raise _wrong(argument, message, help) from None
    if not isinstance(time, datetime):
        raise TypeError(f"{argument}: a {type(time).__name__} is no time: {time!r}")
    if time.tzinfo is None:
        raise ValueError(
            f"{argument}: {time} has no time zone; for UTC: time.replace(tzinfo=timezone.utc)"
        )
    return Timestamp.from_datetime(time)


def moment(
    workspace: Workspace, time: Time, argument: str, dataset: str | None = None
) -> PointInTime:
    """The system time, of which text may also be a date (midnight UTC) or a block.

    A block is one of `dataset` if that is given. `PlanError` E0661 for text that is none of these;
    other errors as `timestamp`.
    """
    from odfbuild.store.as_of import PointInTime
    from odfbuild.survey.names import moment_in

    if isinstance(time, str):
        return moment_in(workspace, time, dataset)
    return PointInTime(timestamp(time, argument))


def age(age: timedelta | str, argument: str) -> timedelta:
    """How long; text has a number and a unit (`36h`), `PlanError` E0376 for any other."""
    from odfbuild.project.settings.freshness import parse_age

    if isinstance(age, timedelta):
        return age
    try:
        return parse_age(age)
    except ValueError:
        message = f"'{age}' is not a number and a unit, such as 36h, 14d or 2w"
        raise _wrong(argument, message, "write it as `36h`, or give a `timedelta`") from None


def _wrong(argument: str, message: str, help: str) -> PlanError:
    return PlanError(
        f"invalid value for {argument}: {message}",
        code="E0376",
        help=help,
        exit_code=_EXIT_USAGE,
    )
