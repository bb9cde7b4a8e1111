"""Chromium of the machine, and what a page does in it that it should not."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from odfbuild.project.resources import site_libraries

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium")
AXE = Path(sys.prefix) / "site" / "axe.min.js"

needs_browser = pytest.mark.skipif(
    CHROMIUM is None or not site_libraries() or not AXE.exists(),
    reason="needs chromium and npm (make test-needs)",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser, without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Root may start no sandbox; the pages are ours.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@dataclass
class Opened:
    """A page of a site, and everything that went wrong in it."""

    page: Page
    folder: Path
    wrong: list[str] = field(default_factory=list)

    def go(self, path: str) -> None:
        self.page.goto(f"{self.folder.as_uri()}/{path}")

    def drawn(self, place: str = "[data-graph]") -> None:
        """Wait until the graph is drawn."""
        self.page.locator(place).scroll_into_view_if_needed()
        self.page.wait_for_function(
            "place => document.querySelector(place + ' .canvas')?._cyreg?.cy.nodes().length > 0",
            arg=place,
        )

    def nodes(self, place: str = "[data-graph]") -> list[str]:
        """What the nodes of a drawing say."""
        found: list[str] = self.page.evaluate(
            "place => document.querySelector(place + ' .canvas')._cyreg.cy.nodes()"
            ".filter(each => !each.isParent()).map(each => each.data('label'))",
            place,
        )
        return found

    def click_node(self, label: str, place: str = "[data-graph]") -> None:
        """Click on a node where it is drawn."""
        self.page.evaluate(
            # What is drawn notes where it is when the browser tells of the scrolling.
            "place => new Promise(done => { document.querySelector(place + ' .canvas')"
            ".scrollIntoView({block: 'center', behavior: 'instant'}); setTimeout(done, 200); })",
            place,
        )
        at: dict[str, Any] = self.page.evaluate(
            "([place, label]) => { const canvas = document.querySelector(place + ' .canvas');"
            " const box = canvas.getBoundingClientRect();"
            " const node = canvas._cyreg.cy.nodes().filter(n => n.data('label') === label)[0];"
            " const at = node.renderedPosition();"
            " return {x: box.x + at.x, y: box.y + at.y}; }",
            [place, label],
        )
        self.page.mouse.click(at["x"], at["y"])

    def serious(self) -> list[str]:
        """What axe-core finds serious or critical."""
        self.page.evaluate(AXE.read_text())
        found = self.page.evaluate(
            "axe.run(document, {resultTypes: ['violations'], preload: false})"
        )
        return [
            f"{each['id']}: {each['nodes'][0]['html']}"
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
        ]


@contextmanager
def opened(
    browser: Browser, folder: Path, width: int = 1400, scheme: Any = "light", scripts: bool = True
) -> Iterator[Opened]:
    """A window of that width; afterwards nothing may have gone wrong in it."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=scripts
    )
    context.set_default_timeout(15_000)
    page = context.new_page()
    window = Opened(page, folder)
    page.on("pageerror", lambda error: window.wrong.append(f"error: {error}"))
    page.on(
        "console",
        lambda said: (
            window.wrong.append(f"{said.type}: {said.text}")
            if said.type in ("error", "warning")
            else None
        ),
    )
    page.on(
        "request",
        lambda request: (
            window.wrong.append(f"asks {request.url}")
            if not request.url.startswith(folder.as_uri())
            else None
        ),
    )
    yield window
    context.close()
    assert not window.wrong, window.wrong
