"""Where committed records come from, down to the files, through the program, worked out by hand."""

from __future__ import annotations

import re
import shutil
from typing import Any

import pytest

from odfbuild import Project
from odfbuild.errors import RecordsError
from tests.apply.in_process import Program
from tests.apply.tiny import QUERY, Tiny

pytestmark = pytest.mark.spark

COUNTED = (
    "SELECT max(event_time) AS event_time, value % 20 AS odd, count(*) AS n FROM source"
    " GROUP BY value % 20"
)
Tree = tuple[str, list[list[int]], list[Any]]


def tree(found: Any) -> Tree:
    """Dataset, offsets, and the same of what they come from."""
    return found["dataset"], found["offsets"], [tree(each) for each in found["inputs"]]


def test_records_are_traced_by_what_was_in_force_down_to_the_files(odfbuild: Program) -> None:
    tiny = Tiny(odfbuild.root)
    tiny.derive("counted", COUNTED, source="derived")
    tiny.derive(
        "sampled",
        "SELECT event_time, id, value FROM source ORDER BY value, id, event_time LIMIT 2",
        source="derived",
    )
    odfbuild.apply()
    tiny.derive("derived", QUERY.replace("10", "100"))
    tiny.arrive(2)  # one record that is known already, and 4
    odfbuild.apply()

    # derived: 10, 20, 30, then 400; counted: two odd ones and an even one, then two even ones.
    assert [record["n"] for record in tiny.records("counted")] == [1, 2, 1, 2]
    one = odfbuild.ok("provenance", "counted", "1", "3", "2", "-r", "--json").data
    assert [tree(each) for each in one] == [
        ("counted", [[1, 1]], [("derived", [[0, 0], [2, 2]], [("root", [[0, 0], [2, 2]], [])])]),
        ("counted", [[2, 2]], [("derived", [[1, 1]], [("root", [[1, 1]], [])])]),
        (
            "counted",
            [[3, 3]],
            [("derived", [[1, 1], [3, 3]], [("root", [[1, 1], [3, 3]], [])])],
        ),
    ]
    assert [each["takesBack"] for each in one] == [False, True, False]
    pieces = one[2]["inputs"][0]["inputs"][0]["blocks"]
    assert [(each["source"], each["sourceState"]["value"]) for each in pieces] == [
        ("data/*.csv", "1.csv"),
        ("data/*.csv", "2.csv"),
    ]
    assert [each["queryBlock"] for each in one[2]["inputs"][0]["blocks"]] == [1, 4]

    said = odfbuild.ok("provenance", "counted", "--where", "op = 3", "-r").out.splitlines()
    assert said[0] == "counted  record 3"
    assert said[4] == "└─ derived  2 records: 1, 3"
    assert "root  2 records: 1, 3" in said[10]
    assert said[-1].split()[-2:] == ["4", "4"]

    [whole] = odfbuild.ok("provenance", "sampled", "0", "-r", "--json").data
    assert tree(whole) == ("sampled", [[0, 0]], [("derived", [[0, 2]], [("root", [[0, 2]], [])])])
    assert [whole["inputs"][0]["whole"], whole["inputs"][0]["inputs"][0]["whole"]] == ["LIMIT"] * 2
    _columns_are_traced_down_to_the_roots(odfbuild, tiny)

    [root] = odfbuild.ok("provenance", "root", "3", "--json").data
    assert (tree(root), root["sample"][0]["id"]) == (("root", [[3, 3]], []), 4)
    few = odfbuild.ok("provenance", "derived", "0", "1", "2", "-n", "1")
    assert "derived  record 0" in few.out and "record 1" not in few.out
    assert "2 more records not traced: see --limit." in few.err
    assert (
        "No records match." in odfbuild.ok("provenance", "derived", "--where", "value > 4000").err
    )
    project = Project(tiny.root)
    [traced] = project.provenance("derived", [3], recursive=True)
    assert [each.records for each in traced.inputs] == [((3, 3),)]

    page = odfbuild.ok("provenance", "counted", "3", "-r", "--format", "html").out
    for shown in ("data/1.csv", "data/2.csv", "<summary><strong>root</strong>, 2 records: 1, 3"):
        assert shown in page
    assert page.startswith("<!doctype html>") and "<script" not in page

    derived = project["derived"]
    row = derived.to_arrow().to_pylist()[3]
    from_row = derived.provenance(row)
    assert (from_row.records, from_row.inputs[0].dataset) == (((3, 3),), "root")
    assert derived.provenance(derived.history.to_arrow().to_pylist()[3]).records == ((3, 3),)
    assert derived.provenance(1, recursive=False).records == ((1, 1),)
    with pytest.raises(RecordsError, match="no record with these values") as missing:
        derived.provenance({**row, "value": 1})
    assert missing.value.code == "E1248"
    shown = from_row._repr_html_()
    assert "data/2.csv" in shown and "<strong>derived</strong>, record 3" in shown
    wrong = odfbuild("provenance", "derived", "--where", "valeu > 1")
    assert wrong.code == 1
    assert "--where:1:1" in wrong.err and "did you mean 'value'?" in wrong.err
    assert odfbuild("provenance", "derived").code == 64

    # What was read is not here any more: the tree ends, and says why.
    shutil.rmtree(tiny.root / "chains" / "root")
    [alone] = odfbuild.ok("provenance", "counted", "0", "-r", "--json").data
    [read] = alone["inputs"]
    assert (read["offsets"], read["inputs"]) == ([[1, 1]], [])
    assert "has no chain here" in read["untold"]


def _columns_are_traced_down_to_the_roots(odfbuild: Program, tiny: Tiny) -> None:
    asked = ("provenance", "counted", "1", "-r", "--columns")
    [found] = odfbuild.ok(*asked, "--json").data
    assert columns(found) == {
        "event_time": ["derived.event_time (derivation)"],
        "odd": ["derived.value (derivation)"],
        "n": [],
    }
    assert found["decidedBy"] == [{"dataset": "derived", "column": "value", "how": "grouping"}]
    # Of the input, the columns that those above are made of: not `id`.
    [derived] = found["inputs"]
    assert columns(derived) == {
        "event_time": ["root.event_time (copy)"],
        "value": ["root.value (derivation)"],
    }
    assert "columns" not in derived["inputs"][0]
    # The other forms tell the same.
    told = [*columns(found).values(), *columns(derived).values(), ["derived.value (grouping)"]]
    text, page = (odfbuild.ok(*asked, *each).out for each in ((), ("--format", "html")))
    for sources in told:
        assert all(source in text and source in page for source in sources)
    assert re.search(r"│  n +a constant", text)
    # Where no single records can be told, columns can.
    [whole] = odfbuild.ok("provenance", "sampled", "0", "-r", "--columns", "--json").data
    assert columns(whole)["value"] == ["derived.value (copy)"]
    assert columns(whole["inputs"][0])["value"] == ["root.value (derivation)"]
    # Python: the same trees.
    [tree] = Project(tiny.root).provenance("counted", [1], columns=True)
    assert tree.columns is not None
    assert [str(each.column) for each in tree.columns.made_of["odd"]] == ["value"]


def columns(found: Any) -> dict[str, list[str]]:
    """What each column is made of, as text has it."""
    return {
        each["name"]: [f"{e['dataset']}.{e['column']} ({e['how']})" for e in each["from"]]
        for each in found["columns"]
    }
