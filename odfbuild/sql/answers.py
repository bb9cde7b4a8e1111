"""Answers about texts of queries that are kept from one run to the next.

To parse a query takes as long as planning hundreds of datasets, and an answer that follows from the
text alone never changes. Whoever has a place to keep answers says so (`remembering`); without one,
they are kept as long as the process runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

Text = TypeVar("Text")
Answer = TypeVar("Answer")

_MOST = 50_000
_MOST_IN_MEMORY = 2_000


class Answers:
    """What was answered before, which `load` gets when something is asked, and what is new."""

    def __init__(self, load: Callable[[], Mapping[str, bytes] | None] = lambda: None) -> None:
        self._load = load
        self._before: Mapping[str, bytes] | None = None
        self._found: dict[str, bytes] = {}

    def get(self, key: str) -> bytes | None:
        """The answer with that key, if there is one."""
        if self._before is None:
            self._before = self._load() or {}
        return self._found.get(key) or self._before.get(key)

    def put(self, key: str, answer: bytes) -> None:
        """Keep an answer."""
        self._found[key] = answer

    @property
    def is_changed(self) -> bool:
        """Whether there are answers that were not there before."""
        return bool(self._found)

    @property
    def kept(self) -> dict[str, bytes]:
        """All answers; of very many, those that came last."""
        everything = {**(self._before or {}), **self._found}
        return dict(list(everything.items())[-_MOST:])


_current: Answers | None = None


@contextmanager
def remembering(answers: Answers) -> Iterator[None]:
    """Take answers from there, and keep new ones there, as long as the block runs."""
    global _current  # noqa: PLW0603  # threads of the block share it
    before, _current = _current, answers
    try:
        yield
    finally:
        _current = before


def told_once(
    form: Any,
) -> Callable[[Callable[[Text], Answer]], Callable[[Text], Answer]]:
    """Keep what a function tells of a text, or of texts in tuples; `form` is the type of it."""

    def decorate(function: Callable[[Text], Answer]) -> Callable[[Text], Answer]:
        name = f"{function.__module__}.{function.__qualname__}"

        @lru_cache(_MOST_IN_MEMORY)
        def tell(text: Text) -> Answer:
            answers = _current
            if answers is None:
                return function(text)
            key = hashlib.sha256(f"{name}\n{text!r}".encode()).hexdigest()
            known = answers.get(key)
            if known is not None:
                answer: Answer = msgspec.msgpack.decode(known, type=form)
                return answer
            answer = function(text)
            answers.put(key, msgspec.msgpack.encode(answer))
            return answer

        return tell

    return decorate
