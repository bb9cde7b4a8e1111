"""The drawing without scripts: lines run around boxes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from odfbuild.report.forms.drawing import Node, draw

_BOX = re.compile(r'<rect x="(\d+)" y="(\d+)" width="(\d+)" height="(\d+)"')
_LINE = re.compile(r'd="M(\d+) (\d+)C(\d+) (\d+) (\d+) (\d+) (\d+) (\d+)"')


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, list[str]]:
    """What each dataset reads; names of different lengths."""
    names = [
        f"{number}{'.x' * draw(st.integers(0, 9))}" for number in range(draw(st.integers(2, 12)))
    ]
    return {
        name: draw(st.lists(st.sampled_from(names[:number]), max_size=4, unique=True))
        if number
        else []
        for number, name in enumerate(names)
    }


def crossed(drawing: str) -> int:
    """How many times a line is inside of a box."""
    boxes = [tuple(map(int, each)) for each in _BOX.findall(drawing)]
    found = 0
    for each in _LINE.findall(drawing):
        x1, y1, xa, ya, xb, yb, x2, y2 = map(int, each)
        for step in range(101):
            t = step / 100
            a, b, c, d = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
            x, y = a * x1 + b * xa + c * xb + d * x2, a * y1 + b * ya + c * yb + d * y2
            found += sum(
                left + 1 < x < left + width - 1 and top + 1 < y < top + height - 1
                for left, top, width, height in boxes
            )
    return found


def drawn(inputs: Mapping[str, Sequence[str]]) -> str:
    return draw([Node(name=name) for name in inputs], inputs, "a graph")


@given(graphs())
def test_no_line_runs_through_a_box(inputs: dict[str, list[str]]) -> None:
    assert crossed(drawn(inputs)) == 0


def test_a_line_past_a_column_has_a_lane_there() -> None:
    inputs = {"a": [], "b": ["a"], "c": ["b"], "d": ["c", "a"]}
    assert crossed(drawn(inputs)) == 0
    assert len(_LINE.findall(drawn(inputs))) == 3 + 3 + 2


def test_a_circle_is_drawn_too() -> None:
    assert len(_BOX.findall(drawn({"a": ["b"], "b": ["a"]}))) == 2
