"""What it costs to look at records: little CPU and memory, however many there are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from odfbuild import Project
from tests.records.chains import MILLIS, Chain

_HEAD = """
import sys, time
import pyarrow.parquet
began = time.process_time()
from odfbuild import Project
assert Project()["big"].head(5).num_rows == 5
print(time.process_time() - began, began)
print([m for m in ("pandas", "pyspark", "pyarrow.dataset", "duckdb") if m in sys.modules])
"""
_STREAM = """
import re
from odfbuild import Project
rows = sum(batch.num_rows for batch in Project()["big"].batches())
# Not `getrusage`, which counts what the parent had.
peak = re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())
print(rows, int(peak[1]) // 1024)
"""


def big(root: Path, rows: int, columns: int) -> Path:
    """A project with a dataset of random numbers, in slices of at most a million rows."""
    (root / "datasets").mkdir(parents=True)
    text = "kind: Project\nversion: 1\ncontent: {name: big, datasets: datasets, state: chains}\n"
    (root / "odfbuild.yaml").write_text(text)
    fields = [pa.field(f"c{number}", pa.float64()) for number in range(columns)]
    chain = Chain(Project(root).workspace(), "big", *fields, appends=True)
    random = np.random.default_rng(7)
    for first in range(0, rows, 1_000_000):
        count = min(1_000_000, rows - first)
        offsets = pa.array(np.arange(first, first + count))
        times = offsets.cast(MILLIS)
        numbers = [pa.array(random.random(count)) for _ in fields]
        operations = pa.array(np.zeros(count, np.int32))
        arrays = [offsets, operations, times, times, *numbers]
        chain.add_table(pa.table(arrays, schema=chain.schema))
    return root


def said_by(code: str, folder: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.split("\n")


def check_head(folder: Path) -> None:
    """Not more CPU than the import of PyArrow takes, twice: machines differ, and so does load."""
    tries = [said_by(_HEAD, folder) for _ in range(3)]
    assert {each[1] for each in tries} == {"[]"}
    ratios = [float(own) / float(arrow) for own, arrow in (each[0].split() for each in tries)]
    assert min(ratios) < 2


def test_the_first_records_come_without_reading_the_others(tmp_path: Path) -> None:
    check_head(big(tmp_path / "p", 1_000_000, 3))


def test_a_stream_holds_a_few_batches_and_not_the_dataset(tmp_path: Path) -> None:
    """400 MB of records, of which a row group alone has 130."""
    rows, megabytes = map(int, said_by(_STREAM, big(tmp_path / "p", 3_000_000, 13))[0].split())
    assert rows == 3_000_000
    assert megabytes < 350


@pytest.mark.slow  # writes 300 MB of records
def test_the_first_of_ten_million_records_come_as_fast(tmp_path: Path) -> None:
    check_head(big(tmp_path / "p", 10_000_000, 3))


@pytest.mark.slow  # writes 5 GB of records
def test_five_gigabytes_are_streamed_within_half_a_gigabyte(tmp_path: Path) -> None:
    rows, megabytes = map(int, said_by(_STREAM, big(tmp_path / "p", 16_000_000, 40))[0].split())
    assert rows == 16_000_000
    assert megabytes < 500
