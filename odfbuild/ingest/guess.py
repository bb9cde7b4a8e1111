"""Infer columns, types and a key from sample records.

For whoever writes a first definition: what is said holds for the records that were looked at and
for nothing else, so callers say how many these were. Values are those of JSON; of text only what
the readers of odfbuild take for a number, a date or a time is one. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import chain, pairwise
from typing import Any

from odfbuild.odf.schema.ddl import quoted_name
from odfbuild.values import Value

Record = Mapping[str, Any]
Key = tuple[str, ...]

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
_MONEY = re.compile(
    r"amounts?|amt|balance|bill|brutto|budget|charges?|chf|costs?|credit|debit|dollars?|earnings"
    r"|eur|euros?|expenses?|fares?|fees?|gbp|gross|income|net|netto|paid|payments?|prices?|profit"
    r"|revenues?|salary|sales|subtotal|tax(?:es)?|total|turnover|usd|vat|wages?"
)
"""Words in names of columns that hold money."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_DECIMAL = re.compile(r"-?([0-9]+)(?:\.([0-9]+))?")
_MOST_DECIMALS = 6
"""Of numbers that people write down; more come from a computation with floating point."""
_DIGITS = 18
_ROOM = 4
_TIMES = ("TIMESTAMP", "DATE")
_MOST_COLUMNS_OF_A_PAIR = 12


class Column(Value):
    """A column; `type` in DDL."""

    name: str
    type: str

    @property
    def ddl(self) -> str:
        """The column as read steps declare it."""
        return f"{quoted_name(self.name)} {self.type}"


class InferredFormat(Value):
    """What `records` records look like.

    `key` are columns that tell all of them apart (empty: none that look like a key do), `null` the
    word that stands for missing values in text. `state_key` tells apart the records of each file,
    if `key` is empty and the files have the same ones again: each file is the whole state.
    """

    columns: tuple[Column, ...]
    records: int
    key: tuple[str, ...] = ()
    null: str | None = None
    state_key: tuple[str, ...] = ()

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


def guess(files: Sequence[Sequence[Record]], *, is_text: bool) -> InferredFormat:
    """What records of `files` look like; `is_text`: numbers are text, too, as in CSV."""
    records = list(chain.from_iterable(files))
    null = _null_word(records) if is_text else None
    columns = _columns(records, null, _of_text if is_text else _of_words)
    return guess_key(columns, files, null)


def guess_key(
    columns: Sequence[Column], files: Sequence[Sequence[Record]], null: str | None = None
) -> InferredFormat:
    """As `guess`, of files that say themselves which columns they have."""
    records = list(chain.from_iterable(files))
    key = _key(columns, records, null)
    state_key = () if key else _state_key(columns, files, null)
    return InferredFormat(tuple(columns), len(records), key, null, state_key)


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


def _money(name: str, values: Sequence[Any]) -> str:
    """The type of a column of numbers: DECIMAL for money, of which sums have to be exact.

    Text with the same two to four decimals everywhere is money, too, whatever it is called.
    """
    texts = [value if isinstance(value, str) else repr(value) for value in values]
    whole = [part for part in map(_DECIMAL.fullmatch, texts) if part is not None]
    decimals = {len(part[2] or "") for part in whole}
    scale = max(decimals, default=0)
    is_even = len(decimals) == 1 and 2 <= scale <= 4 and isinstance(values[0], str)
    is_named = any(_MONEY.fullmatch(word.lower()) for word in _WORD.findall(name))
    if len(whole) < len(texts) or scale > _MOST_DECIMALS or not (is_even or is_named):
        return "DOUBLE"
    scale = max(2, scale)
    digits = max(len(part[1]) for part in whole) + _ROOM + scale
    return f"DECIMAL({max(_DIGITS, digits)}, {scale})" if digits <= 38 else "DOUBLE"


_Strings = Callable[[str], tuple[str, ...]]


def _columns(records: Sequence[Record], null: str | None, strings: _Strings) -> list[Column]:
    names = dict.fromkeys(name for record in records for name in record)
    values = {name: [*_values(records, name, null)] for name in names}
    kinds = {name: _type(values[name], strings) for name in names}
    return [
        Column(name, _money(name, values[name]) if kind == "DOUBLE" else kind)
        for name, kind in kinds.items()
    ]


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
    for names in _candidates(_full(columns, records, null), records):
        if len({_key_of(record, names) for record in records}) == len(records):
            return names
    return ()


def _state_key(
    columns: Sequence[Column], files: Sequence[Sequence[Record]], null: str | None
) -> tuple[str, ...]:
    """The first of the likely keys by which each file is the whole state, at a time of its own.

    Each file has a key once, most keys are in the next file again, and most of their records have
    not changed: figures of a month that are all new in the next one are no state.
    """
    if len(files) < 2 or min(map(len, files)) < 2:
        return ()
    records = list(chain.from_iterable(files))
    for names in _candidates(_full(columns, records, null), records):
        states = [{_key_of(record, names): record for record in each} for each in files]
        if all(len(one) == len(each) for one, each in zip(states, files, strict=True)) and all(
            _is_next(one, other) for one, other in pairwise(states)
        ):
            return names
    return ()


def _is_next(one: Mapping[Key, Record], other: Mapping[Key, Record]) -> bool:
    again = one.keys() & other.keys()
    same = sum(one[key] == other[key] for key in again)
    return 2 * len(again) > min(len(one), len(other)) and 2 * same >= len(again)


def _full(
    columns: Sequence[Column], records: Sequence[Record], null: str | None
) -> Sequence[Column]:
    """Columns that may be part of a key, by their types and because none of them is blank."""
    return [
        column
        for column in columns
        if column.type in ("BIGINT", "INT", "STRING", *_TIMES)
        and sum(1 for _ in _values(records, column.name, null)) == len(records)
    ]


def _key_of(record: Record, names: Sequence[str]) -> Key:
    return tuple(str(record[name]) for name in names)


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
