"""Readers beside a writer: always a whole state, never an error."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.exchange.tables.tables import FORMATS, Format, Lake, rows_of

COMMITS = 200
READS = 40


def _write(root: Path, settings: str, begun: Any, stop: Any) -> None:
    lake = Lake(root, settings)
    lake.append(*((key, 0, 0.0) for key in "abcd"))
    lake.publish()
    begun.set()
    opened = lake.opened()
    for _ in range(COMMITS):
        # Each commit moves one record of every partition: a mixed state has other sums.
        lake.shift()
        lake.publish()
        opened.collect(timedelta(seconds=5))
        if stop.is_set():
            break


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS, ids=lambda each: each.name)
def test_a_reader_in_a_loop_through_200_commits_sees_whole_states_only(
    format: Format, tmp_path: Path
) -> None:
    # Libraries of formats have threads of their own, which do not survive a fork.
    context = multiprocessing.get_context("spawn")
    begun, stop = context.Event(), context.Event()
    writer = context.Process(target=_write, args=(tmp_path, format.settings, begun, stop))
    writer.start()
    assert begun.wait(120)
    reads = 0
    try:
        while writer.is_alive():
            for reader in format.readers.values():
                found = Counter(row[2] for row in rows_of(reader(tmp_path / "lake" / "d")))
                assert len(found) == 1
                assert sum(found.values()) == 4
                reads += 1
    finally:
        stop.set()
        writer.join()
    assert writer.exitcode == 0
    assert reads >= READS
