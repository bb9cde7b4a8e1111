#!/usr/bin/env python3
"""make_picture.py: draw docs/images/plan.svg from what the tutorial's plan and graph print.

Runs the commands of docs/tutorial.md up to its plan of a pull request; needs odfbuild with Spark.
"""

from __future__ import annotations

import re
import sys
import tempfile
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.docs.console import commands, print_of  # noqa: E402

WIDTH = 940
_SANS = "-apple-system, 'Segoe UI', 'Noto Sans', 'DejaVu Sans', Helvetica, Arial, sans-serif"
_MONO = "ui-monospace, SFMono-Regular, Menlo, 'DejaVu Sans Mono', monospace"
_MARKS = {"+": ("#dafbe1", "#1a7f37"), "~": ("#fff8c5", "#9a6700"), "": ("#f6f8fa", "#59636e")}
_DIFF = {"+": "#dafbe1", "-": "#ffebe9", "@": "#ddf4ff"}


@dataclass
class Drawing:
    """Shapes, one below the other; `y` is where the next one begins."""

    y: float = 0
    shapes: list[str] = field(default_factory=list)

    def box(self, x: float, y: float, width: float, height: float, fill: str, line: str) -> None:
        """A rectangle with a border."""
        self.shapes.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" '
            f'fill="{fill}" stroke="{line}"/>'
        )

    def band(self, x: float, y: float, width: float, height: float, fill: str) -> None:
        """A rectangle without a border."""
        self.shapes.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{fill}"/>'
        )

    def line(self, path: str) -> None:
        """A connection."""
        self.shapes.append(f'<path d="{path}" fill="none" stroke="#8c959f" stroke-width="1.5"/>')

    def text(self, x: float, y: float, text: str, style: str = "", fill: str = "#1f2328") -> None:
        """Text in which backticks mark code."""
        spans = "".join(
            f'<tspan class="{"code" if index % 2 else ""}">{escape(part)}</tspan>'
            for index, part in enumerate(text.split("`"))
            if part
        )
        self.shapes.append(
            f'<text x="{x}" y="{y}" class="{style}" fill="{fill}" xml:space="preserve">'
            f"{spans}</text>"
        )

    def svg(self, title: str) -> str:
        """The picture as a file; white, because pages may be dark."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.y:.0f}" '
            f'role="img">\n<title>{escape(title)}</title>\n'
            f"<style>text {{ font: 13px {_SANS} }} .head {{ font-weight: 600; font-size: 16px }} "
            f".bold {{ font-weight: 600 }} .code {{ font: 12px {_MONO} }}</style>\n"
            f'<rect width="{WIDTH}" height="{self.y:.0f}" rx="8" fill="#ffffff"/>\n'
            + "\n".join(self.shapes)
            + "\n</svg>\n"
        )


def draw(comment: str, graph: str) -> str:
    """The comment of a plan on a pull request, above the lineage with what changes."""
    rows = [
        [cell.strip().replace("\\", "") for cell in line.strip("|").split(" | ")]
        for line in re.findall(r"^\| `.*\|$", comment, re.MULTILINE)
    ]
    heading = re.search(r"^### (.*)$", comment, re.MULTILINE)
    diff = re.search(r"```diff\n(.*?)```", comment, re.DOTALL)
    assert rows and heading and diff
    stay = re.findall(r"^- (\d.*)$", comment, re.MULTILINE)
    read = re.findall(r"^Will read .*$", comment, re.MULTILINE)

    drawing = Drawing(y=76)
    drawing.text(36, drawing.y, heading[1], "head")
    drawing.y += 28
    for index, title in ((1, "dataset"), (2, "what happens")):
        drawing.text(_COLUMNS[index], drawing.y, title, "bold")
    for mark, name, happens, _ in rows:
        drawing.y += 26
        drawing.band(36, drawing.y - 18, WIDTH - 72, 1, "#d1d9e0")
        for x, cell in zip(_COLUMNS, (mark, name, happens), strict=True):
            drawing.text(x, drawing.y, cell)
    drawing.y += 34
    drawing.text(36, drawing.y, f"{rows[-1][1]} in {rows[-1][3]}")
    drawing.y += 12
    for line in diff[1].splitlines():
        drawing.band(36, drawing.y, WIDTH - 72, 19, _DIFF.get(line[:1], "#f6f8fa"))
        drawing.text(44, drawing.y + 14, f"`{line}`")
        drawing.y += 19
    for line in [*stay, *read]:
        drawing.y += 24
        drawing.text(36, drawing.y, line.replace("\\", "").strip())
    drawing.y += 20
    _comment_around(drawing)
    _lineage(drawing, graph, {name.strip("`"): mark.strip("`") for mark, name, *_ in rows})
    return drawing.svg(f"odfbuild comments on a pull request: {heading[1]}")


_COLUMNS = (36, 64, 270)


def _comment_around(drawing: Drawing) -> None:
    frame = Drawing()
    frame.box(12.5, 12.5, WIDTH - 25, drawing.y - 12, "#ffffff", "#d1d9e0")
    frame.band(13, 13, WIDTH - 26, 34, "#f6f8fa")
    said = "`github-actions` commented on “Warm is 12 degrees; a dataset for each city”"
    frame.text(36, 35, said, "", "#59636e")
    drawing.shapes[:0] = frame.shapes
    drawing.y += 16


def _lineage(drawing: Drawing, graph: str, marks: dict[str, str]) -> None:
    names = dict(re.findall(r'^  (\w+)\[\(?"(.*?)"', graph, re.MULTILINE))
    edges = [(names[a], names[b]) for a, b in re.findall(r"(\w+) --> (\w+)", graph)]
    depth = dict.fromkeys(names.values(), 0)
    for _ in names:
        for one, other in edges:
            depth[other] = max(depth[other], depth[one] + 1)
    drawing.text(36, drawing.y + 20, "Lineage, with what the pull request changes", "bold")
    top = drawing.y + 36
    place: dict[str, tuple[float, float]] = {}
    for name, level in depth.items():
        above = sum(1 for each in place if depth[each] == level)
        place[name] = (36 + 330 * level, top + 40 * above)
    for one, other in edges:
        (x, y), (to_x, to_y) = place[one], place[other]
        x, y, to_y = x + 240, y + 15, to_y + 15
        drawing.line(f"M {x} {y} C {x + 45} {y}, {to_x - 45} {to_y}, {to_x} {to_y}")
    for name, (x, y) in place.items():
        fill, line = _MARKS[marks.get(name, "")]
        drawing.box(x, y, 240, 30, fill, line)
        drawing.text(x + 12, y + 20, f"`{marks.get(name, '')} {name}`".replace("` ", "`"))
    drawing.y = max(y for _, y in place.values()) + 46


def main() -> None:
    """Run the tutorial, draw what it prints."""
    wanted = "odfbuild plan --format md"
    listed = [each.text for each in commands(ROOT / "docs" / "tutorial.md")]
    until = next(index for index, text in enumerate(listed) if text.startswith(wanted))
    with tempfile.TemporaryDirectory() as folder:
        comment, graph = print_of(
            [*listed[:until], wanted, "odfbuild graph --mermaid"], Path(folder)
        )[-2:]
    target = ROOT / "docs" / "images" / "plan.svg"
    target.parent.mkdir(exist_ok=True)
    target.write_text(draw(comment, graph), encoding="utf-8")
    print(target)


if __name__ == "__main__":
    main()
