from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odfbuild.odf.flatbuffers.form import decode_message, encode_message
from odfbuild.odf.model import (
    DataField,
    DataSchema,
    DataTypeDate,
    DataTypeInt32,
    DataTypeList,
    DataTypeMap,
    DataTypeNull,
    DataTypeOption,
    DataTypeString,
    DataTypeStruct,
    SetDataSchema,
)
from odfbuild.odf.schema import arrow
from odfbuild.odf.schema.arrow_form import arrow_form
from odfbuild.odf.schema.arrow_raw import read_raw
from odfbuild.odf.schema.arrow_schema import (
    InvalidAttributeError,
    UnsupportedSchemaError,
    from_odf,
    from_raw,
    schema_of,
    to_odf,
    to_raw,
)
from odfbuild.odf.schema.compare import Difference, diff, incompatibilities, strip_encoding
from odfbuild.odf.schema.evolution import required_as
from odfbuild.odf.schema.pyarrow_form import from_pyarrow, to_pyarrow
from tests.odf.values import objects

LEAVES = [
    pa.bool_(),
    pa.int8(),
    pa.uint64(),
    pa.float16(),
    pa.float64(),
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.binary(7),
    pa.binary_view(),
    pa.date32(),
    pa.date64(),
    pa.decimal64(10, 2),
    pa.decimal128(10, 2),
    pa.decimal256(50, -3),
    pa.time32("s"),
    pa.time32("ms"),
    pa.time64("ns"),
    pa.timestamp("s", "UTC"),
    pa.timestamp("ns", "Europe/Berlin"),
    pa.duration("us"),
]
KINDS = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        st.builds(lambda k, n: pa.list_(pa.field("item", k, n)), inner, st.booleans()),
        st.builds(pa.large_list, inner),
        st.builds(lambda k: pa.list_(k, 3), inner),
        st.builds(lambda k: pa.struct([pa.field("a", k), pa.field("b", k, False)]), inner),
        st.builds(lambda k: pa.map_(pa.string(), k), inner),
    ),
    max_leaves=4,
)
FIELDS = st.builds(
    lambda name, kind, nullable, note: pa.field(name, kind, nullable, metadata=note),
    st.text(max_size=5),
    KINDS,
    st.booleans(),
    st.none() | st.just({"k": "v", "a.b": "ü"}),
)


@given(st.lists(FIELDS, max_size=4))
def test_the_raw_form_keeps_everything(fields: list[pa.Field]) -> None:
    schema = pa.schema(fields)
    assert from_raw(to_raw(schema)).equals(schema, check_metadata=True)


@given(st.lists(FIELDS, max_size=4))
def test_schemas_are_the_same_without_pyarrow(fields: list[pa.Field]) -> None:
    schema = pa.schema(fields)
    plain = from_pyarrow(schema)
    assert to_pyarrow(plain).equals(schema, check_metadata=True)
    assert [(each.name, str(each.type)) for each in plain] == [
        (each.name, str(each.type)) for each in schema
    ]
    assert read_raw(schema_table(schema)) == plain


def schema_table(schema: pa.Schema) -> bytes:
    """The bare table that Arrow itself writes, behind a frame and within a message."""
    message = schema.serialize().to_pybytes()[8:]
    at = int.from_bytes(message[:4], "little")
    layout = at - int.from_bytes(message[at : at + 4], "little", signed=True)
    header = at + int.from_bytes(message[layout + 8 : layout + 10], "little")
    table = header + int.from_bytes(message[header : header + 4], "little")
    # Offsets are relative, so four more bytes in front move nothing but the root.
    return (table + 4).to_bytes(4, "little") + message


@given(st.lists(st.sampled_from(LEAVES), max_size=6), st.booleans())
def test_the_odf_form_keeps_types_through_encoding_attributes(
    kinds: list[pa.DataType], nullable: bool
) -> None:
    schema = pa.schema([pa.field(f"c{i}", kind, nullable) for i, kind in enumerate(kinds)])
    assert from_odf(to_odf(schema)) == schema


def test_stripping_leaves_the_plain_layout() -> None:
    schema = pa.schema([pa.field("x", pa.large_string())])
    assert from_odf(strip_encoding(to_odf(schema))) == pa.schema([pa.field("x", pa.string())])


def test_an_event_gives_its_schema_in_either_form() -> None:
    schema = pa.schema([pa.field("x", pa.int64(), False)])
    assert schema_of(SetDataSchema(raw_arrow_schema=to_raw(schema))) == schema
    assert schema_of(SetDataSchema(schema=to_odf(schema))) == schema


@given(st.binary(max_size=200))
def test_bytes_that_are_no_schema_are_refused(data: bytes) -> None:
    try:
        from_raw(data)
    except ValueError:
        return


def test_a_column_that_odf_cannot_hold_is_named() -> None:
    with pytest.raises(UnsupportedSchemaError, match="column 'd'") as caught:
        to_odf(pa.schema([("d", pa.dictionary(pa.int8(), pa.string()))]))
    assert caught.value.code == "E0531"


