"""What the pages draw, in real Chromium: lines, labels, templates and plots."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from odfbuild.cli.main import run as program
from odfbuild.odf.timestamp import Timestamp
from odfbuild.report.site.standing import Standing
from tests.apply.in_process import share
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import Tiny
from tests.site.browser import Opened, chromium, needs_browser, opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser

WIDTHS = (400, 1280)
_TEMPLATE = """\
---
matrix: {country: [at, be, ch, cz, de, es, fr, it, nl, pl]}
---
kind: DatasetSnapshot
version: 1
content:
  name: revenue.{{ country }}
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: sales, alias: s}]
      transform:
        {kind: Sql, engine: spark, query: "SELECT event_time, value FROM s WHERE id > 1"}
"""
_READER = """\
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{inputs}]
      transform: {{kind: Sql, engine: spark, query: "{query}"}}
"""
# Cytoscape's points of an edge, and the boxes that are not its own, in the pixels of the model.
_CROSSED = """() => {
  const cy = document.querySelector("[data-graph] .canvas")._cyreg.cy, found = [];
  for (const edge of cy.edges()) {
    const ways = [edge.sourceEndpoint(), ...(edge.segmentPoints() ?? []), edge.targetEndpoint()];
    for (const node of cy.nodes(":childless")) {
      if (node.same(edge.source()) || node.same(edge.target())) continue;
      const { x, y } = node.position(), w = node.width() / 2, h = node.height() / 2;
      for (let k = 1; k < ways.length; k += 1) for (let t = 0; t <= 1; t += 0.01) {
        const at = (axis) => ways[k - 1][axis] + (ways[k][axis] - ways[k - 1][axis]) * t;
        if (Math.abs(at("x") - x) < w && Math.abs(at("y") - y) < h) found.push(edge.id());
      }
    }
  }
  return [cy.edges().length, found];
}"""
_LETTERS = """() => {
  const cy = document.querySelector("[data-graph] .canvas")._cyreg.cy;
  return cy.zoom() * parseFloat(cy.nodes(":childless").style("font-size"));
}"""


def read(folder: Path, name: str, *inputs: str) -> None:
    """Define a dataset that reads others."""
    aliases = [f"i{number}" for number in range(len(inputs))]
    listed = zip(inputs, aliases, strict=True)
    joins = " ".join(f"JOIN {each} ON {each}.id = i0.id" for each in aliases[1:])
    text = _READER.format(
        name=name,
        inputs=", ".join(f"{{datasetRef: {each}, alias: {alias}}}" for each, alias in listed),
        query=f"SELECT i0.event_time, i0.id, i0.value FROM i0 {joins}".strip(),
    )
    (folder / "datasets" / f"{name}.yaml").write_text(text)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with lines past columns and ten instances; its root has a constant watermark."""
    tiny = Tiny.fresh(tmp_path_factory.mktemp("drawings") / "shop")
    (tiny.root / "data" / "2.csv").write_text("event_time,id,value\n2024-01-01 12:00:00,9,9\n")
    tiny.derive("unknown", "SELECT * FROM source PIVOT (max(value) AS value FOR id IN (1, 2))")
    with pytest.MonkeyPatch.context() as patch:
        share(PlainEngine(), patch)
        assert program(["-C", str(tiny.root), "apply", "-y"]) == 0
    read(tiny.root, "sales", "root", "derived")
    read(tiny.root, "sales.eur", "sales")
    read(tiny.root, "net", "sales.eur", "root")
    read(tiny.root, "customers.value", "net", "sales", "derived", "root")
    for number in range(4):
        read(tiny.root, f"kind{number}.with.a.name.that.is.rather.long", "root")
    (tiny.root / "datasets" / "revenue.yaml.j2").write_text(_TEMPLATE)
    assert program(["-C", str(tiny.root), "docs", "build", "-o", str(tiny.root / "site")]) == 0
    return tiny.root / "site"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


def check_drawing(window: Opened) -> None:
    edges, crossed = window.page.evaluate(_CROSSED)
    assert edges > 0
    assert crossed == []
    assert window.page.evaluate(_LETTERS) >= 10


@needs_browser
@pytest.mark.parametrize("width", WIDTHS)
def test_no_edge_runs_through_a_box_and_labels_can_be_read(
    browser: Browser, site: Path, width: int
) -> None:
    with opened(browser, site, width) as window:
        for path in ("index.html", "graph.html", "datasets/root.html", "datasets/sales.html"):
            window.go(path)
            window.drawn()
            check_drawing(window)
            assert window.page.evaluate("document.documentElement.scrollWidth") <= width
        for by in ("template", "prefix"):
            window.page.get_by_label("Group by").select_option(by)
            check_drawing(window)


@needs_browser
def test_instances_of_a_template_are_one_node_until_it_is_chosen(
    browser: Browser, site: Path
) -> None:
    with opened(browser, site) as window:
        window.go("graph.html")
        window.drawn()
        assert len(window.nodes()) == 21
        window.page.get_by_label("Group by").select_option("template")
        assert len(window.nodes()) == 12
        assert not [each for each in window.nodes() if each.startswith("revenue.de")]
        window.click_node("revenue.yaml.j2 (10)")
        assert len(window.nodes()) == 21
        check_drawing(window)
        window.page.get_by_role("button", name="Fold templates").click()
        assert len(window.nodes()) == 12


@needs_browser
def test_a_plot_begins_where_its_data_does(browser: Browser, site: Path) -> None:
    with opened(browser, site) as window:
        window.go("datasets/root.html")
        window.page.locator("#growth").scroll_into_view_if_needed()
        window.page.locator(".plot canvas").nth(2).wait_for()
        window.page.locator(".plot[data-axis]").nth(2).wait_for()
        axes = [each.get_attribute("data-axis") for each in window.page.locator(".plot").all()]
        assert axes[2] == "2024-01-02 12:00 to 2024-01-03 12:00"
        assert axes[0] == "2 to 5"
        assert window.page.locator(".u-legend").first.inner_text() == "Block#4Records4"


def test_uses_by_instances_are_one_entry_and_a_column_without_texts_is_left_out(
    site: Path,
) -> None:
    page = (site / "datasets" / "sales.html").read_text()
    assert page.count("of 10 datasets from <code>datasets/revenue.yaml.j2</code>") == 2
    assert "Description</th>" not in page
    assert "Description</th>" not in (site / "index.html").read_text()


def test_a_dataset_that_only_apply_can_check_is_no_warning() -> None:
    standing = Standing(None, Timestamp.now())
    vars(standing)["_by_plan"] = {"a": "to be checked", "b": "stale"}
    assert [standing.tone(each) for each in "ab"] == ["plain", "busy"]


def test_a_page_says_where_the_origin_of_columns_is_unknown(site: Path) -> None:
    said = {
        name: "made from is unknown" in (site / "datasets" / f"{name}.html").read_text()
        for name in ("root", "sales", "unknown")
    }
    assert said == {"root": False, "sales": False, "unknown": True}
