"""What `odfbuild new` writes can be read, whatever the data and its columns are called."""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from odfbuild.api.authoring.scaffold import (
    Derived,
    Input,
    Root,
    alias_of,
    derived_text,
    root_text,
)
from odfbuild.ingest.sample import Form, look_at
from odfbuild.odf.model import SetPollingSource, SetTransform
from odfbuild.odf.schema.ddl import parse_ddl
from odfbuild.project.definitions import definitions_in
from odfbuild.project.source import Source
from odfbuild.project.template import render_template
from odfbuild.sql.columns.of_query import result_of
from tests.odf.values import NAMES

_SCHEMA = "# yaml-language-server: $schema=x\n"
COLUMNS = st.lists(
    # One column, and a sign that may separate two: who knows?
    st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters=";|"), min_size=1)
    | st.sampled_from(
        ["id", "event_time", "a b", "no", "2026", "x`y", "a:b", "#c", "'q'", "FALSE"]
    ),
    min_size=1,
    max_size=5,
    unique_by=str.lower,
)
CELLS = st.sampled_from(["", "NA", "1", "2.5", "007", "x", "2026-01-31", "true", "it's"])


def definitions(text: str) -> list[Any]:
    """Snapshots in a file with that text."""
    return [each.snapshot for each in definitions_in(Source("x.yaml", text))]


@given(
    NAMES,
    COLUMNS,
    st.data(),
    st.sampled_from(["append", "ledger", "snapshot"]),
    st.sampled_from(["files", "url"]),
)
def test_a_root_declares_the_columns_of_its_file(
    name: str, columns: list[str], data: st.DataObject, merge: str, kind: str
) -> None:
    rows = data.draw(st.lists(st.lists(CELLS, min_size=len(columns), max_size=len(columns))))
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, *rows])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.csv"
        file.write_text(text.getvalue(), encoding="utf-8")
        sample = look_at([file], Form("Csv"))
    root = Root(
        kind=kind,
        name=name,
        source="file:data/x.csv" if kind == "url" else "data/*.csv",
        read="Csv",
        merge=merge,
        sample=sample,
        sampled="x.csv",
        key=(sample.guess.columns[0].name,),
        description="It's: # not easy",
    )
    (snapshot,) = definitions(root_text(root, _SCHEMA))
    source = snapshot.metadata[0]
    assert isinstance(source, SetPollingSource)
    assert source.read.ddl_schema is not None
    declared = parse_ddl(source.read.ddl_schema).names
    assert declared == [column.name for column in sample.guess.columns]
    if sample.header:
        assert declared == [column.strip() for column in columns]
    assert str(snapshot.name) == name


@given(
    NAMES,
    st.lists(
        st.tuples(NAMES, COLUMNS | st.none()),
        min_size=1,
        max_size=3,
        unique_by=lambda pair: pair[0].lower(),
    ),
)
def test_a_derivative_selects_what_its_inputs_share(
    name: str, inputs: list[tuple[str, list[str] | None]]
) -> None:
    named: list[Input] = []
    for each, columns in inputs:
        known = None if columns is None else tuple(columns)
        named.append(Input(each, alias_of(each, [i.alias for i in named]), "event_time", known))
    (snapshot,) = definitions(derived_text(Derived(name=name, inputs=tuple(named)), _SCHEMA))
    event = snapshot.metadata[0]
    assert isinstance(event, SetTransform)
    assert [str(each.dataset_ref) for each in event.inputs] == [each for each, _ in inputs]
    result = result_of(event.transform, {each.alias: None for each in named})
    assert result is not None
    shared = set.intersection(*(set(each.columns or ()) for each in named)) | {"event_time"}
    assert {column.name for column in result.columns} == shared


@given(NAMES, st.lists(st.sampled_from(["NO", "PT", "1", "2.5", "on"]), min_size=1, unique=True))
def test_a_matrix_makes_a_dataset_for_each_value(name: str, values: list[str]) -> None:
    source = Input("root", "root", "event_time", ("event_time", "country"))
    derived = Derived(name=name, inputs=(source,), over="country", values=tuple(values))
    text = derived_text(derived, _SCHEMA)
    made = [definitions(each.text)[0] for each in render_template(text, "x", Path("/"), {})]
    assert [str(each.name) for each in made] == [f"{name}.{value.lower()}" for value in values]
    for each, value in zip(made, values, strict=True):
        assert f"WHERE country = '{value}'" in each.metadata[0].transform.queries[0].query
