"""The benchmark's pipelines of datasets that all differ."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

duckdb = pytest.importorskip("duckdb")

VARIED = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "varied.py"))


def test_a_seed_gives_the_same_datasets_each_time_and_another_one_gives_others() -> None:
    made = [VARIED["make_datasets"](60, seed) for seed in (1, 1, 2)]
    assert made[0] == made[1]
    names = [{each.name for each in some} for some in made]
    assert len(names[0]) == 60
    assert not names[0] & names[2]
    assert {each.merge for each in made[0] if each.merge} == {*VARIED["MERGES"]}
    assert len({(each.key, each.text, each.number, each.more) for each in made[0]}) == 60


def test_queries_of_all_shapes_run_over_the_columns_that_their_inputs_have() -> None:
    made: list[Any] = VARIED["make_datasets"](44, 3)
    assert {each.shape for each in made if each.shape} == {*VARIED["SHAPES"]}
    connection = duckdb.connect()
    for each in made:
        if each.inputs:
            query = each.query.format(*(one.name for one in each.inputs))
            connection.execute(f"CREATE TABLE {each.name} AS {query}")
        else:
            types = [("event_time", "timestamp")]
            types += [(name, VARIED["_TYPES"][kind][1]) for name, kind in each.columns]
            columns = ", ".join(f"{name} {kind}" for name, kind in types)
            connection.execute(f"CREATE TABLE {each.name} ({columns})")
            marks = ", ".join("?" for _ in types)
            connection.executemany(f"INSERT INTO {each.name} VALUES ({marks})", each.rows)
        found = connection.execute(f"SELECT * FROM {each.name}").description
        assert {"event_time", each.key, each.text, each.number} <= {name for name, *_ in found}
