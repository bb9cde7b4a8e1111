"""A small graph of datasets as a drawing in a page, without scripts. Pure.

Inputs stand left of those that read them, in columns. A line that leads past columns crosses each
level, in a lane of its own between the boxes. Colours come from classes, so that a page may set
them; without a style sheet the drawing is black on white.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise

from odfbuild.values import Value

_CHARACTER, _HEIGHT, _BETWEEN, _GAP, _MARGIN = 7.3, 30, 14, 56, 8
_LANE = 2
_LONGEST = 34


class Node(Value, kw_only=True):
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
    depth = _depths(edges)
    links = {link for name in edges for source in edges[name] for link in _way(source, name, depth)}
    columns = _columns(depth, links)
    by_name = {each.name: each for each in nodes}
    heights = [sum(_height(each) + _BETWEEN for each in column) for column in columns]
    places: dict[Stop, tuple[float, float, float]] = {}
    x = float(_MARGIN)
    for column, height in zip(columns, heights, strict=True):
        width = max(len(_label(each)) for each in column if isinstance(each, str))
        y = _MARGIN + (max(heights) - height) / 2
        for stop in column:
            places[stop] = (x, y, width * _CHARACTER + 20)
            y += _height(stop) + _BETWEEN
        x += width * _CHARACTER + 20 + _GAP
    size = max(x - _GAP + _MARGIN, 1), max(heights, default=0) + _MARGIN
    lines = [_line(_ends(a, places)[1], _ends(b, places)[0]) for a, b in sorted(links, key=str)]
    lines += [_line(*_ends(stop, places)) for stop in places if isinstance(stop, Lane)]
    boxes = [_box(by_name[stop], places[stop]) for stop in places if isinstance(stop, str)]
    return (
        f'<svg class="drawing" role="group" aria-label="{escape(about)}" width="{size[0]:.0f}" '
        f'height="{size[1]:.0f}" viewBox="0 0 {size[0]:.0f} {size[1]:.0f}">'
        f"{''.join(lines)}{''.join(boxes)}</svg>"
    )


class Lane(Value):
    """Where lines from a dataset lead through a column."""

    source: str
    column: int


Stop = str | Lane
"""What stands in a column: a dataset by its name, or a lane."""


def _height(stop: Stop) -> int:
    return _LANE if isinstance(stop, Lane) else _HEIGHT


def _depths(edges: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """The column of each name, without gaps."""
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
    columns = {place: number for number, place in enumerate(sorted(set(depth.values())))}
    return {name: columns[place] for name, place in depth.items()}


def _way(source: str, reader: str, depth: Mapping[str, int]) -> Iterator[tuple[Stop, Stop]]:
    """Each step of a line, by way of the lanes of its source."""
    between = (Lane(source, column) for column in range(depth[source] + 1, depth[reader]))
    yield from pairwise([source, *between, reader])


def _columns(depth: Mapping[str, int], links: Iterable[tuple[Stop, Stop]]) -> list[list[Stop]]:
    """What stands in each column, ordered by where the lines come from."""
    before: dict[Stop, list[Stop]] = {}
    for a, b in links:
        before.setdefault(b, []).append(a)
    columns: list[list[Stop]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    stops: list[Stop] = [*depth, *(each for each in before if isinstance(each, Lane))]
    for stop in stops:
        columns[stop.column if isinstance(stop, Lane) else depth[stop]].append(stop)
    rank: dict[Stop, float] = {}
    for column in columns:
        around = {
            stop: [rank[each] for each in before.get(stop, ()) if each in rank] or [0.0]
            for stop in column
        }
        column.sort(key=lambda stop: (sum(around[stop]) / len(around[stop]), str(stop)))
        rank |= {stop: (place + 1) / (len(column) + 1) for place, stop in enumerate(column)}
    return columns


def _label(name: str) -> str:
    return name if len(name) <= _LONGEST else f"…{name[1 - _LONGEST :]}"


Point = tuple[float, float]


def _ends(stop: Stop, places: Mapping[Stop, tuple[float, float, float]]) -> tuple[Point, Point]:
    """Where lines reach what stands in a column, and where they leave it."""
    x, y, width = places[stop]
    level = y + _height(stop) / 2
    return (x, level), (x + width, level)


def _line(start: Point, end: Point) -> str:
    (x1, y1), (x2, y2) = start, end
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
