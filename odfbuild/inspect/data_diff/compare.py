"""Compare two states of a dataset in DuckDB, which keeps what does not fit into memory on disk.

Each record that led to a state counts for it, or against it where it retracts another one. The
sums per record, of the new state less the old one, are the difference: so what led to both states,
such as a slice that both have, need not be read. Where that leaves one record of a key on each
side, the record was changed; other records were added or removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from odfbuild.errors import RecordsError
from odfbuild.inspect.data_diff.columns import Common, common_columns, is_float, is_nested, row_of
from odfbuild.inspect.data_diff.distributions import drifts
from odfbuild.inspect.data_diff.model import (
    SAMPLES,
    Change,
    ColumnRate,
    DataDiff,
    Key,
    Sample,
)
from odfbuild.odf.records import plain_value
from odfbuild.records.duckdb_views import quote
from odfbuild.wording import did_you_mean

if TYPE_CHECKING:
    import duckdb

ASKED = "--key"
"""Where a key comes from that somebody asked for."""
SIGN = "__odf_sign"
"""The column of `moves`: 1 for a record that was added, -1 for one that was retracted."""
_PAIRED = "__odf_paired"
_MOST_KEY_COLUMNS = 12
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Side:
    """A state as relations of a connection.

    `state` has its records. `moves` has the records that led there and the column `SIGN`, or only
    those that did not lead to the other side as well.
    """

    name: str
    state: str
    moves: str
    records: int


def compare(
    connection: duckdb.DuckDBPyConnection,
    dataset: str,
    old: Side,
    new: Side,
    keys: Iterable[Key] = (),
) -> DataDiff:
    """The differences. Of `keys`, the first one counts whose columns are there in both states.

    Where there is none, the first columns that are unique together in both states are the key.
    """
    common, schema = common_columns(connection, old.state, new.state)
    found = DataDiff(
        dataset=dataset,
        old=old.name,
        new=new.name,
        old_records=old.records,
        new_records=new.records,
        schema=schema,
    )
    _sum_up(connection, old, new, common)
    if not _one(connection, "SELECT count(*) FROM delta"):
        return found
    key = _given(dataset, keys, common) or _unique(connection, old, new, common)
    columns = [quote(each) for each in key.columns] if key is not None else []
    _pair(connection, columns)
    removed, added, changed, repeated = row_of(
        connection,
        f"SELECT coalesce(-sum({SIGN}) FILTER ({SIGN} < 0 AND NOT {_PAIRED}), 0),"
        f" coalesce(sum({SIGN}) FILTER ({SIGN} > 0 AND NOT {_PAIRED}), 0),"
        f" count(*) FILTER ({SIGN} > 0 AND {_PAIRED}),"
        f" {_repeated(columns)} FROM paired",
    )
    return replace(
        found,
        key=key and replace(key, repeated=repeated),
        added=int(added),
        # A changed record is in both states.
        removed=int(removed),
        changed=changed,
        rates=_rates(connection, columns, key, common) if changed else (),
        samples=_samples(connection, columns, key, common),
        drift=drifts(connection, old.state, new.state, common),
    )


def _sum_up(
    connection: duckdb.DuckDBPyConnection, old: Side, new: Side, common: Sequence[Common]
) -> None:
    """The table `delta`: records that one state has more often than the other, and how often."""
    sides = (
        ", ".join(f"{each.value(new=is_new)} AS {quote(each.name)}" for each in common)
        + f", {'' if is_new else '-'}{SIGN} AS {SIGN} FROM {quote(side.moves)}"
        for side, is_new in ((old, False), (new, True))
    )
    names = ", ".join(quote(each.name) for each in common)
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE delta AS SELECT {names}, sum({SIGN})::BIGINT AS {SIGN}"
        f" FROM (SELECT {' UNION ALL SELECT '.join(sides)}) GROUP BY {names}"
        f" HAVING sum({SIGN}) <> 0"
    )


def _pair(connection: duckdb.DuckDBPyConnection, columns: Sequence[str]) -> None:
    """The table `paired`: `delta`, and which records are one and the same, changed."""
    by_key = f"OVER (PARTITION BY {', '.join(columns)})"
    paired = (
        f"count(*) {by_key} = 2 AND min({SIGN}) {by_key} = -1 AND max({SIGN}) {by_key} = 1"
        if columns
        else "false"
    )
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE paired AS SELECT *, {paired} AS {_PAIRED} FROM delta"
    )


def _repeated(columns: Sequence[str]) -> str:
    """SQL text for the number of keys with several records of one state that differ."""
    if not columns:
        return "0"
    several = f"GROUP BY {', '.join(columns)} HAVING sum(abs({SIGN})) > 1"
    return f"(SELECT count(*) FROM (SELECT 1 FROM paired WHERE NOT {_PAIRED} {several}))"


def _rates(
    connection: duckdb.DuckDBPyConnection,
    columns: Sequence[str],
    key: Key | None,
    common: Sequence[Common],
) -> tuple[ColumnRate, ...]:
    assert key is not None, "only records with a key are changed"
    others = [each for each in common if each.name not in key.columns]
    parts = []
    for each in others:
        name = quote(each.name)
        differ = f"o.{name} IS DISTINCT FROM n.{name}"
        parts.append(f"count(*) FILTER ({differ})")
        close = (
            f"{differ} AND abs(o.{name} - n.{name}) <= {_ROUNDING} * "
            f"greatest(abs(o.{name}), abs(n.{name}))"
        )
        both = is_float(each.old_type) and is_float(each.new_type)
        parts.append(f"count(*) FILTER ({close})" if both else "0")
    row = row_of(connection, f"SELECT {', '.join(parts)} FROM {_changed(columns)}")
    rates = (
        ColumnRate(column=each.name, changed=changed, rounding=rounding)
        for each, changed, rounding in zip(others, row[::2], row[1::2], strict=True)
        if changed
    )
    return tuple(sorted(rates, key=lambda each: (-each.changed, each.column)))


def _changed(columns: Sequence[str]) -> str:
    """SQL text for changed records, as they were (`o`) and as they are (`n`)."""
    same = " AND ".join(f"o.{name} IS NOT DISTINCT FROM n.{name}" for name in columns)
    o, n = (f"(FROM paired WHERE {_PAIRED} AND {SIGN} {sign} 0)" for sign in "<>")
    return f"{o} o JOIN {n} n ON {same}"


def _samples(
    connection: duckdb.DuckDBPyConnection,
    columns: Sequence[str],
    key: Key | None,
    common: Sequence[Common],
) -> tuple[Sample, ...]:
    """Some records of each kind in the order of their keys: changed ones first."""
    names = [each.name for each in common]
    order = ", ".join([*columns, *(quote(name) for name in names if quote(name) not in columns)])
    known = key.columns if key is not None else ()
    found: dict[Change, list[Sample]] = {each: [] for each in Change}
    if known:
        both = ", ".join(f"{side}.{quote(name)}" for side in "on" for name in names)
        changed_order = ", ".join(f"n.{name}" for name in columns)
        rows = connection.execute(
            f"SELECT {both} FROM {_changed(columns)} ORDER BY {changed_order} LIMIT {SAMPLES}"
        ).fetchall()
        for row in rows:
            old, new = (_plain(names, values) for values in (row[: len(names)], row[len(names) :]))
            differ = [name for name in names if name not in known and old[name] != new[name]]
            found[Change.CHANGED].append(
                Sample(
                    change=Change.CHANGED,
                    key={name: new[name] for name in known},
                    old={name: old[name] for name in differ},
                    new={name: new[name] for name in differ},
                )
            )
    for change, sign in ((Change.REMOVED, "<"), (Change.ADDED, ">")):
        rows = connection.execute(
            f"SELECT {', '.join(map(quote, names))} FROM paired"
            f" WHERE NOT {_PAIRED} AND {SIGN} {sign} 0 ORDER BY {order} LIMIT {SAMPLES}"
        ).fetchall()
        for row in rows:
            values = _plain(names, row)
            rest = {name: value for name, value in values.items() if name not in known}
            found[change].append(
                Sample(
                    change=change,
                    key={name: values[name] for name in known},
                    **{"new" if change is Change.ADDED else "old": rest},
                )
            )
    return shared_out([found[Change.CHANGED], found[Change.REMOVED], found[Change.ADDED]])


def shared_out(kinds: Sequence[Sequence[Sample]], most: int = SAMPLES) -> tuple[Sample, ...]:
    """At most so many of all kinds together, as equally many of each as there are."""
    taken = [0] * len(kinds)
    while sum(taken) < most:
        more = [number for number, each in enumerate(kinds) if taken[number] < len(each)]
        if not more:
            break
        for number in more[: most - sum(taken)]:
            taken[number] += 1
    return tuple(each for kind, many in zip(kinds, taken, strict=True) for each in kind[:many])


def _plain(names: Sequence[str], values: Iterable[Any]) -> Mapping[str, Any]:
    return dict(zip(names, map(plain_value, values), strict=True))


# --- Keys ---


def _given(dataset: str, keys: Iterable[Key], common: Sequence[Common]) -> Key | None:
    names = {each.name.lower(): each.name for each in common}
    for key in keys:
        missing = [name for name in key.columns if name.lower() not in names]
        if not missing:
            return replace(key, columns=tuple(names[name.lower()] for name in key.columns))
        if key.origin == ASKED:
            raise RecordsError(
                f"'{dataset}' has no column '{missing[0]}' in both states",
                code="E1221",
                dataset=dataset,
                help=did_you_mean(
                    missing[0], names.values(), f"columns of both: {', '.join(names.values())}"
                ),
            )
    return None


def _unique(
    connection: duckdb.DuckDBPyConnection, old: Side, new: Side, common: Sequence[Common]
) -> Key | None:
    """The first columns that are unique together, those before others whose values are the same.

    Where a change only gives columns other values, this leaves these columns out of the key.
    """
    able = [each for each in common if _identifies(each)]
    if not able:
        return None
    sums = ", ".join(f"sum({SIGN} * hash({quote(each.name)})::HUGEINT)" for each in able)
    moved = dict(zip(able, row_of(connection, f"SELECT {sums} FROM delta"), strict=True))
    able.sort(key=lambda each: moved[each] != 0)
    able = able[:_MOST_KEY_COLUMNS]
    sides = [(old, [quote(each.old_name) for each in able])]
    sides.append((new, [quote(each.name) for each in able]))
    estimates = [_estimates(connection, side, names) for side, names in sides]
    for number in range(1, len(able) + 1):
        likely = all(
            estimate[number - 1] >= 0.9 * side.records
            for (side, _), estimate in zip(sides, estimates, strict=True)
        )
        if likely and all(_are_unique(connection, side, names[:number]) for side, names in sides):
            columns = tuple(each.name for each in able[:number])
            return Key(columns=columns, origin="the first columns that are unique together")
    return None


def _identifies(column: Common) -> bool:
    return not any(is_float(each) or is_nested(each) for each in (column.old_type, column.new_type))


def _estimates(
    connection: duckdb.DuckDBPyConnection, side: Side, names: Sequence[str]
) -> Sequence[int]:
    """About how many different values the first column has, the first two, and so on."""
    hashes = (f"hash({', '.join(names[:number])})" for number in range(1, len(names) + 1))
    counts = ", ".join(f"approx_count_distinct({each})" for each in hashes)
    return row_of(connection, f"SELECT {counts} FROM {quote(side.state)}")


def _are_unique(connection: duckdb.DuckDBPyConnection, side: Side, names: Sequence[str]) -> bool:
    different = f"SELECT DISTINCT {', '.join(names)} FROM {quote(side.state)}"
    return bool(_one(connection, f"SELECT count(*) FROM ({different})") == side.records)


def _one(connection: duckdb.DuckDBPyConnection, sql: str) -> Any:
    return row_of(connection, sql)[0]
