"""Declared times with more digits than a dataset keeps: refused before anything is read.

Source: Open Data Fabric, "DDL schema", "Common data schema".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from odfbuild.errors import ProjectError
from odfbuild.odf.model import (
    AddPushSource,
    DatasetSnapshot,
    DataTypeOption,
    DataTypeTimestamp,
    ReadStep,
    SetPollingSource,
    SetVocab,
    TimeUnit,
)
from odfbuild.project.columns import are_simple

Path = tuple[str | int, ...]

_FINE = re.compile(r"\btime(?:stamp\w*)?\s*\(\s*[4-9]", re.IGNORECASE)
_DIGITS = {"us": 6, "ns": 9, TimeUnit.Microsecond: 6, TimeUnit.Nanosecond: 9}


def time_problems(snapshot: DatasetSnapshot) -> Iterator[tuple[Path, ProjectError]]:
    """All problems, each with the place of the column inside the definition."""
    for index, event in enumerate(snapshot.metadata):
        if not isinstance(event, SetPollingSource | AddPushSource):
            continue
        for path, name, digits in _fine_times(event.read):
            place = ("content", "metadata", index, "read", *path)
            if digits > 6:
                yield place, _too_fine(name)
            elif event.preprocess is None and name == _event_time(snapshot):
                yield place, _fine_event_time(name)


def _event_time(snapshot: DatasetSnapshot) -> str:
    """The name of the column; the contract with engines takes a plan longer to import than all
    that is here, and few definitions have such times."""
    from odfbuild.odf.vocabulary import vocabulary_of

    vocab = next((each for each in snapshot.metadata if isinstance(each, SetVocab)), None)
    return vocabulary_of(vocab).event_time


def _fine_times(read: ReadStep) -> Iterator[tuple[Path, str, int]]:
    """Columns whose times have more digits than milliseconds: place, name, digits."""
    for number, field in enumerate(read.schema.fields if read.schema else ()):
        kind = field.type.inner if isinstance(field.type, DataTypeOption) else field.type
        if isinstance(kind, DataTypeTimestamp) and kind.unit in _DIGITS:
            yield ("schema", "fields", number), field.name, _DIGITS[kind.unit]
    ddl = tuple(read.ddl_schema or ())
    for number, text in enumerate(() if are_simple(ddl) else ddl):
        if not _FINE.search(text):
            continue
        from odfbuild.odf.schema.ddl import DdlError, read_ddl

        try:
            columns = read_ddl([text])
        except DdlError:
            continue  # which is told with its own place
        for column in columns:
            # A TIME of no precision, which keeps microseconds, has the type of TIME(9).
            nanos = column.type.unit == "ns" and len(columns) == 1
            if column.type.name == "timestamp" or nanos:
                digits = _DIGITS.get(column.type.unit or "", 0)
                if digits:
                    yield ("schema", number), column.name, digits


def _too_fine(name: str) -> ProjectError:
    return ProjectError(
        f"column '{name}' has times with nanoseconds, and a dataset keeps microseconds",
        code="E0670",
        help="declare it as TIMESTAMP(6) or TIME, which cut the other digits, or as STRING or "
        "BIGINT, which keep them",
    )


def _fine_event_time(name: str) -> ProjectError:
    return ProjectError(
        f"event times are kept to the millisecond, and '{name}' has microseconds",
        code="E0671",
        help="declare it as TIMESTAMP(3), which cuts the other digits; to keep them as well, "
        "select them under another name in `preprocess`",
    )
