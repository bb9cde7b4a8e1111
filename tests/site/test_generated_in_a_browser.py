"""The site of many generated datasets in real Chromium: as quick to read as that of few."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.site.browser import ROOT, chromium, needs_browser, opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = needs_browser

ODFBUILD = Path(sys.executable).with_name("odfbuild")
GENERATE = """
import subprocess, sys
from pathlib import Path
import plan
root = Path(sys.argv[1])
plan.make_project("odf", int(sys.argv[2]), root, plan.HERE / "generate.py")
plan.rename(root / "odf")
subprocess.run([sys.executable, plan.HERE / "commit.py", root / "odf"], check=True)
"""

# Waiting for a text of code is refused by the policy of the pages; a promise is not.
FIRST_PAINT = """new Promise((done) => {
  new PerformanceObserver((list) => {
    const [paint] = list.getEntriesByName("first-contentful-paint");
    if (paint) done(paint.startTime);
  }).observe({ type: "paint", buffered: true });
})"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.mark.parametrize(
    "number", [300, pytest.param(10_000, marks=pytest.mark.slow, id="10000: minutes to generate")]
)
def test_many_datasets_are_searched_and_drawn_by_what_is_asked_for(
    browser: Browser, tmp_path: Path, number: int
) -> None:
    subprocess.run(
        [sys.executable, "-c", GENERATE, tmp_path, str(number)], cwd=ROOT / "benchmarks", check=True
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([ODFBUILD, "docs", "build", "-o", "../site"], cwd=tmp_path / "odf", check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert cpu < 15
    site = tmp_path / "site"
    assert max(each.stat().st_size for each in site.rglob("*") if each.suffix != ".js") < 500_000
    for width in (400, 1400):
        with opened(browser, site, width) as window:
            page = window.page
            window.go("index.html")
            assert page.evaluate(FIRST_PAINT) < 1000
            window.drawn()
            assert len(window.nodes()) <= 80
            group = next(each for each in window.nodes() if each.startswith("layer02"))
            window.click_node(group)
            page.locator(".tools").get_by_text("Back").first.wait_for()
            assert len(window.nodes()) <= 80
            assert all(each.startswith("layer02") for each in window.nodes())
            page.get_by_role("combobox", name="Search datasets").fill("layer03-0001")
            page.locator("#found [data-name]").first.wait_for()
            page.keyboard.press("Enter")
            page.wait_for_url("**/datasets/layer03-*.html")
            window.drawn()
            one_hop = len(window.nodes())
            page.locator("[data-graph]").get_by_label("Hops").select_option("6")
            assert one_hop < len(window.nodes()) <= 80
            window.drawn("[data-columns]")
            assert "amount" in window.nodes("[data-columns]")
            assert page.evaluate("document.documentElement.scrollWidth") <= width
