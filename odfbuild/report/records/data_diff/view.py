"""What every form says of a difference of records, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from odfbuild.inspect.data_diff.model import (
    Change,
    ColumnChange,
    Comparison,
    DataDiff,
    Distribution,
    Drift,
    Sample,
    SchemaDifference,
)
from odfbuild.report.forms.words import size
from odfbuild.values import Value
from odfbuild.wording import count

if TYPE_CHECKING:
    from odfbuild.inspect.data_diff.queries import ChangedQuery

SIGNS = {Change.ADDED: "+", Change.REMOVED: "-", Change.CHANGED: "~"}
_WIDEST = 60
"""Values are cut after so many characters."""


class SampleView(Value):
    """A record: its sign, its key, and what is in its other columns, before and after."""

    sign: str
    key: str
    values: tuple[tuple[str, str | None, str | None], ...]

    @property
    def text(self) -> str:
        """The columns and their values."""
        return ", ".join(_cell(*each) for each in self.values)


class DiffView(Value):
    """A dataset; `rates` are columns, numbers and shares."""

    name: str
    states: str
    summary: str
    key: str
    rates: tuple[tuple[str, str, str], ...]
    schema: tuple[str, ...]
    drift: tuple[str, ...]
    samples: tuple[SampleView, ...]
    notes: tuple[str, ...]


def views(found: Comparison) -> tuple[DiffView, ...]:
    """Each dataset that differs."""
    return tuple(map(_view, found.diffs))


def closing(found: Comparison) -> str:
    """How many datasets differ."""
    parts = [f"{count(len(found.diffs), 'dataset')} with other records"]
    parts.append(f"{len(found.same)} without")
    if found.errors:
        failed = len({each.dataset for each in found.errors})
        parts.append(f"{failed} that could not be compared")
    return f"Data diff: {', '.join(parts)}."


def reads(queries: Sequence[ChangedQuery], limit: int) -> str:
    """How much changed queries read, in a sentence; empty where there are none to be computed."""
    able = [each for each in queries if not each.missing]
    if not able:
        return ""
    part = sum(not each.whole for each in able)
    what = f"a sample for {part} of them" if part else "all of it"
    many = f"{len(able):,} changed queries read"
    if len(able) == 1:
        many, what = "1 changed query reads", "a sample" if part else "all of it"
    read = size(sum(each.bytes for each in able))
    return f"{many} {read} of input: {what} (limit {size(limit)})."


def _view(found: DataDiff) -> DiffView:
    return DiffView(
        name=found.dataset,
        states=f"{found.old} → {found.new}",
        summary=_summary(found),
        key=_key(found),
        rates=tuple(
            (
                each.column,
                f"{each.changed:,} changed"
                + (f", {each.rounding:,} of them by rounding" if each.rounding else ""),
                share(each.changed, found.common),
            )
            for each in found.rates
        ),
        schema=tuple(map(_schema, found.schema)),
        drift=tuple(map(_drift, found.drift)),
        samples=tuple(map(_sample, found.samples)),
        notes=found.notes,
    )


def _summary(found: DataDiff) -> str:
    if not (found.added or found.removed or found.changed):
        return f"{count(found.new_records, 'record')}, all the same in the columns of both states"
    parts = [f"{found.added:,} added", f"{found.removed:,} removed"]
    if found.key is not None:
        rate = f" ({share(found.changed, found.common)})" if found.changed else ""
        parts.append(f"{found.changed:,} of {found.common:,} common records changed{rate}")
    return f"{', '.join(parts)}; {found.old_records:,} → {count(found.new_records, 'record')}"


def _key(found: DataDiff) -> str:
    if found.key is None:
        whole = "records are compared whole: no columns identify them"
        return whole if found.added or found.removed else ""
    key = found.key
    text = f"by {', '.join(key.columns)} ({key.origin})"
    if key.repeated:
        more = "has" if key.repeated == 1 else "have"
        text += f"; {count(key.repeated, 'key')} that differ{'s' * (key.repeated == 1)} "
        text += f"{more} several records, which count as removed and added"
    return text


def share(part: int, whole: int) -> str:
    """A part in percent, never 0 % or 100 % of what is more or less."""
    if not whole:
        return "–"
    percent = 100 * part / whole
    if part and percent < 0.01:
        return "< 0.01 %"
    if part < whole and percent > 99.99:
        return "> 99.99 %"
    return f"{percent:.3g} %"


def _schema(each: SchemaDifference) -> str:
    match each.change:
        case ColumnChange.ADDED:
            return f"+ {each.column} {each.new_type}"
        case ColumnChange.REMOVED:
            return f"- {each.column} {each.old_type}"
        case ColumnChange.RENAMED:
            return f"~ {each.column}: was called {each.old_name}"
    return f"~ {each.column}: {each.old_type} → {each.new_type}"


# --- Distributions ---


def _drift(each: Drift) -> str:
    return f"{each.column}: {'; '.join(_shifts(each.old, each.new, each.shifts))}"


def _shifts(old: Distribution, new: Distribution, shifts: tuple[str, ...]) -> Iterator[str]:
    about = "" if old.exact and new.exact else "about "
    if "nulls" in shifts:
        before, after = share(old.nulls, old.records), share(new.nulls, new.records)
        yield f"empty in {before} → {after} of records"
    if "range" in shifts:
        before, after = (f"{value(e.least)} to {value(e.greatest)}" for e in (old, new))
        yield f"from {before} → from {after}"
    if "quantiles" in shifts and old.quantiles and new.quantiles:
        before, after = (value(each.quantiles[1]) for each in (old, new) if each.quantiles)
        ends = [
            f"{value(low)} to {value(high)}"
            for low, _, high in filter(None, (old.quantiles, new.quantiles))
        ]
        yield f"median {about}{before} → {after}, nine tenths {about}{ends[0]} → {ends[1]}"
    if "distinct" in shifts:
        yield f"{about}{old.distinct:,} → {count(new.distinct, 'different value')}"
    if "top" in shifts:
        yield f"most frequent {_top(old)} → {_top(new)}"


def _top(of: Distribution) -> str:
    return ", ".join(f"{value(each)} {share(many, of.records)}" for each, many in of.top)


# --- Samples ---


def _sample(sample: Sample) -> SampleView:
    columns = list(dict.fromkeys((*sample.old, *sample.new)))
    return SampleView(
        sign=SIGNS[sample.change],
        key=", ".join(f"{name}={value(each)}" for name, each in sample.key.items()),
        values=tuple((each, _of(sample.old, each), _of(sample.new, each)) for each in columns),
    )


def _of(values: Mapping[str, Any], column: str) -> str | None:
    return value(values[column]) if column in values else None


def _cell(column: str, old: str | None, new: str | None) -> str:
    if old is None or new is None:
        return f"{column}={new if old is None else old}"
    return f"{column} {old} → {new}"


def value(of: Any) -> str:
    """A value on one line."""
    if of is None:
        return "null"
    if isinstance(of, bool):
        return str(of).lower()
    if isinstance(of, int) and not isinstance(of, bool):
        return str(of)
    text = str(of).replace("\n", "\\n")
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
