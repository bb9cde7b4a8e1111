"""Windows of event time in the text of a query, and the records that affect them.

Which records came behind a window follows from the chains of the inputs alone, as the windows
themselves do: a record counts in a window that ends after the watermark that its input had just
before. Reads one column of the files that hold such records. Source: Open Data Fabric, "Watermark".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

from odfbuild.engine.event_times import event_times
from odfbuild.odf.model import TransformSql
from odfbuild.odf.timestamp import Timestamp
from odfbuild.sql.forecast import window_call
from odfbuild.values import Value

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlglot import exp

    from odfbuild.engine.contract import SliceFile
    from odfbuild.odf.vocabulary import Vocabulary

_UNITS = {
    "week": 604_800_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1000,
    "microsecond": 1,
}


class EventWindows(Value):
    """Windows of `length` that begin every `slide`, one of them at `start`; all in microseconds."""

    length: int
    slide: int
    start: int = 0

    def first_end(self, times: Any) -> Any:
        """The end of the first window that holds a time: microseconds since 1970, or many."""
        return self._first_start(times) + self.length

    def last_end(self, times: Any) -> Any:
        """The end of the last window that holds a time."""
        return (times - self.start) // self.slide * self.slide + self.start + self.length

    def has_end_in(self, times: Any, after: float, upto: float) -> Any:
        """Whether a window that holds a time ends in `(after, upto]`; for many times at once."""
        ends = self.first_end(times)
        if isfinite(after):
            missing = (int(after) - ends) // self.slide + 1
            ends = ends + missing.clip(min=0) * self.slide
        return (ends <= upto) & (ends <= self.last_end(times))

    def _first_start(self, times: Any) -> Any:
        # The first multiple of `slide` behind the time minus the length.
        return ((times - self.length - self.start) // self.slide + 1) * self.slide + self.start


def windows_of(transform: TransformSql) -> EventWindows | None:
    """The windows that a query closes one by one; `None` where it has none, or tells no length."""
    call = window_call(transform)
    lengths = [_micros(each) for each in call.expressions[1:]] if call is not None else []
    if not 1 <= len(lengths) <= 3 or None in lengths:
        return None
    length, slide, start = (*lengths, *(lengths[0], 0)[len(lengths) - 1 :])
    return EventWindows(length, slide, start)  # type: ignore[arg-type]


class LateRecords(Value):
    """Records of one file that came too late: offsets, times, and the watermark that they missed.

    Both are arrays, times in microseconds since 1970.
    """

    offsets: Any
    micros: Any
    watermark: Timestamp


def late_records(
    files: Iterable[SliceFile], vocab: Vocabulary, windows: EventWindows | None
) -> Iterator[LateRecords]:
    """The records that came behind a window, file by file, where there are any.

    Without `windows` those of a time before the watermark that held when they came.
    """
    for file in files:
        if file.promised is None:
            continue
        promised = file.promised.millis * 1000
        first, _ = _span(file, vocab.event_time)
        if first is not None and not _is_late(first, promised, windows):
            continue
        table = _read(file, [vocab.offset, vocab.event_time])
        times = _times(table, vocab.event_time)
        late = _is_late(times, promised, windows)
        if late.any():
            yield LateRecords(table[vocab.offset].to_numpy()[late], times[late], file.promised)


def count_late(files: Iterable[SliceFile], vocab: Vocabulary, windows: EventWindows | None) -> int:
    """How many records `late_records` finds."""
    return sum(len(each.offsets) for each in late_records(files, vocab, windows))


class Handover(Value):
    """Records that were read before a query with windows replaces another one.

    `taken` are in a window of the new query that is still to close. `dropped` are in an open window
    of the old query, which nobody closes, and in none of the new one. `repeated` are in a closed
    window of the old query and in a longer or shorter one that the new query closes.
    """

    taken: int = 0
    dropped: int = 0
    repeated: int = 0

    def __add__(self, other: Handover) -> Handover:
        return Handover(
            self.taken + other.taken, self.dropped + other.dropped, self.repeated + other.repeated
        )


def handover(
    files: Iterable[SliceFile],
    vocab: Vocabulary,
    old: EventWindows | None,
    new: EventWindows | None,
    reached: Timestamp | None,
) -> Handover:
    """What becomes of the records of `files` where windows change, `reached` by the watermark."""
    total = Handover()
    closed = -inf if reached is None else reached.millis * 1000
    for file in files:
        promised = -inf if file.promised is None else file.promised.millis * 1000
        passed = max(closed, promised)
        _, last = _span(file, vocab.event_time)
        if last is not None and not any(w and w.last_end(last) > passed for w in (old, new)):
            continue
        times = _times(_read(file, [vocab.event_time]), vocab.event_time)
        no = times < -inf
        taken = new.last_end(times) > passed if new else no
        was_open = old.last_end(times) > passed if old else no
        was_closed = old.has_end_in(times, promised, closed) if old and old != new else no
        total += Handover(
            int(taken.sum()), int((was_open & ~taken).sum()), int((was_closed & taken).sum())
        )
    return total


def _is_late(times: Any, promised: int, windows: EventWindows | None) -> Any:
    return times < promised if windows is None else windows.first_end(times) <= promised


def _micros(length: exp.Expression) -> int | None:
    """A length of time as Spark's windows take it: `'1 day'`, `'90 minutes'`, `INTERVAL 1 HOUR`."""
    text = f"{length.name} {length.text('unit')}".lower()
    parts = re.findall(r"-?\d+|[a-z]+", text.removeprefix("interval"))
    units = [_UNITS.get(each.removesuffix("s")) for each in parts[1::2]]
    numbers = [int(each) for each in parts[::2] if not each.isalpha()]
    if not units or None in units or len(numbers) != len(units):
        return None
    return sum(number * (unit or 0) for number, unit in zip(numbers, units, strict=True))


# --- Files ---


def _read(file: SliceFile, columns: list[str]) -> pa.Table:
    import pyarrow.parquet as pq

    with pq.ParquetFile(file.path) as data:
        return data.read(columns=columns)


def _times(table: pa.Table, column: str) -> Any:
    """Event times in microseconds; a date counts as its midnight in UTC."""
    import pyarrow as pa

    values = table[column].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    return values.to_numpy()


def _span(file: SliceFile, column: str) -> tuple[int | None, int | None]:
    """The first and the last event time of a file in microseconds, where statistics tell them."""
    span = event_times(file.path, column)
    first, last = (int(each * 1000) if isfinite(each) else None for each in (span.first, span.last))
    return first, last
