"""Files that match a pattern, each ingested once, one transaction a file.

The state is the base name of the file that was ingested last; what comes after it in the order of
the source is new. A file that is written again under its old name is not read again. Late files lie
before it; where the project says so, they are read first, and leave the state as it was.
Source: specification, `FetchStep::FilesGlob`; reference behaviour, fetch steps.
"""

from __future__ import annotations

import fnmatch
import functools
import glob
import os
import re
from collections.abc import Iterator
from pathlib import Path

from odfbuild.errors import IngestError
from odfbuild.ingest.fetch.context import FetchContext
from odfbuild.ingest.fetch.event_time import event_time_from_path
from odfbuild.ingest.fetch.result import ETAG, Fetched, etag
from odfbuild.odf.model import (
    EventTimeSource,
    EventTimeSourceFromMetadata,
    EventTimeSourceFromPath,
    FetchStepFilesGlob,
    SourceOrdering,
    SourceState,
)
from odfbuild.odf.timestamp import Timestamp

_WILD = re.compile(r"[*?\[]")


def fetch_files(
    step: FetchStepFilesGlob, state: SourceState | None, context: FetchContext
) -> Iterator[Fetched]:
    """Yield the new files in order; raises `IngestError` when no file was ever there."""
    root = context.root
    matching = matching_files(step.path, str(root))
    if not matching and last_name(state) is None:
        raise no_match(step.path, root)
    news = new_files(step, matching, state, root=str(root))
    for path in (*context.late, *news):
        name, late = path.rpartition("/")[2], path in context.late
        yield Fetched(
            file=Path(path),
            state=state if late else etag(name),
            event_time=_event_time(step.event_time, path, name, context.now),
            display_name=display_name(path, str(root)),
            late=late,
        )


def matching_files(pattern: str, root: str) -> list[str]:
    """Paths of the files that match `pattern`, in no order; `**` matches folders of any depth."""
    full = pattern if pattern.startswith("/") else f"{root}/{pattern}"
    folder, _, last = full.rpartition("/")
    if _WILD.search(folder, len(root) if full.startswith(root) else 0):
        paths = glob.glob(full, recursive=True)  # noqa: PTH207  # strings, not Path
        return [path for path in paths if os.path.isfile(path)]  # noqa: PTH113
    matches = functools.partial(_compiled(last).match)
    hidden = last.startswith(".")
    try:
        with os.scandir(folder or "/") as entries:
            return [
                f"{folder}/{entry.name}"
                for entry in entries
                if matches(entry.name)
                and (hidden or not entry.name.startswith("."))
                and entry.is_file()
            ]
    except (FileNotFoundError, NotADirectoryError):
        return []


def new_files(
    step: FetchStepFilesGlob,
    matching: list[str],
    state: SourceState | None,
    start: int = 0,
    *,
    root: str = "",
) -> list[str]:
    """Those of `matching` that come after `state`, in the order in which they are ingested.

    They are called by their base names, or with `start` by what begins there in their paths;
    errors name paths below `root`.
    """
    by_name: dict[str, str] = {}
    for path in matching:
        name = path[start:] if start else path.rpartition("/")[2]
        if name in by_name:
            raise _same_name(display_name(by_name[name], root), display_name(path, root))
        by_name[name] = path
    last = last_name(state)
    if step.order is not SourceOrdering.ByEventTime:
        return [by_name[name] for name in sorted(by_name) if last is None or name > last]
    check_order(step)
    source = step.event_time
    assert isinstance(source, EventTimeSourceFromPath)

    def key(name: str) -> tuple[Timestamp, str]:
        return event_time_from_path(source, name), name

    after = None if last is None else key(last)
    return [
        by_name[name] for name in sorted(by_name, key=key) if after is None or key(name) > after
    ]


def check_order(step: FetchStepFilesGlob) -> None:
    """Raise `IngestError` when files cannot be put into the order that is asked for."""
    found = isinstance(step.event_time, EventTimeSourceFromPath)
    if step.order is SourceOrdering.ByEventTime and not found:
        raise IngestError(
            "order: ByEventTime needs the event time of each file from its name",
            code="E0403",
            help="add `eventTime: {kind: FromPath, pattern: ...}`, or use `order: ByName`",
        )


def last_name(state: SourceState | None) -> str | None:
    """Base name of the file that was ingested last, if the chain says so."""
    return state.value if state is not None and state.kind == ETAG else None


def no_match(pattern: str, root: Path) -> IngestError:
    """The error for a pattern that matches nothing and never did."""
    return IngestError(
        f"no file matches '{pattern}'",
        code="E0401",
        notes=(f"relative paths start at the project's folder, {root}",),
        help="put the files there, or correct `fetch.path` in the definition",
    )


def display_name(path: str, root: str) -> str:
    """`path` as a user would write it: relative to the project where it lies inside."""
    return path.removeprefix(f"{root}/")


@functools.lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(pattern))


def _event_time(
    source: EventTimeSource | None, path: str, name: str, now: Timestamp
) -> Timestamp | None:
    if isinstance(source, EventTimeSourceFromPath):
        return event_time_from_path(source, name)
    if isinstance(source, EventTimeSourceFromMetadata):
        return modified(path)
    return now


def modified(path: str) -> Timestamp:
    """Time of modification, rounded to milliseconds as source states hold it."""
    return Timestamp.from_millis((Path(path).stat().st_mtime_ns + 500_000) // 1_000_000)


def _same_name(one: str, other: str) -> IngestError:
    return IngestError(
        f"two files have the same base name: '{one}' and '{other}'",
        code="E0402",
        notes=("the state of this source is the base name of the last file that was ingested",),
        help="rename one of them, or narrow the pattern of `fetch.path`",
    )
