"""Columns that get wider in place: the records are those of a project that had them from the start.

A structure gains members; a number keeps its column and gains one of a wider type beside it, which
is all that the specification allows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from odfbuild import Project
from odfbuild.odf.model import AddData, SetDataSchema
from odfbuild.odf.schema.arrow_schema import schema_of, to_raw
from odfbuild.odf.timestamp import Timestamp
from tests.apply.tiny import NO_JVM, Tiny

pytestmark = pytest.mark.spark

Near = Callable[[Path], Tiny]

MERGES = {
    "append": "{kind: Append}",
    "ledger": "{kind: Ledger, primaryKey: [id]}",
    "snapshot": "{kind: Snapshot, primaryKey: [id]}",
    "upsert": "{kind: UpsertStream, primaryKey: [id]}",
}
_ROOT = """\
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {{kind: FilesGlob, path: data/*.json, order: ByName}}
      read:
        kind: NdJson
        schema: [event_time TIMESTAMP, id BIGINT, '{column}']
{preprocess}      merge: {merge}
"""
_PREPROCESS = """\
      preprocess:
        kind: Sql
        engine: spark
        query: "{query}"
"""
ADDED = "SetDataSchema adds columns, NULL in existing records: "


def root(tiny: Tiny, kind: str, column: str, query: str | None = None) -> None:
    """Define a root named after its merge strategy."""
    preprocess = _PREPROCESS.format(query=query) if query else ""
    text = _ROOT.format(name=kind, column=column, merge=MERGES[kind], preprocess=preprocess)
    (tiny.root / "datasets" / f"{kind}.yaml").write_text(text)


def readers(tiny: Tiny, kind: str, queries: dict[str, str]) -> list[str]:
    """Define those derivatives, `append.rows` and the like, that read the root `kind`."""
    names = [name for name in queries if name.startswith(kind)]
    for name in names:
        tiny.derive(name, queries[name], kind)
    return names


def fresh(near: Near, root: Path) -> Tiny:
    """A project without datasets and files."""
    tiny = near(root)
    for folder in ("datasets", "data"):
        for each in (tiny.root / folder).iterdir():
            each.unlink()
    return tiny


def arrive(tiny: Tiny, number: int, *rows: str) -> str:
    """Apply with one file more, of objects without braces; what was planned."""
    day = iter(range(number * 3, 32))
    lines = [f'{{"event_time": "2024-01-{next(day):02}T00:00:00Z", {row}}}\n' for row in rows]
    (tiny.root / "data" / f"{number}.json").write_text("".join(lines))
    planned = tiny.run("plan", env=NO_JVM).stdout
    tiny.apply()
    return planned


def histories(tiny: Tiny, names: Iterable[str]) -> dict[str, Any]:
    """All records of datasets as Python gives them, but for the time of their blocks."""
    with Project(tiny.root) as project:
        found = {name: project[name].history.to_arrow() for name in names}
    return {n: each.drop_columns(["system_time"]).to_pylist() for n, each in found.items()}


def answers(tiny: Tiny, queries: Iterable[str]) -> list[Any]:
    """What both engines answer, without order."""
    found = []
    for query in queries:
        for engine, mark in (("duckdb", '"'), ("spark", "`")):
            asked = query.replace('"', mark)
            said = tiny.run("sql", "--engine", engine, "--json", asked)
            assert said.returncode == 0, said.stdout + said.stderr
            found.append(sorted(json.loads(said.stdout), key=repr))
    return found


def proven(tiny: Tiny) -> None:
    """Every dataset follows from its inputs, and nothing is left to do."""
    verified = tiny.run("verify")
    assert verified.returncode == 0, verified.stdout
    assert tiny.run("plan", env=NO_JVM).stdout.startswith("No changes")


# --- Structures ---

_ONE = "place STRUCT<a: INT>"
_MORE = "place STRUCT<b: STRING, a: INT, spot: STRUCT<x: INT>>"
_EVEN_MORE = "place STRUCT<b: STRING, a: INT, spot: STRUCT<x: INT, y: STRING>>"
_PLACES = [
    ['"id": 1, "place": {"a": 1}', '"id": 2, "place": null', '"id": 3, "place": {"a": null}'],
    [
        '"id": 2, "place": {"b": "x", "a": 2, "spot": {"x": 5}}',
        '"id": 3, "place": {"b": "z"}',
        '"id": 4, "place": null',
    ],
    ['"id": 1, "place": {"a": 1, "b": "w", "spot": {"y": "v"}}', '"id": 3, "place": {"b": "z"}'],
]
_OF_PLACES = {
    "append.rows": "SELECT event_time, id, place FROM source",
    "append.ids": "SELECT event_time, id, place.a AS a FROM source",
    "snapshot.kinds": "SELECT max(event_time) AS event_time, place, count(*) AS n FROM source "
    "GROUP BY place",
    "append.days": "SELECT window.start AS event_time, count(*) AS n, max(place.a) AS a "
    "FROM source GROUP BY window(event_time, '1 day')",
}


@pytest.mark.parametrize("kind", MERGES)
def test_structures_gain_members_in_place(kind: str, near: Near, tmp_path: Path) -> None:
    midway, wide = fresh(near, tmp_path / "midway"), fresh(near, tmp_path / "wide")
    for tiny, columns in ((midway, [_ONE, _MORE, _EVEN_MORE]), (wide, [_EVEN_MORE] * 3)):
        names = [kind, *readers(tiny, kind, _OF_PLACES)]
        for number, (column, rows) in enumerate(zip(columns, _PLACES, strict=True)):
            root(tiny, kind, column)
            planned = arrive(tiny, number + 1, *rows)
            if number and tiny is midway:
                members = "place.b, place.spot" if number == 1 else "place.spot.y"
                # The root, and the readers whose result has the column.
                having = [name for name in names if name in (kind, "append.rows", "snapshot.kinds")]
                assert planned.count(f"{ADDED}{members}\n") == len(having), planned
                assert " 0 to reset" in planned
    proven(midway)
    assert histories(midway, names) == histories(wide, names)
    queries = [f'SELECT * FROM "{name}"' for name in names]
    queries += [f"SELECT id, place.b AS b, place IS NULL AS n FROM {kind}"]
    assert answers(midway, queries) == answers(wide, queries)
    events = [type(event) for event in midway.events(kind)]
    assert [events.count(each) for each in (SetDataSchema, AddData)] == [3, 3]
    with Project(midway.root) as project:
        first = project[kind].history.head(1).column("place").to_pylist()
    assert first == [{"b": None, "a": 1, "spot": None}]


# --- Numbers ---

_AMOUNTS = [
    ['"id": 1, "amount": 1.25', '"id": 2, "amount": -9999.99', '"id": 3, "amount": null'],
    ['"id": 2, "amount": 999999.1234', '"id": 3, "amount": 0.0001', '"id": 4, "amount": 2'],
    ['"id": 1, "amount": 7', '"id": 3, "amount": 0.0001'],
]
_BESIDE = (
    "SELECT event_time, id, TRY_CAST(amount AS DECIMAL(6, 2)) AS amount, "
    "amount AS amount_wide FROM input"
)
_BOTH = "COALESCE(amount_wide, amount)"


@pytest.mark.parametrize("kind", MERGES)
def test_a_number_gains_a_wider_column_beside_it(kind: str, near: Near, tmp_path: Path) -> None:
    midway, wide = fresh(near, tmp_path / "midway"), fresh(near, tmp_path / "wide")
    midway.derive("before", "SELECT event_time, id, amount FROM source", kind)
    root(midway, kind, "amount DECIMAL(6, 2)")
    arrive(midway, 1, *_AMOUNTS[0])
    root(midway, kind, "amount DECIMAL(10, 4)")
    refused = midway.run("plan", env=NO_JVM).stdout
    assert "TRY_CAST(amount AS DECIMAL(6, 2)) AS amount, amount AS amount_wide" in refused
    root(midway, kind, "amount DECIMAL(10, 4)", _BESIDE)
    planned = midway.run("plan", env=NO_JVM).stdout
    assert f"{ADDED}amount_wide\n" in planned
    assert " 1 to change, 0 to run, 0 to reset" in planned

    root(wide, kind, "amount DECIMAL(10, 4)")
    arrive(wide, 1, *_AMOUNTS[0])
    for number in (2, 3):
        for tiny in (midway, wide):
            arrive(tiny, number, *_AMOUNTS[number - 1])
    proven(midway)
    exact = f"SELECT id, CAST({{}} AS DECIMAL(10, 4)) AS amount FROM {kind}"
    assert answers(midway, [exact.format(_BOTH)]) == answers(wide, [exact.format("amount")])
    schemas = [schema_of(e) for e in midway.events(kind) if isinstance(e, SetDataSchema)]
    assert [each.field("amount").type for each in schemas] == [pa.decimal128(6, 2)] * 2
    assert schemas[1].field("amount_wide").type == pa.decimal128(10, 4)
    if kind == "append":
        # What is too large for the old column is not in it, and the rest is rounded.
        last = histories(midway, ["before"])["before"][3:]
        assert [str(each["amount"]) for each in last] == ["None", "0.00", "2.00", "7.00", "0.00"]


@pytest.mark.parametrize("kind", MERGES)
def test_chains_of_others_that_widened_a_type_are_read_in_it(
    kind: str, near: Near, tmp_path: Path
) -> None:
    """Their rules let a schema in the form of Arrow pass that this program would not write."""
    midway, wide = fresh(near, tmp_path / "midway"), fresh(near, tmp_path / "wide")
    root(midway, kind, "amount DECIMAL(6, 2)")
    arrive(midway, 1, *_AMOUNTS[0])
    state = midway.workspace().projection(kind)
    assert state is not None
    assert state.schema is not None
    columns = schema_of(state.schema)
    at = columns.get_field_index("amount")
    columns = columns.set(at, columns.field(at).with_type(pa.decimal128(10, 4)))
    event = SetDataSchema(raw_arrow_schema=to_raw(columns))
    midway.workspace().dataset(kind).append(state.head, [event], Timestamp.now())
    for tiny in (midway, wide):
        root(tiny, kind, "amount DECIMAL(10, 4)")
    arrive(wide, 1, *_AMOUNTS[0])
    for tiny in (midway, wide):
        arrive(tiny, 2, *_AMOUNTS[1])
    proven(midway)
    asked = [f'SELECT * FROM "{kind}"']
    assert answers(midway, asked) == answers(wide, asked)
    assert histories(midway, [kind]) == histories(wide, [kind])
