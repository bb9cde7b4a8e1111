"""`to_timestamp` of DataFusion, of a text, in Spark SQL.

A text that both engines read is read in the same way; any other makes the step fail, as it makes
DataFusion fail, or names the difference. Measured with DataFusion 55: without a format, texts as
RFC 3339 has them, a date alone too; formats are those of Rust's crate `chrono`.
A regular expression guards Spark's own way to read a text, which is more generous.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from odfbuild.values import Value

_END = "(?!(?s:.))"
"""The end of a text. In Java `$` stands before a last line feed, too."""
_YEAR = "167[89]|16[89][0-9]|1[789][0-9]{2}|2[01][0-9]{2}|22[0-5][0-9]|226[01]"
"""Years whose every moment is a number of nanoseconds since 1970, as DataFusion keeps times."""
_FRACTION = "[.][0-9]{1,6}0{0,3}"
"""Microseconds: Spark has no finer ones."""
_HOURS = "[+-](?:0[0-9]|1[0-7])"
_ZONE = f"{_HOURS}:?[0-5][0-9]"
_CLOCK = "(?:[01][0-9]|2[0-3])(?::[0-5][0-9]){2}"
_RFC_3339 = (
    f"^(?:{_YEAR})-[0-9]{{2}}-[0-9]{{2}}(?:[T ]{_CLOCK}(?:{_FRACTION})?(?:Z|{_ZONE})?)?{_END}"
)

_PARTS = {
    "Y": ("year", _YEAR, "yyyy"),
    "y": ("year", "[0-6][0-9]", "yy"),
    "m": ("month", "0?[1-9]|1[0-2]", "M"),
    "b": ("month", "(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)", "MMM"),
    "B": (
        "month",
        "(?i:january|february|march|april|may|june|july|august|september|october|november|december)",
        "MMMM",
    ),
    "d": ("day", "0?[1-9]|[12][0-9]|3[01]", "d"),
    "H": ("hour", "[01]?[0-9]|2[0-3]", "H"),
    "I": ("hour", "0?[1-9]|1[0-2]", "h"),
    "M": ("minute", "[0-5]?[0-9]", "m"),
    "S": ("second", "[0-5]?[0-9]", "s"),
    "p": ("half", "(?i:am|pm)", "a"),
    ".f": ("fraction", f"(?:{_FRACTION})?", "[.SSSSSSSSS]"),
    "z": ("zone", f"{_HOURS}[0-5][0-9]", "xx"),
    ":z": ("zone", f"{_HOURS}:[0-5][0-9]", "xxx"),
}
"""What a specifier of chrono says, the texts that it stands for, and Spark's letters for it."""
_SAME = {"e": "d", "h": "b", "P": "p"}
_SHORTHANDS = {"F": "%Y-%m-%d", "T": "%H:%M:%S", "D": "%m/%d/%y", "R": "%H:%M"}
_SPECIFIER = re.compile(r"%([-_0]?)(\.f|:z|.)|(.)", re.DOTALL)
_DIGITS = frozenset("YymdeHIMS")


class Format(Value):
    """A format of chrono: the regular expression of its texts, and the same in letters of Spark."""

    pattern: str
    letters: str


class UnknownFormat(ValueError):
    """Why a format has no translation."""


def format_of(text: str) -> Format:
    """A format that Spark can follow; raises `UnknownFormat`."""
    for shorthand, meaning in _SHORTHANDS.items():
        text = re.sub(f"(?<!%)%{shorthand}", meaning, text)
    pattern, letters, found = "", "", [""]
    for _, specifier, other in _SPECIFIER.findall(text):
        plain = other or ("%" if specifier == "%" else "")
        name = _SAME.get(specifier, specifier)
        if plain and re.search(r"[^ -~]|['\\\\\[\]^]", plain):
            raise UnknownFormat(f"the character {plain!r} in a format")
        if not plain and name not in _PARTS:
            raise UnknownFormat(f"`%{specifier}` in a format")
        if not plain and {found[-1], name} <= _DIGITS:
            raise UnknownFormat("numbers in a format without anything between them")
        pattern += f"[{plain}]" if plain else f"(?:{_PARTS[name][1]})"
        letters += f"'{plain}'" if plain else _PARTS[name][2]
        found.append("" if plain else name)
    parts = [_PARTS[name][0] for name in found if name]
    _check(parts)
    if ("I" in found) != ("half" in parts):
        raise UnknownFormat("`%I` in a format without `%p`, or the other way round")
    return Format(f"^{pattern}{_END}", letters.replace("''", ""))


def _check(kinds: Sequence[str]) -> None:
    """A whole date, and no time of day or one with minutes: chrono ignores an hour alone."""
    if len(set(kinds)) < len(kinds):
        raise UnknownFormat("one part of a time twice in a format")
    if not {"year", "month", "day"} <= {*kinds}:
        raise UnknownFormat("a format without year, month and day")
    time = {"hour", "minute", "second", "fraction", "half", "zone"} & {*kinds}
    if time and not {"hour", "minute"} <= time:
        raise UnknownFormat("a format with part of a time of day")
    if time & {"fraction", "zone"} and "second" not in time:
        raise UnknownFormat("a format without seconds, but with more")


def guard_of(format_: str | None) -> str:
    """The regular expression of the texts that both engines read alike."""
    return _RFC_3339 if format_ is None else format_of(format_).pattern


def time_of_text(text: str, format_: str | None) -> str:
    """The time that a text tells, in Spark SQL; `text` is an expression in it."""
    letters = "" if format_ is None else f", {_quoted(format_of(format_).letters)}"
    expected = "like 2024-05-01T12:30:00Z" if format_ is None else f"of the format {format_}"
    why = _quoted(f" is not {expected}, as DataFusion and Spark read it alike")
    return (
        f"CASE WHEN {text} IS NULL THEN NULL WHEN {text} RLIKE {_quoted(guard_of(format_))} "
        f"THEN to_timestamp({text}{letters}) "
        f"ELSE CAST(raise_error(concat('to_timestamp: ', {text}, {why})) AS TIMESTAMP) END"
    )


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
