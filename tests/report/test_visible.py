"""No text that is shown moves a cursor, changes its order, or hides."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfbuild.errors import Location, QueryError
from odfbuild.report.errors import render_error
from odfbuild.report.forms.html import render_page
from odfbuild.report.forms.table import render_table
from odfbuild.report.forms.visible import visible
from odfbuild.report.forms.words import COLORS, paint


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b]0;t\x07", "\\u001b[31mred\\u001b]0;t\\u0007"),
        ("\u009b31m", "\\u009b31m"),
        ("a\u202eb\u2066c\u200fd\u061ce", "a\\u202eb\\u2066c\\u200fd\\u061ce"),
        ("ad\u200bmin a\u200dd \ufeff", "ad\\u200bmin a\\u200dd \\ufeff"),
        ("over\rwritten\x08\x7f", "over\\u000dwritten\\u0008\\u007f"),
        ("\U000e0041", "\\udb40\\udc41"),
        ("\udc80", "\\udc80"),
    ],
)
def test_what_a_terminal_obeys_or_hides_is_spelt_out(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert visible(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "a\tb\nc",
        "Zürich 東京 مرحبا שלום",
        "👩\u200d💻 ❤️",
        "می\u200cخواهم",
        "क्\u200dष",
        "\\u001b",
        "\u00a0",
    ],
)
def test_text_of_any_language_is_as_it_was(text: str) -> None:
    assert visible(text) == text


@given(st.text())
def test_nothing_is_left_that_has_no_shape(text: str) -> None:
    for colors in (False, True):
        left = visible(text, colors=colors)
        for character in left:
            assert character in "\n\t\u200c\u200d" or unicodedata.category(character) not in (
                "Cc",
                "Cs",
                "Zl",
                "Zp",
            )
            assert unicodedata.bidirectional(character) not in (
                *("LRE", "RLE", "LRO", "RLO", "PDF"),
                *("LRI", "RLI", "FSI", "PDI"),
            )


@given(st.text())
def test_json_means_the_same_as_before(text: str) -> None:
    told = visible(json.dumps({"value": text}, ensure_ascii=False))
    assert json.loads(told) == {"value": text}


def test_only_our_own_colours_stay_and_data_cannot_bring_them() -> None:
    for color in COLORS:
        painted = paint("text \x1b[31mred", color, on=True)
        assert visible(painted, colors=True) == painted
        assert painted.count("\x1b") == 2
    assert "\x1b" not in visible("\x1b[8m\x1b[2J\x1b[5;1H", colors=True)


def test_tables_errors_and_pages_show_values_and_their_columns_stay_aligned() -> None:
    rows = [["\x1b[31ma", "1"], ["b\u202e", "2"]]
    lines = render_table(["name", "n"], rows).splitlines()
    assert {line.rindex(end) for line, end in zip(lines, "n12", strict=True)} == {13}
    place = Location("a\u202e.yaml", 1, 3, "a\x1b\x1bb", 1)
    error = QueryError("\x1b[31m", code="E0501", location=place, notes=("\x07",), help="\u2066")
    for color in (False, True):
        told = render_error(error, color=color)
        assert visible(told, colors=color) == told
    assert "a\\u001b\\u001bb" in render_error(error)
    page = render_page("provenance.html.j2", {}, trees=[])
    assert visible(page) == page
