"""Event time of records without one: from the name of a file, or from its source.

`timestampFormat` is either in the letters of `strptime` (it has a `%`) or in those of Java's
`SimpleDateFormat`: `y M d H h a m s S` repeated, zones `X` and `Z`, and 'quoted' text. A time
without a zone is UTC.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from odfbuild.errors import IngestError
from odfbuild.odf.model import (
    EventTimeSource,
    EventTimeSourceFromMetadata,
    EventTimeSourceFromPath,
    EventTimeSourceFromSystemTime,
)
from odfbuild.odf.timestamp import Timestamp

DEFAULT_FORMAT = "%Y-%m-%d"

_JAVA = {
    "yyyy": "%Y",
    "yy": "%y",
    "MM": "%m",
    "M": "%m",
    "MMM": "%b",
    "MMMM": "%B",
    "dd": "%d",
    "d": "%d",
    "DDD": "%j",
    "HH": "%H",
    "H": "%H",
    "hh": "%I",
    "h": "%I",
    "a": "%p",
    "mm": "%M",
    "m": "%M",
    "ss": "%S",
    "s": "%S",
    "S": "%f",
    "SS": "%f",
    "SSS": "%f",
    "X": "%z",
    "XX": "%z",
    "XXX": "%z",
    "Z": "%z",
}
_JAVA_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']")


def event_time_of(
    source: EventTimeSource | None,
    *,
    modified: Timestamp | None,
    default: Timestamp | None,
    now: Timestamp,
    name: str,
) -> Timestamp:
    """The time that `source` asks for of data that was `modified` then, as its source tells.

    Without a `source` it is `default`, or `now`. Raises `IngestError` when nobody told a time.
    """
    if isinstance(source, EventTimeSourceFromSystemTime):
        return now
    if not isinstance(source, EventTimeSourceFromMetadata):
        return default or now
    if modified is None:
        raise IngestError(
            f"the source does not tell when {name} was modified",
            code="E0403",
            help="use `eventTime: {kind: FromSystemTime}`, or take the event time from the data",
        )
    return modified


def check_event_time(source: EventTimeSource | None) -> None:
    """Raise `IngestError` when a time could be found in no name at all."""
    if isinstance(source, EventTimeSourceFromPath):
        _compiled(source)
        _format(source)


def event_time_from_path(source: EventTimeSourceFromPath, name: str) -> Timestamp:
    """The time that `source` finds in the base name `name`; `IngestError` when it finds none."""
    match = _compiled(source).search(name)
    if match is None:
        raise _refusal(f"eventTime.pattern finds nothing in '{name}'", source)
    text = match.group(1)
    if text is None:
        raise _refusal(f"the group of eventTime.pattern finds nothing in '{name}'", source)
    pattern = _format(source)
    try:
        moment = datetime.strptime(text, pattern)  # a zone is added below
    except ValueError:
        raise _refusal(
            f"'{text}' in the name '{name}' is not a time of the form "
            f"'{source.timestamp_format or DEFAULT_FORMAT}'",
            source,
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return Timestamp.from_datetime(moment)


def _compiled(source: EventTimeSourceFromPath) -> re.Pattern[str]:
    try:
        pattern = re.compile(source.pattern)
    except re.error as error:
        raise _refusal(f"eventTime.pattern is not a regular expression: {error}", source) from None
    if pattern.groups < 1:
        raise _refusal(
            "eventTime.pattern has no group that holds the time",
            source,
            help="put the part of the name that is the time into parentheses",
        )
    return pattern


def _format(source: EventTimeSourceFromPath) -> str:
    pattern = source.timestamp_format or DEFAULT_FORMAT
    return pattern if "%" in pattern else _from_java(pattern, source)


def _from_java(pattern: str, source: EventTimeSourceFromPath) -> str:
    result = []
    at = 0
    while at < len(pattern):
        match = _JAVA_TOKEN.match(pattern, at)
        if match is None:
            raise _refusal(f"timestampFormat '{pattern}' has a quote that is not closed", source)
        token = match.group(0)
        if match.group(1) is not None:
            result.append(match.group(1).replace("''", "'").replace("%", "%%") or "'")
        elif match.group(2):
            if token not in _JAVA:
                raise _refusal(
                    f"timestampFormat '{pattern}': the letters '{token}' are not supported",
                    source,
                    help="write it in the letters of strptime, such as '%Y-%m-%d'",
                )
            result.append(_JAVA[token])
        else:
            result.append(token)
        at = match.end()
    return "".join(result)


def _refusal(message: str, source: EventTimeSourceFromPath, help: str | None = None) -> IngestError:
    return IngestError(
        message,
        code="E0403",
        notes=(f"the pattern is {source.pattern}",),
        help=help or "correct `fetch.eventTime` in the definition, or rename the file",
    )


def event_time_of_file(
    source: EventTimeSource | None, name: str, *, modified: Timestamp | None, now: Timestamp
) -> Timestamp | None:
    """That of records of one of several files elsewhere, which was changed at `modified`."""
    if isinstance(source, EventTimeSourceFromPath):
        return event_time_from_path(source, name)
    return modified if isinstance(source, EventTimeSourceFromMetadata) else now
