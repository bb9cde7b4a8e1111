"""Plans open every partition that holds a matching row, whatever the predicates and nulls are."""

from __future__ import annotations

import operator
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from odfbuild.records.kartothek.index import Index
from odfbuild.records.kartothek.planner import plan
from odfbuild.records.kartothek.predicates import OPERATORS, holds, normal

SCHEMA = pa.schema({"key": pa.int64(), "a": pa.int64(), "f": pa.float64(), "s": pa.string()})
_NUMBERS = st.integers(0, 3)
_VALUES = {
    "key": _NUMBERS,
    "a": _NUMBERS | st.none(),
    "f": st.sampled_from([0.0, 1.0, 2.5, float("nan"), None]),
    "s": st.sampled_from(["", "a", "b", None]),
}
_COMPARE = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_ROWS = st.fixed_dictionaries({name: _VALUES[name] for name in ("a", "f", "s")})


@st.composite
def _literals(draw: st.DrawFn) -> tuple[str, str, Any]:
    column = draw(st.sampled_from(SCHEMA.names))
    compared = draw(st.sampled_from(OPERATORS))
    if compared == "in":
        return column, compared, draw(st.lists(_VALUES[column], max_size=3))
    value = _VALUES[column]
    if compared not in ("==", "!="):
        value = value.filter(lambda each: not _missing(each))
    return column, compared, draw(value)


def _missing(value: Any) -> bool:
    return value is None or value != value


def _fulfils(row: dict[str, Any], column: str, compared: str, wanted: Any) -> bool:
    """As SQL has it; NaN is null, and `== None` asks for nulls."""
    value = row[column]
    if compared == "in":
        if _missing(value):
            return any(_missing(each) for each in wanted)
        return value in wanted
    if _missing(wanted):
        return _missing(value) == (compared == "==")
    return not _missing(value) and bool(getattr(operator, _COMPARE[compared])(value, wanted))


@given(
    st.lists(st.tuples(_NUMBERS, st.lists(_ROWS, max_size=3)), max_size=5),
    st.lists(st.lists(_literals(), min_size=1, max_size=3), min_size=1, max_size=3),
    st.sets(st.sampled_from(["a", "f", "s"])),
    st.sets(st.integers(0, 4)),
)
def test_a_plan_has_each_partition_with_a_matching_row_and_no_needless_one(
    parts: list[tuple[int, list[dict[str, Any]]]],
    predicates: list[list[tuple[str, str, Any]]],
    indexed: set[str],
    unlisted: set[int],
) -> None:
    asked = normal(predicates, SCHEMA)
    labels = [f"part{n}" for n in range(len(parts))]
    rows = [[{"key": key, **row} for row in each] for key, each in parts]
    matching = {
        label
        for label, each in zip(labels, rows, strict=True)
        for row in each
        if any(all(_fulfils(row, *literal) for literal in part) for part in predicates)
    }
    for label, each in zip(labels, rows, strict=True):
        found = holds(asked, pa.Table.from_pylist(each, SCHEMA)).to_pylist()
        assert any(found) == (label in matching)
    keys = {"key": pa.array([key for key, _ in parts], pa.int64())}
    names = {name: {n: rows[n] for n in range(len(parts))} for name in indexed}

    def index(column: str, left_out: set[int]) -> Index | None:
        if column not in names:
            return None
        kind = SCHEMA.field(column).type
        added = [
            (labels[n], pa.array([row[column] for row in each], kind).unique())
            for n, each in names[column].items()
            if n not in left_out
        ]
        return Index.empty(column, kind).updated((), added)

    planned = plan(asked, labels, keys, lambda each: index(each, set()), complete=True)
    assert matching <= set(planned)
    assert planned == sorted(planned)
    # an index that misses partitions is not trusted
    careful = plan(asked, labels, keys, lambda each: index(each, unlisted), complete=False)
    assert set(planned) <= set(careful)
    if len(predicates) == 1 and len(predicates[0]) == 1:
        ((column, _, wanted),) = predicates[0]
        some_null = (wanted is not None and wanted != wanted) or wanted is None
        if column in indexed and not some_null and not isinstance(wanted, list):
            assert set(planned) == matching
