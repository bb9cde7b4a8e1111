"""Required parts of nested columns, whatever Arrow keeps below their nulls."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odfbuild.records.required import all_optional, as_required, missing_in

LEAVES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int32(): st.integers(-5, 5),
    pa.string(): st.sampled_from(["", "x", "long text"]),
    pa.bool_(): st.booleans(),
    pa.binary(2): st.just(b"ab"),
}
KINDS = st.recursive(
    st.sampled_from(list(LEAVES)),
    lambda inner: st.one_of(
        st.builds(lambda k, n: pa.list_(pa.field("item", k, n)), inner, st.booleans()),
        st.builds(lambda k, n: pa.large_list(pa.field("item", k, n)), inner, st.booleans()),
        st.builds(
            lambda one, other, n: pa.struct([pa.field("a", one, n), pa.field("b", other, False)]),
            inner,
            inner,
            st.booleans(),
        ),
        st.builds(lambda k, n: pa.map_(pa.string(), pa.field("value", k, n)), inner, st.booleans()),
    ),
    max_leaves=4,
)
FIELDS = st.builds(lambda kind, nullable: pa.field("c", kind, nullable), KINDS, st.booleans())


def _values(field: pa.Field) -> st.SearchStrategy[Any]:
    kind = field.type
    if pa.types.is_struct(kind):
        members = {member.name: _values(member) for member in kind}
        some: st.SearchStrategy[Any] = st.fixed_dictionaries(members)
    elif pa.types.is_map(kind):
        some = st.lists(st.tuples(st.just("k"), _values(kind.item_field)), max_size=2)
    elif pa.types.is_nested(kind):
        some = st.lists(_values(kind.value_field), max_size=2)
    else:
        some = LEAVES[kind]
    return st.none() | some if field.nullable else some


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_what_misses_nothing_is_kept_and_can_be_written(tmp_path: Path, data: Any) -> None:
    field = data.draw(FIELDS)
    rows = data.draw(st.lists(_values(field), max_size=6))
    # As an engine hands it over: all optional, in batches that begin anywhere.
    pq.write_table(pa.table({"c": pa.array(rows, all_optional(field.type))}), tmp_path / "in")
    given = pq.read_table(tmp_path / "in").column("c").combine_chunks()
    given = given.cast(all_optional(field.type))
    first = data.draw(st.integers(0, len(rows)))
    part = given[first:]
    assert missing_in(part, field, "c") is None
    made = as_required(part, field)
    assert made.type == field.type
    assert made.to_pylist() == part.to_pylist() == given.to_pylist()[first:]
    made.validate(full=True)
    pq.write_table(pa.table([made], schema=pa.schema([field])), tmp_path / "out")
    assert pq.read_table(tmp_path / "out").column("c").to_pylist() == made.to_pylist()


_ITEM = pa.field("item", pa.int32(), False)


@pytest.mark.parametrize(
    ("rows", "field", "found"),
    [
        ([1, None, None], pa.field("c", pa.int32(), False), ("c", 2)),
        ([[1], None, [2, None]], pa.field("c", pa.list_(_ITEM)), ("c[]", 1)),
        ([[1], None, [2]], pa.field("c", pa.list_(_ITEM)), None),
        ([{"a": None}, None], pa.field("c", pa.struct([_ITEM.with_name("a")])), ("c.a", 1)),
        ([None, {"a": 1}], pa.field("c", pa.struct([_ITEM.with_name("a")])), None),
        (
            [[("k", [None])], None],
            pa.field("c", pa.map_(pa.string(), pa.list_(_ITEM))),
            ("c[][]", 1),
        ),
        (
            [None, {"a": [[1], None]}],
            pa.field("c", pa.struct([("a", pa.list_(pa.field("item", pa.list_(_ITEM), False)))])),
            ("c.a[]", 1),
        ),
        ([[1, 2], None], pa.field("c", pa.list_(_ITEM, 2)), None),
        ([[1, None], None], pa.field("c", pa.list_(_ITEM, 2)), ("c[]", 1)),
    ],
)
def test_what_is_missing_is_named_and_counted(
    rows: list[Any], field: pa.Field, found: tuple[str, int] | None
) -> None:
    values = pa.array(rows, all_optional(field.type))
    assert missing_in(values, field, "c") == found
    if found is None:
        assert as_required(values, field).to_pylist() == rows
