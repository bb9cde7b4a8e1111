"""Infer columns, types and a key from sample records.

For whoever writes a first definition: what is said holds for the records that were looked at and
for nothing else, so callers say how many these were. Values are those of JSON; of text only what
the readers of odfbuild take for a number, a date or a time is one. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from odfbuild.odf.schema.ddl import quoted_name

Record = Mapping[str, Any]

_NULL_WORDS = ("NA", "N/A", "NULL", "null", "\\N", "None")
"""What stands for a missing value in CSV files, besides nothing."""

# A number with a leading zero is a code: 007 is not 7.
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]"
    r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?(?:Z|[-+][0-9]{2}:[0-9]{2})?"
)
_KEY_NAME = re.compile(
    r"(?:.*[_\W])?(?:id|key|code|uuid|guid|number|no|nr)\.?|.*[a-z](?:Id|ID)", re.IGNORECASE
)
_TIMES = ("TIMESTAMP", "DATE")
_MOST_COLUMNS_OF_A_PAIR = 12


@dataclass(frozen=True, slots=True)
class Column:
    """A column; `type` in DDL."""

    name: str
    type: str

    @property
    def ddl(self) -> str:
        """The column as read steps declare it."""
        return f"{quoted_name(self.name)} {self.type}"


@dataclass(frozen=True, slots=True)
class InferredFormat:
    """What `records` records look like.

    `key` are columns that tell all of them apart (empty: none that look like a key do), `null` the
    word that stands for missing values in text.
    """

    columns: tuple[Column, ...]
    records: int
    key: tuple[str, ...] = ()
    null: str | None = None

    @property
    def event_time(self) -> str | None:
        """The column that says when a record happened; `None` when none or several may."""
        return event_time_of(self.columns)


def event_time_of(columns: Sequence[Column]) -> str | None:
    """`event_time`, else the only timestamp, else the only date; `None`: cannot tell."""
    if any(column.name == "event_time" for column in columns):
        return "event_time"
    for kind in _TIMES:
        found = [column.name for column in columns if column.type == kind]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def guess(records: Sequence[Record], *, is_text: bool) -> InferredFormat:
    """What records look like; `is_text`: numbers are text, too, as in CSV."""
    null = _null_word(records) if is_text else None
    columns = _columns(records, null, _of_text if is_text else _of_words)
    return InferredFormat(tuple(columns), len(records), _key(columns, records, null), null)


def guess_key(columns: Sequence[Column], records: Sequence[Record]) -> InferredFormat:
    """As `guess`, for a file that says itself which columns it has."""
    return InferredFormat(tuple(columns), len(records), _key(columns, records, None))


def _null_word(records: Sequence[Record]) -> str | None:
    """The word without which most columns are something else than text."""
    present = {
        value for record in records for value in record.values() if isinstance(value, str)
    }.intersection(_NULL_WORDS)
    best, most = None, 0
    for word in sorted(present):
        typed = sum(
            each.type != "STRING" and any(record.get(each.name) == word for record in records)
            for each in _columns(records, word, _of_text)
        )
        if typed > most:
            best, most = word, typed
    return best


_Strings = Callable[[str], tuple[str, ...]]


def _columns(records: Sequence[Record], null: str | None, strings: _Strings) -> list[Column]:
    names = dict.fromkeys(name for record in records for name in record)
    return [Column(name, _type([*_values(records, name, null)], strings)) for name in names]


def _values(records: Iterable[Record], name: str, null: str | None) -> Iterator[Any]:
    for record in records:
        value = record.get(name)
        if value is not None and value != "" and (null is None or value != null):
            yield value


def _type(values: Sequence[Any], strings: _Strings) -> str:
    """The narrowest DDL type that all values have; text where they differ."""
    if not values:
        return "STRING"
    if all(isinstance(value, dict) for value in values):
        members = _columns(values, None, _plain_text)
        inner = ", ".join(f"{quoted_name(each.name)}: {each.type}" for each in members)
        # A record without members has no form in DDL.
        return f"STRUCT<{inner}>" if members and all(each.name for each in members) else "STRING"
    if all(isinstance(value, list) for value in values):
        items = [item for value in values for item in value if item is not None]
        # Lists of records have no hash in Open Data Fabric; as text they can be kept.
        is_deep = any(isinstance(item, dict | list) for item in items)
        return "STRING" if is_deep else f"ARRAY<{_type(items, _plain_text)}>"
    kinds = [_kinds(value, strings) for value in values]
    common = set(kinds[0]).intersection(*kinds[1:])
    return next((kind for kind in kinds[0] if kind in common), "STRING")


def _kinds(value: Any, strings: _Strings) -> tuple[str, ...]:
    """All types that a value has, the narrowest first."""
    if isinstance(value, str):
        return strings(value)
    if isinstance(value, bool):
        return ("BOOLEAN",)
    if isinstance(value, int):
        return ("BIGINT", "DOUBLE") if -(2**63) <= value < 2**63 else ("DOUBLE",)
    return ("DOUBLE",) if isinstance(value, float) else ()


def _of_text(value: str) -> tuple[str, ...]:
    if value in ("true", "false"):
        return ("BOOLEAN",)
    if _WHOLE.fullmatch(value):
        return ("BIGINT", "DOUBLE")
    return ("DOUBLE",) if _NUMBER.fullmatch(value) else _of_words(value)


def _of_words(value: str) -> tuple[str, ...]:
    if _DATE.fullmatch(value) and _is_day(value):
        return ("DATE",)
    time = _TIME.fullmatch(value)
    return ("TIMESTAMP",) if time and _is_day(time.group(1)) else ()


def _plain_text(value: str) -> tuple[str, ...]:
    return ()


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _key(columns: Sequence[Column], records: Sequence[Record], null: str | None) -> tuple[str, ...]:
    """The first of the likely keys that tells all records apart."""
    if len(records) < 2:
        return ()
    full = [
        column
        for column in columns
        if column.type in ("BIGINT", "INT", "STRING", *_TIMES)
        and sum(1 for _ in _values(records, column.name, null)) == len(records)
    ]
    for names in _candidates(full, records):
        if len({tuple(str(record[name]) for name in names) for record in records}) == len(records):
            return names
    return ()


def _candidates(columns: Sequence[Column], records: Sequence[Record]) -> Iterator[tuple[str, ...]]:
    """Likely keys, the likeliest first.

    A number may be different in every record by chance, so only its name makes it a key.
    """
    named = [column.name for column in columns if _KEY_NAME.fullmatch(column.name)]
    yield from ((name,) for name in named)
    time = event_time_of(columns) or next((c.name for c in columns if c.type in _TIMES), None)
    texts = [column.name for column in columns if column.type == "STRING"]
    if time is not None:
        parts = dict.fromkeys([*named, *texts])
        # What repeats says what a record is about: a city, a sensor.
        yield from ((time, name) for name in parts if _repeats(records, name))
        yield (time,)
    elif columns and columns[0].type == "STRING":
        yield (columns[0].name,)
    pairs = list(dict.fromkeys([*named, *texts]))[:_MOST_COLUMNS_OF_A_PAIR]
    yield from ((one, two) for at, one in enumerate(pairs) for two in pairs[at + 1 :])


def _repeats(records: Sequence[Record], name: str) -> bool:
    return len({record[name] for record in records}) < len(records)
