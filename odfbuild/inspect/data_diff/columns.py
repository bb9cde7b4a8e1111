"""Which columns two states have in common, by name, type and values; how values are compared.

Names are compared whatever their case. Values of different types are compared as numbers or times
where both are, else as text. Floating point numbers are compared exactly; NaN equals itself, and
zero its negative.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from odfbuild.inspect.data_diff.model import ColumnChange, SchemaDifference
from odfbuild.records.duckdb_views import quote

if TYPE_CHECKING:
    import duckdb

_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_FLOATS = ("FLOAT", "DOUBLE")
_WIDE = ("UBIGINT", "HUGEINT", *_FLOATS)


def is_float(kind: str) -> bool:
    """Whether a type of DuckDB is one of floating point."""
    return kind in _FLOATS


def is_number(kind: str) -> bool:
    """Whether a type of DuckDB is numeric."""
    return kind in _NUMBERS or kind in _WIDE or (kind.startswith("DECIMAL(") and kind[-1] == ")")


def is_time(kind: str) -> bool:
    """Whether a type of DuckDB is a date or a time on the calendar."""
    return kind == "DATE" or (kind.startswith("TIMESTAMP") and not kind.endswith("]"))


def is_text(kind: str) -> bool:
    """Whether values of a type of DuckDB are categories rather than amounts."""
    return kind in ("VARCHAR", "BOOLEAN", "UUID")


def is_nested(kind: str) -> bool:
    """Whether values of a type of DuckDB have values within."""
    return kind.endswith("]") or kind.startswith(("STRUCT(", "MAP("))


@dataclass(frozen=True, slots=True)
class Common:
    """A column of both states, by its name in each, and its types.

    With `more_members` it is a structure whose old values become new ones by what is missing.
    """

    name: str
    old_name: str
    old_type: str
    new_type: str
    more_members: bool = False

    def value(self, *, new: bool) -> str:
        """SQL text for its values in one state, of a type that both can have."""
        name = quote(self.name if new else self.old_name)
        if self.more_members:
            return name if new else f"CAST({name} AS {self.new_type})"
        return name if self._have_a_type() else f"CAST({name} AS VARCHAR)"

    def _have_a_type(self) -> bool:
        old, new = self.old_type, self.new_type
        zoned = ["TIME ZONE" in each for each in (old, new)]
        times = is_time(old) and is_time(new) and zoned[0] == zoned[1]
        return old == new or times or (is_number(old) and is_number(new))


def row_of(connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[Any, ...]:
    """The one row that a query gives."""
    (row,) = connection.execute(sql).fetchall()
    return tuple(row)


def types_of(connection: duckdb.DuckDBPyConnection, relation: str) -> dict[str, str]:
    """Types of the columns of a relation by name."""
    described = connection.execute(f"DESCRIBE {quote(relation)}").fetchall()
    return {name: kind for name, kind, *_ in described}


def common_columns(
    connection: duckdb.DuckDBPyConnection, old: str, new: str
) -> tuple[tuple[Common, ...], tuple[SchemaDifference, ...]]:
    """The columns of both relations, in the order of the new one, and how their schemas differ."""
    old_types, new_types = types_of(connection, old), types_of(connection, new)
    by_name = {name.lower(): name for name in old_types}
    renamed = dict(_renamed(connection, old, old_types, new, new_types))
    common, differences = [], []
    for name, kind in new_types.items():
        earlier = renamed.get(name) or by_name.get(name.lower())
        if earlier is None:
            differences.append(
                SchemaDifference(change=ColumnChange.ADDED, column=name, new_type=kind)
            )
            continue
        before = old_types[earlier]
        more = _has_more_members(connection, before, kind)
        common.append(Common(name, earlier, before, kind, more))
        if earlier != name:
            differences.append(
                SchemaDifference(change=ColumnChange.RENAMED, column=name, old_name=earlier)
            )
        if before != kind:
            differences.append(
                SchemaDifference(
                    change=ColumnChange.RETYPED, column=name, old_type=before, new_type=kind
                )
            )
    kept = {each.old_name for each in common}
    differences += [
        SchemaDifference(change=ColumnChange.REMOVED, column=name, old_type=kind)
        for name, kind in old_types.items()
        if name not in kept
    ]
    return tuple(common), tuple(differences)


def _has_more_members(connection: duckdb.DuckDBPyConnection, old: str, new: str) -> bool:
    """Whether a type of DuckDB is a structure with all members of another one, and more."""
    if old == new or not (old.startswith("STRUCT(") and new.startswith("STRUCT(")):
        return False
    members = [dict(connection.type(each).children) for each in (old, new)]
    return all(
        name in members[1]
        and (
            members[1][name] == kind
            or _has_more_members(connection, str(kind), str(members[1][name]))
        )
        for name, kind in members[0].items()
    )


def _renamed(
    connection: duckdb.DuckDBPyConnection,
    old: str,
    old_types: Mapping[str, str],
    new: str,
    new_types: Mapping[str, str],
) -> Iterator[tuple[str, str]]:
    """Columns that have the type and all the values of a removed one, and no other has them."""
    folded = [{name.lower() for name in types} for types in (old_types, new_types)]
    removed = {name: kind for name, kind in old_types.items() if name.lower() not in folded[1]}
    added = {name: kind for name, kind in new_types.items() if name.lower() not in folded[0]}
    if not removed or not added:
        return
    before, after = _values(connection, old, removed), _values(connection, new, added)
    for name, values in after.items():
        same = [each for each, found in before.items() if found == values]
        rivals = [each for each, found in after.items() if found == values]
        if len(same) == len(rivals) == 1 and values[-1]:
            yield name, same[0]


def _values(
    connection: duckdb.DuckDBPyConnection, relation: str, columns: Mapping[str, str]
) -> dict[str, tuple[object, ...]]:
    """What only columns with the same values in any order have in common; last: if they vary."""
    parts = ", ".join(
        f"count({quote(name)}), sum(hash({quote(name)})::HUGEINT), "
        f"min(hash({quote(name)})) < max(hash({quote(name)}))"
        for name in columns
    )
    row = row_of(connection, f"SELECT {parts} FROM {quote(relation)}")
    return {
        name: (kind, *row[3 * number : 3 * number + 3])
        for number, (name, kind) in enumerate(columns.items())
    }
