"""Items that are computed ahead are the same ones, and so is what goes wrong with them."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event, Thread, current_thread
from typing import Any

import pytest

from odfbuild.records.pipeline import Worker, ahead


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

    stream: Any = ahead(items())
    next(stream)
    stream.close()
    assert len(made) <= 4
    assert not any(thread.is_alive() for thread in threads)


def test_what_is_left_to_do_is_done_in_order_in_one_other_thread() -> None:
    done: list[int] = []
    threads = set()

    def do(item: int) -> None:
        threads.add(current_thread())
        done.append(item)

    behind = Worker(do)
    for number in range(50):
        behind.give(number)
    behind.finish()
    behind.stop()
    assert done == list(range(50))
    assert len(threads) == 1
    assert current_thread() not in threads
    assert not any(thread.is_alive() for thread in threads)


def test_without_items_that_wait_there_is_no_thread() -> None:
    threads = set()
    behind = Worker(lambda _: threads.add(current_thread()), count=0)
    for item in ahead((threads.add(current_thread()) for _ in range(3)), count=0):
        behind.give(item)
    behind.finish()
    behind.stop()
    assert threads == {current_thread()}


def test_no_more_than_so_many_items_wait() -> None:
    go = Event()
    behind = Worker(lambda _: go.wait(60), count=2)
    behind.give(1)
    behind.give(2)
    third = Thread(target=behind.give, args=(3,))
    third.start()
    third.join(0.05)
    assert third.is_alive()
    go.set()
    third.join(60)
    behind.finish()
    behind.stop()
    assert not third.is_alive()


def test_what_fails_behind_is_raised_by_a_later_call() -> None:
    def do(item: int) -> None:
        raise ValueError(f"item {item}")

    behind = Worker(do)
    behind.give(1)
    with pytest.raises(ValueError, match="item 1"):
        behind.finish()
    behind.stop()
