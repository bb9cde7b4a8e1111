"""Positions in the log of a server, and what a snapshot shows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfbuild.ingest.fetch.database.changes.messages import RelationColumn
from odfbuild.ingest.fetch.database.changes.position import (
    Position,
    Seen,
    form_of,
    parse_lsn,
    parse_position,
    seen_by,
    spelled,
)

_LSN = st.integers(0, 2**64 - 1)
_SEEN = st.builds(
    Seen, st.integers(3, 2**62), st.lists(st.integers(3, 2**62), max_size=4).map(tuple), _LSN
)
POSITIONS = st.builds(
    Position,
    _LSN,
    st.integers(1, 2**32 - 1),
    st.just("0123abcd"),
    st.just("4567cdef"),
    st.one_of(st.none(), _SEEN),
)


@given(POSITIONS)
def test_a_position_is_read_from_the_chain_as_it_was_written(position: Position) -> None:
    assert parse_position(position.state()) == position


@given(_LSN)
def test_a_place_in_the_log_is_spelt_as_the_server_does(lsn: int) -> None:
    assert parse_lsn(spelled(lsn)) == lsn


def test_states_of_other_sources_are_no_positions() -> None:
    for text in ("", "2026-01-01 f1220aa", "0/1 2 3", "f1220" + "0" * 64):
        assert parse_position(text) is None
    assert spelled(0x16B374D848) == "16/B374D848"


@given(st.integers(2**31, 2**62), st.integers(-(2**31) + 1, 2**31 - 1))
def test_a_snapshot_shows_what_is_below_it_however_often_numbers_began_again(
    following: int, distance: int
) -> None:
    number = following + distance
    seen = Seen(following, (number,) if distance == -7 else (following - 7,), 0)
    assert seen.shows(number % 2**32) is (distance < 0 and distance != -7)


@pytest.mark.parametrize(
    ("text", "shown"),
    [("10:10:", {9}), ("10:12:10", {9, 11}), ("10:13:10,12", {9, 11}), ("5:10:", {5, 9})],
)
def test_the_text_of_a_snapshot_is_that_of_the_server(text: str, shown: set[int]) -> None:
    seen = seen_by(text, until=5)
    assert seen.until == 5
    for number in range(3, 20):
        expected = number < seen.next and number not in seen.running
        assert seen.shows(number) is expected
        assert (number in shown) <= expected


def test_once_it_is_behind_all_that_a_snapshot_shows_a_position_forgets_it() -> None:
    position = Position(10, 1, "0123abcd", "4567cdef", Seen(5, (), until=20))
    assert position.at(19).seen is not None
    assert position.at(20).seen is None


def test_the_form_of_columns_follows_from_names_and_types_and_not_from_their_order() -> None:
    one, two = RelationColumn("a", 23, -1), RelationColumn("b", 25, -1)
    assert form_of([one, two]) == form_of([two, one])
    assert form_of([one]) != form_of([RelationColumn("a", 20, -1)])
    assert form_of([one]) != form_of([one, two])
