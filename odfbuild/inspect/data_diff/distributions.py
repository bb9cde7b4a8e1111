"""Which values columns have in two states, and whether that differs by more than a little."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from odfbuild.inspect.data_diff.columns import Common, is_number, is_text, is_time, row_of
from odfbuild.inspect.data_diff.model import Distribution, Drift
from odfbuild.odf.records import plain_value
from odfbuild.records.duckdb_views import quote

if TYPE_CHECKING:
    import duckdb

EXACT_RECORDS = 1_000_000
"""With more records, quantiles and numbers of different values are estimated."""
_FEW = 1000
"""Text with no more different values is told by its most frequent ones."""
_TOP = 3
_QUANTILES = "[0.05, 0.5, 0.95]"


def drifts(
    connection: duckdb.DuckDBPyConnection, old: str, new: str, common: Sequence[Common]
) -> tuple[Drift, ...]:
    """The columns of two relations whose distributions differ, in the order of the new one."""
    before = distributions(connection, old, [(each.old_name, each.old_type) for each in common])
    after = distributions(connection, new, [(each.name, each.new_type) for each in common])
    found = []
    for each, (old_values, raw_old), (new_values, raw_new) in zip(
        common, before, after, strict=True
    ):
        shifts = shifts_between(old_values, raw_old, new_values, raw_new)
        if shifts:
            found.append(Drift(column=each.name, old=old_values, new=new_values, shifts=shifts))
    return tuple(found)


Raw = tuple[float, float, float] | None
"""Quantiles as numbers."""


def distributions(
    connection: duckdb.DuckDBPyConnection, relation: str, columns: Sequence[tuple[str, str]]
) -> list[tuple[Distribution, Raw]]:
    """The distribution of each column (name and type), and its quantiles as numbers."""
    source = quote(relation)
    records = row_of(connection, f"SELECT count(*) FROM {source}")[0]
    exact = records <= EXACT_RECORDS
    parts = ", ".join(part for column in columns for part in _parts(*column, exact))
    row = row_of(connection, f"SELECT {parts} FROM {source}") if columns else ()
    found = []
    for number, (name, kind) in enumerate(columns):
        present, distinct, least, greatest, quantiles = row[5 * number : 5 * number + 5]
        top: tuple[tuple[Any, int], ...] = ()
        if is_text(kind) and 0 < distinct <= _FEW:
            top = tuple(
                (plain_value(value), many)
                for value, many in connection.execute(
                    f"SELECT {quote(name)}, count(*) FROM {source} WHERE {quote(name)} IS NOT NULL"
                    f" GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {_TOP}"
                ).fetchall()
            )
        found.append(
            (
                Distribution(
                    records=records,
                    nulls=records - present,
                    distinct=distinct,
                    least=plain_value(least),
                    greatest=plain_value(greatest),
                    quantiles=quantiles and tuple(map(plain_value, quantiles)),
                    top=top,
                    exact=exact,
                ),
                quantiles and tuple(map(_number, quantiles)),
            )
        )
    return found


def _parts(name: str, kind: str, exact: bool) -> list[str]:
    """SQL text for: values, different ones, the least, the greatest, quantiles."""
    column = quote(name)
    distinct = f"count(DISTINCT {column})" if exact else f"approx_count_distinct({column})"
    if is_text(kind):
        return [f"count({column})", distinct, "NULL", "NULL", "NULL"]
    if not (is_number(kind) or is_time(kind)):
        return [f"count({column})", "0", "NULL", "NULL", "NULL"]
    quantiles = (
        f"quantile_disc({column}, {_QUANTILES})"
        if exact
        else f"approx_quantile({column}, {_QUANTILES})"
    )
    return [f"count({column})", distinct, f"min({column})", f"max({column})", quantiles]


def shifts_between(
    old: Distribution, old_quantiles: Raw, new: Distribution, new_quantiles: Raw
) -> tuple[str, ...]:
    """In what two distributions differ by more than a little; nothing where one has no records."""
    if not old.records or not new.records:
        return ()
    found = []
    shares = [each.nulls / each.records for each in (old, new)]
    if (not old.nulls) != (not new.nulls) or abs(shares[0] - shares[1]) >= 0.01:
        found.append("nulls")
    if (old.least, old.greatest) != (new.least, new.greatest):
        found.append("range")
    if old_quantiles and new_quantiles:
        spread = old_quantiles[2] - old_quantiles[0]
        moved = max(abs(a - b) for a, b in zip(old_quantiles, new_quantiles, strict=True))
        if moved > 0.05 * spread:
            found.append("quantiles")
    if abs(old.distinct - new.distinct) >= 0.1 * max(old.distinct, new.distinct, 1):
        found.append("distinct")
    if old.top and new.top and _other_top(old, new):
        found.append("top")
    return tuple(found)


def _other_top(old: Distribution, new: Distribution) -> bool:
    """Whether a frequent value is more or less frequent by a twentieth of all records."""
    before, after = ({str(k): n / each.records for k, n in each.top} for each in (old, new))
    return any(
        abs(before.get(value, 0) - after.get(value, 0)) >= 0.05
        for value in before.keys() & after.keys()
    ) or any(
        share >= 0.05
        for side, other in ((before, after), (after, before))
        for value, share in side.items()
        if value not in other and share >= min(other.values()) + 0.05
    )


def _number(value: Any) -> float:
    """A number or a time as a number."""
    if isinstance(value, datetime):
        zoned = value if value.tzinfo else value.replace(tzinfo=UTC)
        return zoned.timestamp()
    if isinstance(value, date):
        return float(value.toordinal())
    return float(value)
