"""Items that are computed ahead are the same ones, and so is what goes wrong with them."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event, current_thread

import pytest

from odfbuild.engine.ahead import ahead


@pytest.mark.parametrize("number", [0, 1, 2, 3, 50])
def test_items_come_in_their_order(number: int) -> None:
    assert list(ahead(iter(range(number)))) == list(range(number))


def test_the_next_item_is_computed_while_one_is_in_use() -> None:
    begun = Event()

    def items() -> Iterator[int]:
        yield 1
        begun.set()
        yield 2

    stream = ahead(items())
    assert next(stream) == 1
    assert begun.wait(60)
    assert list(stream) == [2]


def test_what_fails_fails_in_its_place() -> None:
    def items() -> Iterator[int]:
        yield 1
        yield 2
        raise ValueError("the third")

    stream = ahead(items())
    assert [next(stream), next(stream)] == [1, 2]
    with pytest.raises(ValueError, match="the third"):
        next(stream)


def test_nothing_goes_on_once_nobody_wants_more() -> None:
    made = []
    threads = set()

    def items() -> Iterator[int]:
        for number in range(1000):
            threads.add(current_thread())
            made.append(number)
            yield number

    stream = ahead(items())
    next(stream)
    stream.close()
    assert len(made) <= 4
    assert not any(thread.is_alive() for thread in threads)
