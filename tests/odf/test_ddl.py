import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfbuild.odf.schema.ddl import DdlError, ddl_of, ddl_of_both, parse_ddl
from odfbuild.odf.schema.pyarrow_form import from_pyarrow
from tests.odf.ddl_text import to_ddl


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("TINYINT", pa.int8()),
        ("SMALLINT", pa.int16()),
        ("INT2", pa.int16()),
        ("integer", pa.int32()),
        ("BIGINT UNSIGNED", pa.uint64()),
        ("REAL", pa.float32()),
        ("DOUBLE PRECISION", pa.float64()),
        ("DECIMAL", pa.decimal128(38, 10)),
        ("DECIMAL(7)", pa.decimal128(7, 0)),
        ("DECIMAL(50, 3)", pa.decimal256(50, 3)),
        ("DATE", pa.date32()),
        ("TIME", pa.time64("ns")),
        ("TIMESTAMP", pa.timestamp("ms", "UTC")),
        ("TIMESTAMP(6)", pa.timestamp("us", "UTC")),
        ("VARCHAR(20)", pa.string()),
        ("CHAR", pa.string()),
        ("BYTEA", pa.binary()),
        ("INT[]", pa.list_(pa.int32())),
        ("ARRAY<ARRAY<STRING>>", pa.list_(pa.list_(pa.string()))),
        ("STRUCT<a: INT, b STRING>", pa.struct([("a", pa.int32()), ("b", pa.string())])),
        ("MAP<STRING, DOUBLE>", pa.map_(pa.string(), pa.float64())),
    ],
)
def test_every_type_is_read_in_any_letter_case(text: str, kind: pa.DataType) -> None:
    assert parse_ddl([f"x {text}"]).field("x") == pa.field("x", kind)
    assert parse_ddl([f"x {text.lower()} not null"]).field("x") == pa.field("x", kind, False)


def test_quoted_names_are_kept_as_written() -> None:
    schema = parse_ddl(['"Full Name" STRING', "`a``b` INT", "Straße DATE, z INT"])
    assert schema.names == ["Full Name", "a`b", "Straße", "z"]


@pytest.mark.parametrize(
    ("columns", "index", "offset", "suggestion"),
    [
        (["a INT", "b BIGNIT"], 1, 2, "BIGINT"),
        (["a INT NOT NUL"], 0, 10, None),
        (["a"], 0, 1, None),
        (["a ARRAY<INT"], 0, 11, None),
        (["a INT", "a INT"], 1, 0, None),
        (["a INT PRIMARY KEY"], 0, 6, None),
        (["a DECIMAL(2, 5)"], 0, 2, None),
        (["a INT ; DROP"], 0, 6, None),
        ([""], 0, 0, None),
        (["a TIMESTAMP(4)"], 0, 2, None),
        (["a DECIMAL(" + 5_000 * "9" + ")"], 0, 10, None),
        (["a " + 5_000 * "ARRAY<"], 0, 2 + 20 * 6, None),
        (["a " + 5_000 * "STRUCT<b "], 0, 2 + 20 * 9, None),
        (["a INT" + 5_000 * "[]"], 0, 2, None),
    ],
)
def test_a_wrong_column_is_pointed_at(
    columns: list[str], index: int, offset: int, suggestion: str | None
) -> None:
    with pytest.raises(DdlError) as caught:
        parse_ddl(columns)
    error = caught.value
    assert (error.index, error.offset, error.suggestion) == (index, offset, suggestion)


KINDS = st.recursive(
    st.sampled_from(
        [
            pa.int8(),
            pa.uint32(),
            pa.float64(),
            pa.string(),
            pa.binary(),
            pa.bool_(),
            pa.decimal128(9, 2),
            pa.timestamp("us", "UTC"),
            pa.time32("s"),
        ]
    ),
    lambda inner: st.one_of(
        st.builds(lambda k, n: pa.list_(pa.field("item", k, n)), inner, st.booleans()),
        st.builds(lambda k: pa.struct([pa.field("a b", k), pa.field("c", k, False)]), inner),
        st.builds(lambda k: pa.map_(pa.string(), k), inner),
    ),
    max_leaves=4,
)


@given(st.lists(st.tuples(st.text(min_size=1, max_size=5), KINDS, st.booleans()), max_size=4))
def test_what_is_written_is_read_back(columns: list[tuple[str, pa.DataType, bool]]) -> None:
    unique = {name: pa.field(name, kind, nullable) for name, kind, nullable in columns}
    schema = pa.schema(list(unique.values()))
    assert parse_ddl(to_ddl(schema)) == schema


@given(KINDS | st.sampled_from([pa.uuid(), pa.decimal256(50, 3), pa.date32(), pa.float32()]))
def test_a_type_is_written_as_a_definition_declares_it(kind: pa.DataType) -> None:
    field = from_pyarrow(pa.schema([pa.field("x", kind)])).field("x")
    assert parse_ddl([f"x {ddl_of(field.type)}"]).field("x").type == kind


def test_types_that_definitions_cannot_tell_apart_keep_the_names_of_arrow() -> None:
    kinds = [pa.timestamp("ms"), pa.timestamp("ms", "UTC"), pa.int32(), pa.large_string()]
    schema = from_pyarrow(pa.schema([pa.field(str(at), each) for at, each in enumerate(kinds)]))
    naive, zoned, whole, text = (each.type for each in schema)
    assert ddl_of_both(naive, zoned) == ("timestamp[ms]", "TIMESTAMP")
    assert ddl_of_both(whole, text) == ("INT", "STRING")
    assert ddl_of_both(text, text) == ("large_string", "large_string")


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused_with_a_place(text: str) -> None:
    try:
        parse_ddl([text])
    except DdlError as error:
        assert error.index == 0
        assert 0 <= error.offset <= len(text)
