"""Schemas grow by optional columns; whatever else would change them is refused by `plan`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from odfbuild.odf.model import ExecuteTransform, SetDataSchema, SetPollingSource, SetTransform
from tests.apply.tiny import NO_JVM, QUERY, Tiny

pytestmark = pytest.mark.spark

Near = Callable[[Path], Tiny]

_ALL = "SELECT * EXCEPT (offset, op, system_time) FROM source"
_WITH_NOTE = "event_time,id,value,note\n2024-03-01 00:00:00,5,5,five\n"


def test_a_history_grows_by_optional_columns_and_by_nothing_else(
    near: Near, tmp_path: Path
) -> None:
    tiny = near(tmp_path)
    tiny.derive("all", _ALL)
    tiny.derive("late", QUERY)
    tiny.derive("through", "SELECT event_time, id FROM source", source="all")
    tiny.apply()
    definition = tmp_path / "datasets" / "root.yaml"
    committed = definition.read_text()
    before = {name: len(tiny.events(name)) for name in ("root", "derived", "all")}

    # Breaking: refused by plan, which starts no JVM, at the line that changed.
    definition.write_text(committed.replace("value BIGINT", "value STRING"))
    tiny.derive("derived", "SELECT event_time, id FROM source")
    refused = tiny.run("plan", env=NO_JVM)
    assert refused.returncode == 1
    assert "error[E0314]: 'root' cannot be changed" in refused.stdout
    assert "--> datasets/root.yaml:18:13" in refused.stdout
    assert "column 'value' is STRING now, and BIGINT in the committed schema" in refused.stdout
    assert "--> datasets/derived.yaml:15:11" in refused.stdout
    assert "column 'value' is missing" in refused.stdout
    assert "'derived.v2'" in refused.stdout
    assert tiny.apply(expect=1, env=NO_JVM)
    assert {name: len(tiny.events(name)) for name in before} == before

    # Growing: the source gains a column, one reader takes it over, another asks for it.
    definition.write_text(
        committed.replace("value BIGINT", "value BIGINT\n          - note STRING").replace(
            "path: data/*.csv", "path: data/[3-9].csv"
        )
    )
    (tmp_path / "data" / "3.csv").write_text(_WITH_NOTE)
    tiny.derive("derived", QUERY.replace("FROM", ", upper(note) AS loud FROM"))
    tiny.derive("through", "SELECT event_time, id, note FROM source", source="all")
    planned = tiny.run("plan", env=NO_JVM).stdout
    assert planned.count("SetDataSchema adds columns, NULL in existing records: note") == 3
    assert planned.count("SetDataSchema adds columns, NULL in existing records: loud") == 1
    tiny.apply()
    kinds = [type(event) for event in tiny.events("root")]
    assert kinds[-3:-1] == [SetPollingSource, SetDataSchema]
    kinds = [type(event) for event in tiny.events("derived")]
    assert kinds[-3:] == [SetTransform, SetDataSchema, ExecuteTransform]
    assert [r.get("note") for r in tiny.records("root")] == [None, None, None, "five"]
    assert [r.get("note") for r in tiny.records("all")] == [None, None, None, "five"]
    assert [r.get("note") for r in tiny.records("through")] == [None, None, None, "five"]
    assert [r.get("loud") for r in tiny.records("derived")] == [None, None, None, "FIVE"]
    assert "note" not in tiny.records("late")[-1]

    # A changed query without new records extends the schema at once.
    tiny.derive("late", QUERY.replace("FROM", ", note FROM"))
    tiny.apply()
    assert [type(event) for event in tiny.events("late")][-2:] == [SetTransform, SetDataSchema]
    assert tiny.run("plan").stdout.startswith("No changes.")
    verified = tiny.run("verify")
    assert verified.returncode == 0, verified.stdout


def test_columns_that_nobody_asked_for_are_not_taken_in(near: Near, tmp_path: Path) -> None:
    tiny = near(tmp_path)
    (tmp_path / "datasets" / "derived.yaml").unlink()
    definition = tmp_path / "datasets" / "root.yaml"
    columns = "        schema:\n          - event_time TIMESTAMP\n          - id BIGINT\n"
    text = definition.read_text().replace(columns + "          - value BIGINT\n", "")
    definition.write_text(
        text.replace(
            "merge:",
            "preprocess:\n        kind: Sql\n        engine: spark\n"
            "        query: SELECT CAST(event_time AS TIMESTAMP) AS event_time, "
            "* EXCEPT (event_time) FROM input\n      merge:",
        )
    )
    tiny.apply()
    (tmp_path / "data" / "3.csv").write_text(_WITH_NOTE)
    said = tiny.apply(expect=1)
    assert "error[E0522]: the source of 'root' has columns that it did not have: note" in said
    assert tiny.ids("root") == ["1", "2", "3"]
