"""The site of the example project in real Chromium: search, graph, column lineage, both widths."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.example.odfbuild_project import ExampleProject
from tests.site.browser import ROOT, chromium, needs_browser, opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.spark, needs_browser]

WIDTHS = (400, 1400)
IMAGES = os.environ.get("ODFBUILD_TEST_IMAGES")
"""A folder for pictures of the pages; docs/images has those of a release."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = ExampleProject.applied(tmp_path_factory).copy(
        tmp_path_factory.mktemp("site") / "project"
    )
    with (project.root / "odfbuild.yaml").open("a") as config:
        config.write("  show:\n    - {match: [nyc.disruptions]}\n")
    project.ok("docs", "build", "-o", "site", "--at", "2013-04-02T00:00:00Z")
    return project.root / "site"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


def test_the_search_finds_names_columns_and_descriptions(browser: Browser, site: Path) -> None:
    with opened(browser, site) as window:
        window.go("index.html")
        page = window.page
        page.keyboard.press("/")
        for words, found in (
            ("cancel", "nyc.flights.cancelled"),
            ("wind_gust", "us.iem.weather"),
            ("registry", "us.faa.planes"),
        ):
            page.get_by_role("combobox", name="Search datasets").fill(words)
            page.locator(f'#found [data-name="{found}"]').wait_for()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_url("**/datasets/*.html")
        assert page.locator("h1").inner_text() == "us.faa.planes"


def test_a_click_in_the_graph_leads_from_dataset_to_dataset(browser: Browser, site: Path) -> None:
    with opened(browser, site) as window:
        window.go("graph.html")
        window.drawn()
        assert len(window.nodes()) == 18
        window.click_node("nyc.departures")
        window.page.get_by_role("button", name="Show its lineage").click()
        window.page.get_by_label("Hops").select_option("1")
        assert sorted(window.nodes()) == [
            "nyc.delays.daily",
            "nyc.departures",
            "nyc.departures.ewr",
            "nyc.departures.jfk",
            "nyc.departures.lga",
            "nyc.departures.morning",
            "nyc.departures.weather",
            "nyc.routes.delayed",
        ]
        window.page.get_by_label("Group by").select_option("template")
        window.click_node("by-airport.yaml.j2 (3)")
        window.click_node("nyc.departures.jfk")
        window.page.locator(".chosen a").click()
        assert window.page.locator("h1").inner_text() == "nyc.departures.jfk"


def test_columns_can_be_followed_to_where_they_come_from(browser: Browser, site: Path) -> None:
    with opened(browser, site) as window:
        window.go("datasets/nyc.disruptions.html")
        window.drawn("[data-columns]")
        assert {"details", "wind_gust", "carrier"} <= set(window.nodes("[data-columns]"))
        window.page.locator("[data-columns] select").select_option("airport")
        assert sorted(window.nodes("[data-columns]")) == ["airport", "origin", "origin"]
        window.click_node("airport", "[data-columns]")
        followed = window.page.locator("[data-columns] .chosen").inner_text()
        assert "nyc.weather.storms.origin → nyc.disruptions.airport (copy)" in followed
        assert (
            "nyc.weather.storms.wind_gust (derivation)"
            in window.page.locator("#c-details").inner_text()
        )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_pages_fit_and_nothing_serious_hinders_those_who_cannot_see(
    browser: Browser, site: Path, width: int, scheme: str
) -> None:
    with opened(browser, site, width, scheme) as window:
        for path in ("index.html", "datasets/nyc.disruptions.html", "graph.html"):
            window.go(path)
            window.drawn()
            page = window.page
            if path.startswith("datasets"):
                window.drawn("[data-columns]")
            page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert window.serious() == []
            if IMAGES:
                name = Path(path).stem.replace("index", "overview").rpartition(".")[2]
                file = Path(IMAGES) / f"site-{name}-{width}-{scheme}.png"
                if path.startswith("datasets"):
                    page.evaluate(
                        "document.querySelector('#columns').scrollIntoView({behavior: 'instant'})"
                    )
                page.screenshot(path=file)


def test_the_graph_can_be_moved_with_keys(browser: Browser, site: Path) -> None:
    with opened(browser, site) as window:
        window.go("graph.html")
        window.drawn()
        canvas = "document.querySelector('.canvas')._cyreg.cy"
        window.page.locator(".canvas").focus()
        before = window.page.evaluate(f"[{canvas}.zoom(), {canvas}.pan().x]")
        window.page.keyboard.press("+")
        window.page.keyboard.press("ArrowLeft")
        after = window.page.evaluate(f"[{canvas}.zoom(), {canvas}.pan().x]")
        assert after[0] > before[0]
        assert after[1] != before[1]


def test_every_page_can_be_read_without_scripts(browser: Browser, site: Path) -> None:
    with opened(browser, site, scripts=False) as window:
        window.go("index.html")
        window.page.get_by_role("link", name="nyc.departures.weather", exact=True).click()
        page = window.page
        assert page.locator("svg.drawing a").count() == 3
        page.locator("svg.drawing a", has_text="us.iem.weather").click()
        assert page.locator("h1").inner_text() == "us.iem.weather"
        assert page.locator("#columns").is_visible()


def test_pages_have_no_more_than_500_kilobytes(site: Path) -> None:
    assert max(each.stat().st_size for each in site.rglob("*.html")) < 500_000
    assert (ROOT / "vendored" / "LICENSES.txt").read_text().count("MIT") >= 4


@pytest.mark.parametrize("width", WIDTHS)
def test_records_size_and_watermark_are_plotted_over_blocks(
    browser: Browser, site: Path, width: int
) -> None:
    with opened(browser, site, width) as window:
        window.go("datasets/us.bts.flights.html")
        window.page.locator("#growth").scroll_into_view_if_needed()
        window.page.locator(".plot canvas").nth(2).wait_for()
        said = [each.get_attribute("aria-label") for each in window.page.locator(".plot").all()]
        assert [each.partition(" by block")[0] for each in said] == ["Records", "Size", "Watermark"]
        assert "to 80,789 at block" in said[0]
        assert window.page.evaluate("document.documentElement.scrollWidth") <= width
        assert window.serious() == []
