"""Which text of a source has one meaning only, as far as lines, quotes and options decide that.

Values are looked at by `plain_records` and `plain_columns`. Quotes are those of RFC 4180: around
whole values, doubled within them.
"""

from __future__ import annotations

import numpy as np

from odfbuild.odf.model import ReadStep, ReadStepCsv, ReadStepNdJson

_LINE_FEED, _RETURN, _TAB, _QUOTE, _BACKSLASH = b'\n\r\t"\\'


class Unclear(Exception):
    """Only Spark knows what it makes of a text; says of what."""


def separator_of(read: ReadStep) -> str | None:
    """What stands between values of a line of CSV; `None` for lines of JSON. Or `Unclear`."""
    if not isinstance(read, ReadStepCsv | ReadStepNdJson):
        raise Unclear(f"kind {read.KIND}")
    formats = {each.lower() for each in (read.date_format, read.timestamp_format) if each}
    if (read.encoding or "utf8").lower() not in ("utf8", "utf-8") or formats - {"rfc3339"}:
        raise Unclear("its encoding, or a format of times")
    if isinstance(read, ReadStepNdJson):
        return None
    separator = read.separator or ","
    unusual = (read.quote not in (None, '"'), read.escape is not None, read.null_value)
    if separator not in (",", ";", "\t", "|") or any(unusual):
        raise Unclear("its separator, or what stands for quotes or NULL")
    return separator


def plain_lines(text: bytes, separator: str | None) -> bytes:
    """Whole lines of text, each with a line feed behind it. Raises `Unclear`.

    With a `separator` they are lines of CSV, whose quotes are all around values of one line.
    """
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n")
    found = np.frombuffer(text, np.uint8)
    control = (found < 0x20) & (found != _TAB) & (found != _LINE_FEED)
    if control.any() or (found == _BACKSLASH).any():
        raise Unclear("a backslash, a carriage return or another control character")
    if separator is not None and b'"' in text:
        _check_quotes(found, ord(separator))
    return text


def lines_in(text: bytes) -> int:
    """How many records there are in whole lines of text."""
    return text.count(b"\n") + (not text.endswith(b"\n"))


def _check_quotes(text: np.ndarray[tuple[int], np.dtype[np.uint8]], separator: int) -> None:
    """Raise `Unclear` unless quotes are in pairs, each of them around a value or a part of it.

    The parts of a value meet in its doubled quotes.
    """
    quotes = np.flatnonzero(text == _QUOTE)
    if len(quotes) % 2:
        raise Unclear("a quoted value that does not end in its line")
    opening, closing = quotes[::2], quotes[1::2]
    ends = np.flatnonzero(text == _LINE_FEED)
    if (np.searchsorted(ends, opening) != np.searchsorted(ends, closing)).any():
        raise Unclear("a quoted value that does not end in its line")
    meet = opening[1:] == closing[:-1] + 1
    edges = np.concatenate(([_LINE_FEED], text, [_LINE_FEED]))
    starts = np.isin(edges[opening], (separator, _LINE_FEED))
    stops = np.isin(edges[closing + 2], (separator, _LINE_FEED))
    starts[1:] |= meet
    stops[:-1] |= meet
    if not starts.all() or not stops.all():
        raise Unclear("a quote within a value")
