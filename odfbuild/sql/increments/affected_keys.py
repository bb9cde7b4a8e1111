"""By which columns of its inputs a query falls into parts that do not depend on each other.

Where records of different keys never meet (in a group, in a pair of a join, in the partition of a
window function), the result is that over the records of each key, put together. So new records
change the parts of their own keys, and the rest of the history need not be read. Works on Spark's
optimised plan, in which subqueries, DISTINCT, EXCEPT and INTERSECT are joins and aggregations. A
node without a rule makes it "no": nothing is guessed. Source: Gupta, Mumick, "Maintenance of
Materialized Views".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from odfbuild.sql.increments.nodes import Node, Reader, ids_of
from odfbuild.sql.increments.parts import KeyColumn, Parts, Reading
from odfbuild.sql.increments.plan_inputs import (
    KEEPS_LEFT,
    KEEPS_RIGHT,
    ROW_WISE,
    PlanInputs,
    Undivided,
    Views,
    made_of,
    place_of,
    sides,
)

_EQUALS = frozenset({"EqualTo", "EqualNullSafe"})
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_PLAIN = frozenset(
    {*_INTEGERS, "string", "date", "timestamp", "boolean", "binary", "float", "double"}
)
"""Types of keys besides decimals, which equal each other where their hashes do."""

_DAY = 24 * 3_600_000_000
_UNITS = {
    "YEAR YYYY YY": 366 * _DAY,
    "QUARTER": 92 * _DAY,
    "MONTH MM MON": 31 * _DAY,
    "WEEK": 7 * _DAY,
    "DAY DD": _DAY,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1_000,
    "MICROSECOND": 1,
}
_LONGEST = {name: micros for names, micros in _UNITS.items() for name in names.split()}
"""Microseconds of the longest one of each unit that times are cut to."""

_WORDS = {"GlobalLimit": "LIMIT", "LocalLimit": "LIMIT", "Offset": "OFFSET", "Sample": "a sample"}

_GROUP = (
    "group by a column that all inputs with new records have, or join and group in two datasets"
)
_TOTALS = (
    "let it compute with totals alone (COUNT, SUM and AVG of integers or decimals, MIN, MAX), "
    "which are kept; or group by a column"
)
_PARTITION = "partition all window functions by one column: `PARTITION BY column`"
_JOIN = "join by a column that is equal on both sides: `ON a.key = b.key`"
_TOP = (
    "take the first ones of each key: `ROW_NUMBER() OVER (PARTITION BY column ORDER BY …)`, and "
    "keep those with small numbers"
)

Key = Mapping[int, KeyColumn]
"""The column that holds a key, by the reading of an input: the identity of its node."""


def parts_of(reader: Reader, plan: Node, views: Views, once: Sequence[Node] = ()) -> Parts:
    """The parts of an optimised plan; `Undivided` where it has none.

    Rows that have the same values of the expressions `once` are in the same part.
    """
    finder = _Finder(reader, views)
    spaces = []
    for keys in finder.spaces_of(plan, once):
        # What only some of the keys lead to is read in full.
        readings = [each for each in keys[0] if all(each in key for key in keys)]
        spaces.append(
            tuple(
                Reading(finder.readings[each], tuple(key[each] for key in keys))
                for each in readings
            )
        )
    return Parts(tuple(spaces), frozenset(finder.whole))


class _Finder(PlanInputs):
    """Walks down a plan; each part reads the inputs in `whole` in full."""

    def __init__(self, reader: Reader, views: Views) -> None:
        super().__init__(reader, views)
        self.readings: dict[int, str] = {}
        self._seen: list[Node] = []  # keeps identities of nodes from being used again

    def spaces_of(self, plan: Node, once: Sequence[Node]) -> list[list[Key]]:
        """The spaces of a plan, with equal values of each of the expressions in one part."""
        if not once:
            return self.spaces(plan)
        keys = [self._key(plan, each) for each in once]
        if not all(key and key == keys[0] for key in keys):
            raise Undivided(_no_column("DISTINCT"), plan, _GROUP)
        return [[key for key in keys[:1] if key]]

    def spaces(self, plan: Node) -> list[list[Key]]:
        """For each space of keys, those by which it falls into parts: any of them, or all at once.

        Each key has a column for all readings of its space.
        """
        self.refuse_subqueries(plan)
        alias = self.input_of(plan)
        if alias is not None:
            names = self._values(plan, alias)
            return [[{self._read(plan, alias): KeyColumn(name)} for name in names]]
        if self.is_static(plan):
            self.take_whole(plan)
            return []
        kind = plan.kind
        if kind in ROW_WISE:
            return self.spaces(plan.child)
        match kind:
            case "Union":
                return [each for child in plan.children for each in self.spaces(child)]
            case "Join":
                return self._spaces_of_join(plan)
            case "Aggregate":
                keys = [self._key(plan.child, each) for each in plan.grouping]
                words = "GROUP BY" if keys else ""
                whole, help = "an aggregation is over all records", _GROUP if keys else _TOTALS
            case "Window" | "WindowGroupLimit":
                keys = [self._key(plan.child, each) for each in plan.partitions]
                words = "PARTITION BY" if keys else ""
                whole, help = "a window function is over all records", _PARTITION
            case _:
                words = _WORDS.get(kind, kind)
                raise Undivided(f"{words} takes all records into account", plan, _TOP)
        return [_found(keys, _no_column(words) if words else whole, plan, help)]

    def _spaces_of_join(self, plan: Node) -> list[list[Key]]:
        keys = [
            _together(self._key(plan.left, left), self._key(plan.right, right))
            for left, right in self._pairs(plan)
        ]
        if not any(keys):
            for side, other, kinds in sides(plan):
                if plan.join_type in kinds and self.is_static(other):
                    self.take_whole(other)
                    return self.spaces(side)
        return [_found(keys, _no_column("a join"), plan, _JOIN)]

    def _key(self, plan: Node, key: Node) -> Key | None:
        """The columns by which `plan` falls into parts whose rows all have one value of `key`.

        What falls into parts by a time does so by what the time is cut to.
        """
        key, length = self._uncut(key)
        found = self._by_rule(plan, key)
        if found and length:
            found = {each: KeyColumn(c.name, c.length + length) for each, c in found.items()}
        if found is None and self.is_static(plan):
            self.take_whole(plan)
            return {}
        return found

    def _by_rule(self, plan: Node, key: Node) -> Key | None:
        self.refuse_subqueries(plan)
        if plan.kind == "Join":
            return self._key_of_join(plan, key)
        if key.kind != "AttributeReference":
            return None
        alias = self.input_of(plan)
        if alias is not None:
            names = {each.id: each.name for each in plan.output}
            name = names.get(key.id) if is_plain(key.full_type) else None
            if name is None or name not in self._values(plan, alias):
                return None
            return {self._read(plan, alias): KeyColumn(name)}
        match plan.kind:
            case "Project":
                made = made_of(plan.columns, key)
                return None if made is None else self._key(plan.child, made)
            case "Filter" | "Sort" | "Generate":
                below = key.id in ids_of(plan.child.output)
                return self._key(plan.child, key) if below else None
            case "Expand":
                at = place_of(plan, key)
                values = [row[at] for row in plan.projections]
                same = all(each.means(values[0]) for each in values)
                return self._key(plan.child, values[0]) if same else None
            case "Union":
                at = place_of(plan, key)
                return _together(*(self._key(each, each.output[at]) for each in plan.children))
            case "Aggregate":
                made = made_of(plan.columns, key)
                keys = [] if made is None else [e for e in plan.grouping if e.means(made)]
                return self._key(plan.child, keys[0]) if keys else None
            case "Window" | "WindowGroupLimit":
                keys = [each for each in plan.partitions if _bare(each).means(key)]
                return self._key(plan.child, keys[0]) if keys else None
        return None

    def _key_of_join(self, plan: Node, key: Node) -> Key | None:
        kind = plan.join_type
        same = _equal_to(plan, key)
        for left, right in self._pairs(plan):
            is_key = (
                (kind in KEEPS_LEFT and any(left.means(each) for each in same))
                or (kind in KEEPS_RIGHT and any(right.means(each) for each in same))
                or (kind == "FullOuter" and _is_either(key, left, right))
            )
            if is_key:
                found = _together(self._key(plan.left, left), self._key(plan.right, right))
                if found is not None:
                    return found
        for side, other, kinds in sides(plan):
            if kind in kinds and self.is_static(other) and _is_of(key, side):
                self.take_whole(other)
                return self._key(side, key)
        return None

    # --- What stands in a plan ---

    def _uncut(self, key: Node) -> tuple[Node, int]:
        """The time that a key is cut from, and how far apart times of one key are at most, in µs.

        Any other key as it is, and 0.
        """
        length = 0
        key = _bare(key)
        while True:
            match key.kind:
                case "TruncTimestamp":
                    unit, below = key.children[:2]
                case "TruncDate":
                    below, unit = key.children[:2]
                case "Cast" if (key.full_type, key.child.full_type) == ("date", "timestamp"):
                    length, key = length + _DAY, key.child
                    continue
                case "Cast" if (key.full_type, key.child.full_type) == ("timestamp", "date"):
                    key = key.child
                    continue
                case _:
                    return key, length
            cut = _LONGEST.get((self._reader.constant(unit) or "").upper())
            if cut is None:
                return key, length
            length, key = length + cut, below

    def _pairs(self, join: Node) -> Iterator[tuple[Node, Node]]:
        """What is equal of both sides in each pair that a join makes."""
        for each in _conditions(join.condition):
            if each.kind in _EQUALS:
                one, other = _bare(each.left), _bare(each.right)
                columns = self._uncut(one)[0], self._uncut(other)[0]
                for side in (columns, columns[::-1]):
                    if _is_of(side[0], join.left) and _is_of(side[1], join.right):
                        yield (one, other) if side is columns else (other, one)

    def _values(self, plan: Node, alias: str) -> list[str]:
        system = self._views.system[alias]
        return [each.name for each in plan.output if each.name not in system]

    def _read(self, plan: Node, alias: str) -> int:
        self._seen.append(plan)
        self.readings[id(plan)] = alias
        return id(plan)


def is_plain(kind: str) -> bool:
    """Whether values of a type equal each other where their hashes do."""
    return kind in _PLAIN or kind.startswith("decimal")


def _found(keys: Sequence[Key | None], why_not: str, plan: Node, help: str) -> list[Key]:
    found = [key for key in keys if key]
    if not found:
        raise Undivided(why_not, plan, help)
    return found


def _no_column(words: str) -> str:
    return f"no column of {words} is one of each input that has new records"


def _together(*keys: Key | None) -> Key | None:
    return None if None in keys else dict(chain.from_iterable(k.items() for k in keys if k))


def _bare(key: Node) -> Node:
    """A key without casts between integers, which change no value."""
    while key.kind == "Cast":
        kinds = key.full_type, key.child.full_type
        if not all(kind in _INTEGERS for kind in kinds):
            break
        if _INTEGERS.index(kinds[0]) < _INTEGERS.index(kinds[1]):
            break
        key = key.child
    return key


def _is_of(key: Node, plan: Node) -> bool:
    return key.kind == "AttributeReference" and key.id in ids_of(plan.output)


def _is_either(key: Node, left: Node, right: Node) -> bool:
    """Whether a key is that of the side of a full join that has one."""
    if key.kind != "Coalesce" or len(key.children) != 2:
        return False
    one, other = map(_bare, key.children)
    return (one.means(left) and other.means(right)) or (one.means(right) and other.means(left))


def _conditions(condition: Node | None) -> Iterator[Node]:
    if condition is not None and condition.kind == "And":
        yield from _conditions(condition.left)
        yield from _conditions(condition.right)
    elif condition is not None:
        yield condition


def _equal_to(plan: Node, key: Node) -> list[Node]:
    """A key, and columns that equal it in every row of what inner joins give."""
    found = [key]
    for join in _inner_joins(plan):
        for each in _conditions(join.condition):
            if each.kind in _EQUALS:
                one, other = _bare(each.left), _bare(each.right)
                if any(one.means(seen) for seen in found):
                    found.append(other)
                elif any(other.means(seen) for seen in found):
                    found.append(one)
    return found


def _inner_joins(plan: Node) -> Iterator[Node]:
    """Inner joins that stand next to each other, those at the top last."""
    if plan.kind in ("Project", "Filter"):
        yield from _inner_joins(plan.child)
    elif plan.kind == "Join" and plan.join_type in ("Inner", "Cross"):
        yield from _inner_joins(plan.left)
        yield from _inner_joins(plan.right)
        yield plan
