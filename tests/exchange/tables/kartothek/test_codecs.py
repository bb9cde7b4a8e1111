"""Names, metadata, indices and schemas of kartothek: what is written is read as it was."""

from __future__ import annotations

import datetime as dt
import io
import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfbuild.errors import TableError
from odfbuild.records.kartothek import index as indices
from odfbuild.records.kartothek import metadata as metadata_form
from odfbuild.records.kartothek import names, schema
from odfbuild.records.kartothek.index import Index
from odfbuild.records.kartothek.metadata import Metadata

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_TIMES = st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1))
_VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.string(): _TEXT,
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float64(): st.floats(allow_nan=False),
    pa.date32(): st.dates(),
    pa.timestamp("us"): _TIMES,
}
_WHOLE = '{"dataset_metadata_version": 4, "dataset_uuid": "u", %s}'
_INDEXABLE = _VALUES | {pa.bool_(): st.booleans(), pa.binary(): st.binary(max_size=8)}


@given(st.data())
def test_a_label_gives_back_the_values_of_its_keys(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from([*_VALUES]), min_size=1, max_size=3))
    keys = [(data.draw(_TEXT.filter(bool)) + str(n), kind) for n, kind in enumerate(kinds)]
    values = [(column, data.draw(_VALUES[kind])) for column, kind in keys]
    file = names.data_file("lake", "table", names.label(values, "base"))
    assert names.checked_file(file) == file
    found = [
        (column, names.key_value(text, dict(keys)[column]))
        for column, text in names.key_texts(file)
    ]
    assert found == values


@pytest.mark.parametrize(
    ("file", "kind", "value"),
    [
        ("u/t/p=a/b%20c/x.parquet", pa.string(), "a/b c"),
        ("u/t/p=False/x.parquet", pa.bool_(), False),
        ("u/t/p=b%27a%5Cx00%27/x.parquet", pa.binary(), b"a\x00"),
        ("u/t/p=2020-01-02%2003%3A00/x.parquet", pa.timestamp("us"), dt.datetime(2020, 1, 2, 3)),
        ("u/t/p=2020-01-02T03%3A00/x.parquet", pa.timestamp("us"), dt.datetime(2020, 1, 2, 3)),
        ("u/t/p=2020-01-02%2000%3A00%3A00/x.parquet", pa.date32(), dt.date(2020, 1, 2)),
        ("u/t/p=1e%2B300/x.parquet", pa.float64(), 1e300),
    ],
)  # fmt: skip
def test_keys_that_kartothek_writes_are_read_also_where_it_misreads_them_itself(
    file: str, kind: pa.DataType, value: Any
) -> None:
    ((_, text),) = names.key_texts(file)
    assert names.key_value(text, kind) == value


def test_a_slash_in_a_key_is_written_so_that_kartothek_reads_it() -> None:
    assert names.label([("p", "a/b")], "x") == "p=a%2Fb/x"


@given(
    st.dictionaries(_TEXT, st.just({"table": "u/table/x.parquet"})),
    st.lists(_TEXT, unique=True),
    st.dictionaries(_TEXT, st.just("u/indices/c/x.by-dataset-index.parquet")),
    st.dictionaries(_TEXT, st.recursive(st.none() | st.integers(-9, 9) | _TEXT, st.lists)),
    st.sampled_from(names.FORMS),
)  # fmt: skip
def test_metadata_is_read_as_it_was_written_in_both_forms(
    partitions: Any, keys: list[str], index: Any, user: Any, form: str
) -> None:
    metadata = Metadata("u", partitions, tuple(keys), index, user)
    found = metadata_form.decode(metadata_form.encode(metadata, form), form, "here")
    assert found == metadata
    assert found.state() == metadata.state()


@given(st.data())
def test_an_index_is_read_as_it_was_written_and_updated(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([*_INDEXABLE]))
    value = _INDEXABLE[kind] | st.none()
    lists = st.lists(value, max_size=6, unique_by=lambda each: (type(each), each))
    held = data.draw(st.dictionaries(st.sampled_from("abcdef"), lists))
    index = Index.empty("c", kind).updated(
        (), [(label, pa.array(values, kind)) for label, values in held.items()]
    )
    removed = set(data.draw(st.lists(st.sampled_from("abcdef"))))
    more = [("new", pa.array(data.draw(lists), kind))]
    after = indices.decode(indices.encode(index.updated(removed, more)), "c", kind, "a file")
    expected = {
        (each, label)
        for label, values in [*held.items(), ("new", more[0][1].to_pylist())]
        for each in values
        if each is not None and label not in removed
    }
    assert set(zip(after.values.to_pylist(), after.labels.to_pylist(), strict=True)) == expected
    assert after.values.type == kind


def test_an_index_has_no_nan_and_lists_each_value_once() -> None:
    index = Index.empty("c", pa.float64()).updated(
        (), [("a", pa.array([1.0, float("nan"), None])), ("b", pa.array([1.0]))]
    )
    table = pq.read_table(io.BytesIO(indices.encode(index)))
    assert table.to_pylist() == [{"c": 1.0, "partition": ["a", "b"]}]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("[]", "not a map"),
        ("{", "Expecting"),
        ('{"dataset_metadata_version": "4", "dataset_uuid": "u"}', "not a number"),
        ('{"dataset_metadata_version": 4}', "dataset_uuid"),
        (_WHOLE % '"partitions": [1]', "partitions"),
        (_WHOLE % '"partitions": {"a": {}}', "partitions"),
        (_WHOLE % '"indices": []', "indices"),
        (_WHOLE % '"indices": {"c": 1}', "neither"),
        (_WHOLE % '"partition_keys": "p"', "names"),
    ],
)  # fmt: skip
def test_metadata_that_is_none_is_refused_with_a_reason(content: str, why: str) -> None:
    with pytest.raises(TableError) as caught:
        metadata_form.decode(content.encode(), "json", "u.by-dataset-metadata.json")
    assert caught.value.code == "E1332"
    assert why in str(caught.value)


@pytest.mark.parametrize(
    "file", ["../x.parquet", "/etc/x.parquet", "u/../../x.parquet", "u//x", "ü"]
)
def test_metadata_cannot_lead_out_of_its_place(file: str) -> None:
    content = {
        "dataset_metadata_version": 4,
        "dataset_uuid": "u",
        "partitions": {"a": {"files": {"table": file}}},
    }
    with pytest.raises(TableError, match="no kartothek dataset can have"):
        metadata_form.decode(json.dumps(content).encode(), "json", "here")


@given(st.lists(st.text("a./\n:é\ud800 ", max_size=4), max_size=4))
def test_many_names_are_checked_as_each_of_them_is(files: list[str]) -> None:
    def refused(check: Callable[[Any], object], names: str | list[str]) -> str | None:
        try:
            check(names)
        except TableError as error:
            return error.message
        return None

    each = [refused(names.checked_file, file) for file in files]
    assert refused(names.check_files, files) == next(filter(None, each), None)


def test_a_schema_is_sorted_and_has_wide_types_without_zones() -> None:
    wanted = pa.schema(
        {"b": pa.int8(), "Z": pa.float32(), "k": pa.string(), "at": pa.timestamp("ms", "UTC")}
    )
    common = schema.common(schema.stored(wanted, ()), ["k"])
    assert common == pa.schema(
        {"k": pa.string(), "Z": pa.float64(), "at": pa.timestamp("us"), "b": pa.int64()}
    )
    assert schema.decode(schema.encode(common), "here") == common
