"""Count the records that tasks handle against those that files hold.

A worker whose folder is not the one that we look into writes records that nobody finds, and says
that all went well; one with another copy of a source reads other records. So what tasks report is
counted, and a difference is an error before anything is committed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from odfbuild.engine.spark.internals.observed import counted
from odfbuild.errors import EngineProblem


def write_counted(frame: Any, folder: Path, target: str, options: Mapping[str, str]) -> None:
    """Let tasks write `frame` to Parquet files in `folder`, which they know as `target`.

    Raises `EngineProblem` E0549 when other records lie there than they wrote.
    """
    observed, written = counted(frame)
    observed.write.options(**options).parquet(target)
    check_written(written() or 0, sorted(folder.glob("part-*")), folder)


def check_written(written: int, parts: Sequence[Path], folder: Path) -> None:
    """Raise `EngineProblem` E0549 unless `parts` hold as many records as were `written`."""
    found = sum(pq.read_metadata(part).num_rows for part in parts)
    if found != written:
        raise EngineProblem(
            f"tasks wrote {written:,} records, and {found:,} of them lie in {folder}",
            code="E0549",
            notes=("nothing was committed",),
            help="keep the project's folder on storage that this machine and all workers see "
            "under the same path, then run the same command again",
        )


def check_read(dataset: str, source: str, read: int, has: int) -> None:
    """Raise `EngineProblem` E0549 unless as many records were `read` as the `source` has."""
    if read != has:
        raise EngineProblem(
            f"tasks read {read:,} records of '{source}', which has {has:,}",
            code="E0549",
            dataset=dataset,
            notes=(
                "nothing was committed",
                "the file changed meanwhile, a worker sees another file under this path, or one "
                "was lost while it read",
            ),
            help="let all workers see the same file, then run the same command again",
        )
