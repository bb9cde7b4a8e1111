"""Positions as editors count them: lines, and code units of UTF-16, UTF-8 or UTF-32."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfbuild.api.editor.positions import Encoding, Position, Text

LINE = "aé😀b"


@pytest.mark.parametrize(
    ("encoding", "units"),
    [(Encoding.utf8, [0, 1, 3, 7, 8]), (Encoding.utf16, [0, 1, 2, 4, 5]), (Encoding.utf32, [0, 1, 2, 3, 4])],
)  # fmt: skip
def test_units_are_counted_in_the_encoding(encoding: Encoding, units: list[int]) -> None:
    text = Text(f"x\n{LINE}\n", encoding)
    assert [text.position(2 + number) for number in range(5)] == [Position(1, u) for u in units]
    assert [text.index(Position(1, u)) for u in units] == [2, 3, 4, 5, 6]


def test_a_place_within_a_character_is_that_of_the_character() -> None:
    assert Text(LINE).index(Position(0, 3)) == 2
    assert Text(LINE, Encoding.utf8).index(Position(0, 2)) == 1


def test_places_behind_the_end_are_the_end() -> None:
    text = Text("ab\nc")
    assert text.index(Position(0, 99)) == 2
    assert text.index(Position(9, 0)) == 4
    assert text.index_at(1, 99) == 2
    assert text.position(99) == Position(1, 1)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_any_line_break_ends_a_line(end: str) -> None:
    text = Text.of(f"a{end}bc{end}")
    assert [text.line(number) for number in range(4)] == ["a", "bc", "", ""]
    assert text.index(Position(1, 1)) == 3


@given(st.text(st.characters(exclude_characters="\r")), st.sampled_from(Encoding))
def test_an_index_comes_back_from_its_position(words: str, encoding: Encoding) -> None:
    text = Text(words, encoding)
    for index in range(len(words) + 1):
        assert text.index(text.position(index)) == index
