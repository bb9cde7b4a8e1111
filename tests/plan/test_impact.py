"""Whom a change reaches: column by column through the readers, and not one column further."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from odfbuild.odf.model import SetInfo
from odfbuild.plan.columns import impact
from odfbuild.plan.document import plan_document
from odfbuild.plan.model import ColumnEffect, Plan
from odfbuild.report.plan.view import view
from tests.plan.test_evolution import source
from tests.plan.worlds import LATE, READERS, polling, readers


def changed(query: str) -> Plan:
    made = readers()
    made.derivative("late", "flights", query=query)
    return made.plan()


def effects(plan: Plan) -> dict[str, str]:
    """What reaches each dataset, as text: `name by derivation of late.name`."""
    return {d.name: _text(d.columns) for d in plan.datasets if d.columns is not None}


def _text(effect: ColumnEffect) -> str:
    return ", ".join(
        f"{each.column or '*'} by {each.by} of {each.input}"
        + (f".{each.input_column}" if each.input_column else "")
        for each in effect.causes
    )


def test_a_column_that_is_computed_otherwise_is_followed_to_the_last_reader() -> None:
    plan = changed(LATE.replace("name FROM", "lower(name) AS name FROM"))
    assert effects(plan) == {
        "late": "",
        "shown": "name by derivation of late.name",
        "early": "* by filter of late.name",
        "strange": "* by unknown of late",
        "far": "name by copy of shown.name",
    }
    by_name = {dataset.name: dataset for dataset in plan.datasets}
    shown, early, strange = (by_name[n].columns for n in ("shown", "early", "strange"))
    assert shown == ColumnEffect(changed=("name",), causes=shown.causes)
    assert early == ColumnEffect(records=True, causes=early.causes)
    assert strange.records
    assert strange.changed == ("offset", "op", "system_time", "event_time", "id", "name")
    assert by_name["ids"].columns is None


def test_other_records_reach_every_reader() -> None:
    plan = changed(LATE.replace("id > 0", "id > 1"))
    assert effects(plan) == {
        "late": "",
        "shown": "* by records of late",
        "early": "* by records of late",
        "ids": "* by records of late",
        "strange": "* by records of late",
        "far": "* by records of shown",
        "further": "* by records of ids",
    }


def test_what_cannot_be_told_counts_as_affected() -> None:
    found = effects(changed(LATE.replace("name FROM", "name, id + 1 FROM")))
    assert found.pop("late") == ""
    assert set(found) == {*READERS, "far", "further"}
    assert {found[name] for name in READERS} == {"* by unknown of late"}


def test_metadata_and_white_space_reach_nobody() -> None:
    made = readers()
    made.root("flights", polling(), SetInfo(description="Other words"))
    assert effects(made.plan()) == {}
    assert effects(changed(LATE.replace(" ", "\n"))) == {}


def test_a_reader_that_changes_itself_is_told_both() -> None:
    made = readers()
    made.derivative("late", "flights", query=LATE.replace("name FROM", "lower(name) AS name FROM"))
    made.derivative("early", "late", query=READERS["early"].replace("'x'", "'y'"))
    effect = made.planned("early").columns
    assert effect is not None
    assert (effect.changed, effect.records) == (("name",), True)
    assert _text(effect) == "* by filter of late.name"


def test_the_plan_lists_the_readers_below_the_change() -> None:
    plan = changed(LATE.replace("name FROM", "lower(name) AS name FROM"))
    (row,) = (row for row in view(plan).rows if row.name == "late")
    assert row.notes[:5] == (
        "columns with other values: name",
        "affects shown: name (derivation)",
        "affects early: records (filter)",
        "affects strange: everything, because its query cannot be analysed",
        "affects far: name (copy)",
    )


def test_a_long_list_of_readers_is_cut() -> None:
    made = readers()
    for number in range(20):
        made.derivative(f"r{number}", "late", query=READERS["shown"])
        made.commit(f"r{number}").run(5, made.chains["late"])
    made.derivative("late", "flights", query=LATE.replace("id > 0", "id > 1"))
    (row,) = (row for row in view(made.plan()).rows if row.name == "late")
    reaching = [note for note in row.notes if note.startswith("affects")]
    assert reaching[-1] == "affects 18 more datasets"
    assert len(reaching) == 9


def test_a_refused_change_names_whom_it_would_break() -> None:
    made = readers()
    made.derivative("late", "flights", query="SELECT event_time, id, 'x' AS other FROM flights")
    plan = made.plan()
    (late,) = (dataset for dataset in plan.datasets if dataset.name == "late")
    assert late.refusal is not None
    assert late.refusal.notes == (
        "column 'name' is missing",
        "cost: a new name recomputes 20 records; still reading the old history: early,"
        " far, further, ids, shown and 1 more",
        "cost: a rebuild drops 20 records, and 30 records of 6 downstream datasets",
        "affects shown: name (derivation)",
        "affects early: records (filter)",
        "affects strange: everything, because its query cannot be analysed",
        "affects far: name (copy)",
    )
    # Nothing happens, so nobody is affected.
    assert effects(plan) == {}


def test_a_refused_source_names_whom_it_would_break() -> None:
    made = readers()
    made.root("flights", source("id STRING", "name STRING"))
    (root,) = (dataset for dataset in made.plan().datasets if dataset.name == "flights")
    assert root.refusal is not None
    assert root.refusal.notes[1].startswith("cost: a new name starts without ")
    assert root.refusal.notes[1].endswith("old history: early, far, further, ids, late and 2 more")
    assert "affects late: id (copy), records (filter)" in root.refusal.notes
    assert "affects ids: id (copy), records" in root.refusal.notes
    for number in range(20):
        made.derivative(f"r{number}", "late", query=READERS["shown"])
        made.commit(f"r{number}").run(5, made.chains["late"])
    (root,) = (dataset for dataset in made.plan().datasets if dataset.name == "flights")
    assert root.refusal is not None
    assert [note[:7] for note in root.refusal.notes].count("affects") == 9
    assert root.refusal.notes[-1] == "affects more datasets"


def test_the_document_holds_causes_and_fits_its_schema() -> None:
    document: dict[str, Any] = plan_document(changed(LATE.replace("name FROM", "'z' AS name FROM")))
    schema = Path(__file__).parents[2] / "schemas" / "plan.schema.json"
    affected = json.loads(schema.read_text())["$defs"]["dataset"]["properties"]["affected_columns"]
    for dataset in document["datasets"]:
        Draft202012Validator(affected).validate(dataset["affected_columns"])
    (shown,) = (d for d in document["datasets"] if d["name"] == "shown")
    assert shown["affected_columns"]["causes"] == [
        {"column": "name", "by": "derivation", "input": "late", "input_column": "name"}
    ]


def test_queries_beyond_a_bound_are_not_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(impact, "LOOKED_INTO", 1)
    found = effects(changed(LATE.replace("name FROM", "lower(name) AS name FROM")))
    assert found["shown"] == "name by derivation of late.name"
    assert found["ids"] == "* by unknown of late"


def test_what_is_left_alone_costs_no_parsing(monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(*_: object) -> None:
        pytest.fail("a query was parsed")

    monkeypatch.setattr("odfbuild.sql.columns.query_lineage.lineage_of", parse)
    made = readers()
    made.plan()
    made.chains["flights"].add(5)
    made.plan()
