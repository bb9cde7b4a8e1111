"""How many records a source has, and how many of them tasks have read.

Counted where jobs read a file, in its tasks: no worker may read another file than the one that was
looked at here, and no file may change in between.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from odfbuild.engine.contract import IngestTask
from odfbuild.engine.spark.internals.observed import counted
from odfbuild.engine.spark.results.counted import check_read
from odfbuild.engine.spark.results.executor import computes_here
from odfbuild.engine.spark.results.small_jobs import is_short
from odfbuild.odf.model import ReadStepCsv
from odfbuild.values import Value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BLOCK = 1 << 20
_BLANK_OF_CSV = bytes(range(0x21))
_BLANK_OF_JSON = b" \t\r\n"
"""What makes a line that holds nothing else no record, for Spark."""
_MAY_BE_BLANK = re.compile(rb"(?:\A|\n)[\x00-\x20]")


class ReadCount(Value):
    """`has` records are in a source; `read()` are those that tasks have read, if that is known."""

    has: int
    read: Callable[[], int | None]

    def check(self, task: IngestTask) -> None:
        """Raise `EngineProblem` E0549 unless all were read; to be called when all work is done."""
        read = self.read()
        if read is not None:
            check_read(task.dataset, task.source_name, read, self.has)


def with_count(
    frame: DataFrame, task: IngestTask, text: Path | None
) -> tuple[DataFrame, ReadCount | None]:
    """`frame`, read of the lines of `text` or of a Parquet file, and its count.

    No count where few records are collected without a job that could be asked, or where a server
    computes what is read, which has to do just what was checked here.
    """
    spark = frame.sparkSession
    if is_short(spark) or not computes_here(spark):
        return frame, None
    has = pq.read_metadata(task.file).num_rows if text is None else _lines(text, task)
    observed, read = counted(frame)
    return observed, ReadCount(has, read)


def _lines(file: Path, task: IngestTask) -> int:
    """Lines that are records for Spark."""
    is_csv = isinstance(task.read, ReadStepCsv)
    blank = _BLANK_OF_CSV if is_csv else _BLANK_OF_JSON
    found = 0
    with file.open("rb") as source:
        while block := source.read(_BLOCK) + source.readline():
            # Most files have no blank line; looking at each costs a hundred times as much.
            if _MAY_BE_BLANK.search(block):
                found += sum(1 for line in block.split(b"\n") if line.strip(blank))
            else:
                found += block.count(b"\n") + (not block.endswith(b"\n"))
    header = isinstance(task.read, ReadStepCsv) and bool(task.read.header)
    return max(0, found - header)
