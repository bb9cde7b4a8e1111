"""Answers about texts are given once, and are the same from wherever they come."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from odfbuild.sql.answers import Answers, remembering, told_once
from odfbuild.sql.bounds import changes_two_at_most, kept_values
from odfbuild.sql.forecast import expected_mode
from odfbuild.sql.mode import Choice
from odfbuild.sql.query_text import Part, parsed_parts
from tests.engine.inputs import sql
from tests.engine.queries import CHANGELOG, MAP, STREAM

Length = Callable[[str], int]
Parts = Callable[[str], tuple[Part, ...] | None]


def asked(calls: list[str]) -> tuple[Length, Parts]:
    """Two functions that note what they are asked, in a process that has asked nothing yet."""

    def length(text: str) -> int:
        calls.append(f"length of {text}")
        return len(text)

    def parts(text: str) -> tuple[Part, ...] | None:
        calls.append(f"parts of {text}")
        return (Part(text, True),) if text else None

    once: Parts = told_once(tuple[Part, ...] | None)(parts)
    return told_once(int)(length), once


def test_an_answer_is_kept_for_the_next_run_of_the_function_that_gave_it() -> None:
    calls: list[str] = []
    kept: Mapping[str, bytes] = {}
    for _ in range(2):
        length, parts = asked(calls)
        answers = Answers(partial(dict, kept))
        with remembering(answers):
            assert length("abc") == 3
            assert parts("abc") == (Part("abc", True),)
            assert parts("") is None
        kept = answers.kept
    assert calls == ["length of abc", "parts of abc", "parts of "]
    assert not answers.is_changed


def test_nothing_is_loaded_before_something_is_asked() -> None:
    loads: list[str] = []

    def load() -> None:
        loads.append("loaded")

    answers = Answers(load)
    with remembering(answers):
        length, _ = asked([])
        assert loads == []
        length("abc")
    assert loads == ["loaded"]


def test_without_a_place_answers_last_as_long_as_the_process() -> None:
    calls: list[str] = []
    length, _ = asked(calls)
    assert [length("abc"), length("abc")] == [3, 3]
    assert calls == ["length of abc"]


def test_what_was_kept_says_of_queries_what_they_say_themselves() -> None:
    queries = [*MAP, *STREAM, *CHANGELOG, "SELECT id FROM events WHERE city = 'Oslo'"]

    def told() -> list[tuple[Choice, object, object, object]]:
        return [
            (
                expected_mode(sql(each)),
                parsed_parts(each),
                changes_two_at_most(sql(each)),
                kept_values(sql(each), ["events"]),
            )
            for each in queries
        ]

    plain = told()
    answers = Answers()
    forget()
    with remembering(answers):
        assert told() == plain
    forget()
    with remembering(Answers(lambda: answers.kept)):
        assert told() == plain


def forget() -> None:
    """Let functions ask again, as in another process."""
    from odfbuild.sql import bounds, forecast, query_text

    for function in (
        forecast._mode_of_parsed,
        query_text.parsed_parts,
        bounds._changes_two_at_most,
        bounds._kept_values,
    ):
        function.cache_clear()