def differences(committed: pa.Schema, new: pa.Schema) -> list[str]:
    return incompatibilities(from_pyarrow(committed), from_pyarrow(new))


OLD = pa.schema([pa.field("a", pa.int64(), False), pa.field("b", pa.string())])


@pytest.mark.parametrize(
    "kind",
    [
        DataTypeInt32(),
        DataTypeOption(inner=DataTypeInt32()),
        DataTypeDate(),
        DataTypeStruct(fields=()),
        DataTypeMap(key_type=DataTypeString(), value_type=DataTypeString()),
    ],
)
def test_a_layout_of_buffers_on_a_type_that_has_none_is_refused(kind: Any) -> None:
    extra = {"arrow.apache.org/bufferEncoding": {"kind": "Contiguous", "offsetBitWidth": 32}}
    schema = DataSchema(fields=(DataField(name="x", type=kind, extra=extra),))
    with pytest.raises(UnsupportedSchemaError, match=r"column 'x': .* has no 'arrow"):
        arrow_form(schema)
    inside = DataTypeStruct(fields=schema.fields)
    with pytest.raises(UnsupportedSchemaError, match="column 's': column 'x'"):
        arrow_form(DataSchema(fields=(DataField(name="s", type=inside),)))


def test_columns_without_attributes_take_over_those_of_the_dataset() -> None:
    described = pa.schema([field.with_metadata({"x": "1"}) for field in OLD])
    other = pa.schema([field.with_metadata({"x": "2"}) for field in OLD])
    assert differences(described, OLD) == []
    assert len(differences(described, other)) == len(OLD)
    assert len(differences(OLD, other)) == len(OLD)


@pytest.mark.parametrize(
    ("new", "words"),
    [
        ([pa.field("a", pa.int64(), False), pa.field("b", pa.large_string(), False)], None),
        ([pa.field("a", pa.int64()), pa.field("b", pa.string())], "'a' may hold nulls"),
        ([pa.field("a", pa.int32(), False), pa.field("b", pa.string())], "'a' is INT now"),
        ([pa.field("a", pa.int64(), False)], "'b' is missing"),
        ([*OLD, pa.field("c", pa.int8())], "'c' is new"),
        ([OLD.field("b"), OLD.field("a")], "another order"),
    ],
)
def test_a_slice_must_have_the_committed_columns(new: list[pa.Field], words: str | None) -> None:
    problems = differences(OLD, pa.schema(new))
    if words is None:
        assert problems == []
    else:
        assert len(problems) == 1
        assert words in problems[0]


def test_a_column_of_nulls_is_nullable_in_arrow() -> None:
    schema = DataSchema(fields=(DataField(name="x", type=DataTypeNull()),))
    assert from_odf(schema) == pa.schema([("x", pa.null())])


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(objects(DataSchema))
def test_any_schema_of_a_chain_has_an_arrow_form_or_says_why_not(schema: DataSchema) -> None:
    with suppress(UnsupportedSchemaError, InvalidAttributeError):
        assert len(schema_of(SetDataSchema(schema=schema))) == len(schema.fields)


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        (b'{"a": [1]}', {"a": [1]}),
        (b'{"a": ', '{"a": '),
        (b"[NaN]", "[NaN]"),
        (b"[1e999]", "[1e999]"),
        (100_000 * b"[", 100_000 * "["),
        (b"\xff\xfe", None),
    ],
)
def test_metadata_of_files_become_attributes_as_far_as_they_can(written: bytes, kept: Any) -> None:
    field = pa.field("a", pa.int64(), metadata={b"key": written})
    schema = to_odf(pa.schema([field]))
    (column,) = schema.fields
    assert column.extra == (None if kept is None else {"key": kept})
    assert decode_message(DataSchema, encode_message(schema)) == schema


@pytest.mark.parametrize(
    ("new", "committed", "result"),
    [(True, True, True), (True, False, False), (False, True, False), (False, False, False)],
)
def test_a_column_is_required_where_either_side_requires_it(
    new: bool, committed: bool, result: bool
) -> None:
    def schema(nullable: bool) -> arrow.Schema:
        inner = pa.struct([pa.field("b", pa.int32(), nullable)])
        return from_pyarrow(pa.schema([pa.field("a", inner, nullable)]))

    assert required_as(schema(new), schema(committed)) == schema(result)


def test_lists_of_other_lengths_are_other_types() -> None:
    def schema(length: int | None) -> DataSchema:
        items = DataTypeList(item_type=DataTypeNull(), fixed_length=length)
        return DataSchema(fields=(DataField(name="xs", type=items),))

    changed = Difference(
        item="FieldTypeChanged", field="xs", inner=(Difference(item="TypeChanged"),)
    )
    assert diff(schema(2), schema(2)) == ()
    assert diff(schema(2), schema(3)) == (changed,)
    assert diff(schema(2), schema(None)) == (changed,)
