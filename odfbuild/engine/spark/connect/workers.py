"""Ask the workers of a cluster whether they see the files that we see, before they get any work.

Each core that takes work reads a file that was written here, and writes one that is looked for
here; then the files of a step are looked at by workers, which say how long they are. That is early
advice, for a worker may come later: what tasks read and write is counted (`results.counted`).
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.engine.spark.connect.lost import refused_by
from odfbuild.engine.spark.internals.status import executor_addresses, message
from odfbuild.errors import EngineProblem

_PATTERN = frozenset("{}[]*?\\")
"""Characters of names that Spark takes for patterns; such files are left to those who count."""
_NOT_AGAIN = {"ignoreMissingFiles": "true"}
"""A task that fails is tried again, and may then reach another worker, which sees the file."""
_BY_ALL = 16
"""Files of a step that every worker looks at; of more, each is looked at by one."""


class Workers:
    """Those behind `session`, which is a classic one or one of a server, at the cluster `name`."""

    def __init__(self, session: Any, name: str) -> None:
        self._session = session
        self._name = name
        self._shared: set[tuple[Path, frozenset[str]]] = set()
        self._seen: set[tuple[Path, int, int]] = set()
        self._cores: int | None = None

    def check_shared(self, folder: Path) -> None:
        """Raise `EngineProblem` E0548 unless the workers of a classic session share `folder`.

        Asked again where other workers have come.
        """
        now = (folder, executor_addresses(self._session.sparkContext))
        if now in self._shared:
            return
        why = why_not_shared(self._session, self._name, folder)
        if why is not None:
            raise self._problem(f"workers of {self._name} do not share {folder}", why)
        self._shared.add(now)
        self._seen.clear()
        self._cores = None

    def check_files(self, files: Iterable[Path]) -> None:
        """Raise `EngineProblem` E0548 unless workers see `files` as they are here."""
        plain = [file for file in files if _PATTERN.isdisjoint(str(file))]
        new = {_as_here(file): file for file in plain if _as_here(file) not in self._seen}
        if new:
            self._check_files([*new.values()])
            self._seen.update(new)

    def _check_files(self, files: Sequence[Path]) -> None:
        what = f"workers of {self._name} do not see the files of this step"
        try:
            self._cores = self._cores or cores(self._session)
            times = self._cores if len(files) <= _BY_ALL else 1
            names = [f"file:{file.absolute()}" for file in files for _ in range(times)]
            there = self._session.read.format("binaryFile").options(**_NOT_AGAIN).load(names)
            found = there.selectExpr("path", "unix_seconds(modificationTime)", "length").collect()
        except Exception as error:
            raise refused_by(error, self._name) or self._problem(what, _said(error)) from None
        if len(found) < len(names):
            raise self._problem(what, f"of {len(names)} looks at them {len(found)} found a file")
        for path, modified, length in found:
            file = Path("/", path.removeprefix("file:").lstrip("/"))
            here = file.stat()
            if (int(here.st_mtime), here.st_size) != (modified, length):
                raise self._problem(
                    f"a worker of {self._name} sees another file at {file}",
                    f"there it has {length:,} bytes, here {here.st_size:,}"
                    if length != here.st_size
                    else "it was written at another time",
                )

    def _problem(self, what: str, why: str) -> EngineProblem:
        return EngineProblem(
            what,
            code="E0548",
            notes=(why, "nothing was committed"),
            help="keep the project's folder and its source files on storage that this machine and "
            "all workers see under the same path, and let them read and write there",
        )


def why_not_shared(session: Any, name: str, folder: Path) -> str | None:
    """Why we and those who work for `session` do not find each other's files in `folder`."""
    place = Path(tempfile.mkdtemp(prefix="seen-", dir=folder))
    question, answer = place / "question", place / "answer"
    token = secrets.token_hex(8)
    try:
        pq.write_table(pa.table({"token": [token]}), question)
        tasks = cores(session)  # so many files are read by one task each
        asked = session.read.options(**_NOT_AGAIN).parquet(*[question.as_uri()] * tasks)
        asked.write.parquet(answer.as_uri())
        parts = [*answer.glob("part-*")] if answer.is_dir() else []
        found = [each for part in parts for each in pq.read_table(part)["token"].to_pylist()]
    except Exception as error:
        lost = refused_by(error, name)
        if lost is not None:
            raise lost from None
        return _said(error)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    if found == [token] * tasks:
        return None
    return f"of {tasks} records that they wrote {len(found)} are in {answer}"


def cores(session: Any) -> int:
    """How many tasks run at once, as Spark knows of its workers now.

    The first job may wait for workers that were not there when it was planned, so the second tells.
    """
    found = 0
    while (now := _partitions(session)) > found:
        found = now
    return found


def _partitions(session: Any) -> int:
    """Into how many tasks Spark cuts a job at this moment."""
    parts = session.range(0, 100_000).selectExpr("spark_partition_id() AS number")
    return int(parts.distinct().count())


def _said(error: Exception) -> str:
    return message(error)[:300]


def _as_here(file: Path) -> tuple[Path, int, int]:
    found = file.stat()
    return file, found.st_mtime_ns, found.st_size
