"""`FROM order_lines` finds the input `order-lines`, and the chain says so by an alias."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest

from odfbuild.apply.definitions import resolve_changes
from odfbuild.engine.release import engine_version
from odfbuild.errors import Errors
from odfbuild.odf.model import SetTransform
from odfbuild.odf.timestamp import Timestamp
from odfbuild.project.definitions import definitions_in
from odfbuild.project.source import Source
from odfbuild.project.tables import declared_tables
from odfbuild.survey.survey import survey
from tests.apply.in_process import Program
from tests.project.write_project import root_yaml, write_project

_HEAD = """kind: DatasetSnapshot
version: 1
content:
  name: total
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs:
"""


def text(query: str, *inputs: str) -> str:
    listed = "".join(f"        - {each}\n" for each in inputs)
    body = indent(query, " " * 10)
    sql = f"      transform:\n        kind: Sql\n        engine: spark\n        query: |\n{body}\n"
    return _HEAD + listed + sql


def aliases(query: str, *inputs: str) -> list[str | None]:
    (definition,) = definitions_in(Source("total.yaml", text(query, *inputs)))
    (event,) = [e for e in definition.snapshot.metadata if isinstance(e, SetTransform)]
    return [each.alias for each in event.inputs]


ORDERS = "datasetRef: order-lines"


@pytest.mark.parametrize(
    ("query", "inputs", "expected"),
    [
        ("SELECT * FROM order_lines", [ORDERS], ["order_lines"]),
        ("SELECT * FROM Order_Lines o", [ORDERS], ["order_lines"]),
        ("SELECT * FROM `order-lines`", [ORDERS], ["order-lines"]),
        ("SELECT order_lines FROM `order-lines`", [ORDERS], ["order-lines"]),
        ("SELECT 1 -- order_lines\nFROM `order-lines`", [ORDERS], ["order-lines"]),
        ("SELECT * FROM eu_order_lines", ["datasetRef: eu.order-lines"], ["eu_order_lines"]),
        # What the query names so itself is that.
        (
            "WITH order_lines AS (SELECT * FROM `order-lines`) SELECT * FROM order_lines",
            [ORDERS],
            ["order-lines"],
        ),
        # An alias that is given stays, and is the only name.
        ("SELECT * FROM order_lines", [f"{{{ORDERS}, alias: o}}"], ["o"]),
        (
            "SELECT * FROM order_lines JOIN `order-lines` USING (id)",
            ["{datasetRef: others, alias: order_lines}", ORDERS],
            ["order_lines", "order-lines"],
        ),
        # Where one name could be either of two, neither is meant.
        ("SELECT * FROM a_b", ["datasetRef: a-b", "datasetRef: a.b"], ["a-b", "a.b"]),
        # An input has one name.
        (
            "SELECT * FROM order_lines JOIN `order-lines` USING (id)",
            [ORDERS],
            ["order-lines"],
        ),
        ("SELECT * FROM order_lines WHERE (", [ORDERS], ["order-lines"]),
    ],
)
def test_an_input_without_alias_gets_the_name_by_which_the_query_reads_it(
    query: str, inputs: list[str], expected: list[str]
) -> None:
    assert aliases(query, *inputs) == expected


def test_a_name_with_an_underscore_is_refused_with_the_name_that_it_can_have() -> None:
    wrong = text("SELECT * FROM order_lines", ORDERS).replace("name: total", "name: line_totals")
    with pytest.raises(Errors) as caught:
        definitions_in(Source("total.yaml", wrong))
    (error,) = caught.value.errors
    assert "'line-totals'" in str(error.help)
    assert error.location is not None and (error.location.line, error.location.column) == (4, 9)
    with pytest.raises(Errors) as caught:
        definitions_in(
            Source("total.yaml", text("SELECT * FROM order_lines", "datasetRef: order_lines"))
        )
    (error,) = caught.value.errors
    assert "'order-lines'" in str(error.help)


def test_the_alias_is_part_of_what_is_planned_and_nothing_else_changes(tmp_path: Path) -> None:
    files = {
        "order-lines.yaml": root_yaml("order-lines", "event_time TIMESTAMP, id BIGINT"),
        "total.yaml": text("SELECT event_time, id FROM order_lines", ORDERS),
    }
    config = """
        tables:
          - match: ["*"]
            format: parquet
            location: lake
            name: "dw_{identifier}"
    """
    root = write_project(tmp_path / "project", files, config)
    (root / "data").mkdir()
    (root / "data" / "1.csv").write_text("event_time,id\n2024-01-01T00:00:00Z,1\n")
    found = survey(root)
    assert not found.plan.refusals
    planned = {each.name: each for each in found.plan.datasets}
    (event,) = [c.after for c in planned["total"].changes if isinstance(c.after, SetTransform)]
    assert [(str(each.dataset_ref), each.alias) for each in event.inputs] == [
        ("order-lines", "order_lines")
    ]
    names = [each.name for each in declared_tables(found.project.config, planned)]
    assert names == ["dw_order_lines", "dw_total"]


def test_import_maps_the_name_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write_project(tmp_path / "project", {"o.yaml": root_yaml("order-lines")})
    found = survey(root)
    (planned,) = found.plan.datasets
    events = resolve_changes(planned, found.workspace, engine_version())
    found.workspace.create(planned.name, planned.kind, events, Timestamp.now())
    said = Program(root, monkeypatch, capsys).ok("import", "order_lines")
    assert "  name: order-lines\n" in said.out
    assert "'order_lines' is called 'order-lines'" in said.err
