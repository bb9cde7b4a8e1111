"""A small graph of datasets as a drawing in a page, without scripts. Pure.

Inputs stand left of those that read them. Colours come from classes, so that a page may set them;
without a style sheet the drawing is black on white.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

_CHARACTER, _HEIGHT, _BETWEEN, _GAP, _MARGIN = 7.3, 30, 14, 56, 8
_LONGEST = 34


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A dataset in a drawing: where it leads to, its classes, and what is said beside its name."""

    name: str
    href: str | None = None
    classes: str = ""
    note: str = ""


def draw(nodes: Sequence[Node], inputs: Mapping[str, Iterable[str]], about: str) -> str:
    """The drawing as SVG; `about` says to those who cannot see it what it shows."""
    names = {each.name for each in nodes}
    edges = {
        name: [each for each in dict.fromkeys(inputs.get(name, ())) if each in names]
        for name in (node.name for node in nodes)
    }
    columns = _columns(edges)
    by_name = {each.name: each for each in nodes}
    places: dict[str, tuple[float, float, float]] = {}
    x = float(_MARGIN)
    tallest = max(map(len, columns), default=0)
    for column in columns:
        width = max(len(_label(each)) for each in column) * _CHARACTER + 20
        y = _MARGIN + (tallest - len(column)) * (_HEIGHT + _BETWEEN) / 2
        for name in column:
            places[name] = (x, y, width)
            y += _HEIGHT + _BETWEEN
        x += width + _GAP
    size = max(x - _GAP + _MARGIN, 1), tallest * (_HEIGHT + _BETWEEN) + _MARGIN
    lines = [_line(places[source], places[name]) for name in edges for source in edges[name]]
    boxes = [_box(by_name[name], places[name]) for name in places]
    return (
        f'<svg class="drawing" role="group" aria-label="{escape(about)}" width="{size[0]:.0f}" '
        f'height="{size[1]:.0f}" viewBox="0 0 {size[0]:.0f} {size[1]:.0f}">'
        f"{''.join(lines)}{''.join(boxes)}</svg>"
    )


def _columns(edges: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Names by how far they are from the left, each column ordered by where its inputs stand."""
    depth = dict.fromkeys(edges, 0)
    # Each round moves readers right of their inputs; what reads itself in a circle stops moving.
    for _ in range(len(edges)):
        moved = False
        for name, sources in edges.items():
            wanted = max((depth[each] + 1 for each in sources), default=0)
            if depth[name] < wanted < len(edges):
                depth[name], moved = wanted, True
        if not moved:
            break
    columns: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for name, place in depth.items():
        columns[place].append(name)
    rank: dict[str, float] = {}
    for column in columns:
        around = {
            name: [rank[each] for each in edges[name] if each in rank] or [0.0] for name in column
        }
        column.sort(key=lambda name: (sum(around[name]) / len(around[name]), name))
        rank |= {name: (place + 1) / (len(column) + 1) for place, name in enumerate(column)}
    return [column for column in columns if column]


def _label(name: str) -> str:
    return name if len(name) <= _LONGEST else f"…{name[1 - _LONGEST :]}"


def _line(source: tuple[float, float, float], reader: tuple[float, float, float]) -> str:
    x1, y1 = source[0] + source[2], source[1] + _HEIGHT / 2
    x2, y2 = reader[0], reader[1] + _HEIGHT / 2
    middle = (x1 + x2) / 2
    return (
        f'<path class="edge" fill="none" stroke="#888" d="M{x1:.0f} {y1:.0f}'
        f'C{middle:.0f} {y1:.0f} {middle:.0f} {y2:.0f} {x2:.0f} {y2:.0f}"/>'
    )


def _box(node: Node, place: tuple[float, float, float]) -> str:
    x, y, width = place
    title = f"{node.name}: {node.note}" if node.note else node.name
    box = (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{_HEIGHT}" rx="6" '
        f'fill="#fff" stroke="#888"/><text x="{x + 10:.0f}" y="{y + 20:.0f}" '
        f'font-family="monospace" font-size="12">{escape(_label(node.name))}</text>'
        f"<title>{escape(title)}</title>"
    )
    classes = f"node {node.classes}".strip()
    if node.href is None:
        return f'<g class="{classes}">{box}</g>'
    return f'<a class="{classes}" href="{escape(node.href)}">{box}</a>'
