"""What is wrong with the columns that a definition declares, each problem with its place.

Told from the text alone, so that `validate` says what reading the source would fall over.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from odfbuild.errors import Location, OdfbuildError, ProjectError
from odfbuild.odf.model import (
    AddPushSource,
    DataField,
    DatasetSnapshot,
    DataTypeStruct,
    SetDataSchema,
    SetPollingSource,
)

if TYPE_CHECKING:
    from odfbuild.project.source import Source

Path = tuple[str | int, ...]

_HELP = "docs/reading.md lists the types of columns"


_SIMPLE = re.compile(
    r"([a-z_]\w*) (?:INT|BIGINT|STRING|DOUBLE|FLOAT|BOOLEAN|DATE|TIMESTAMP)(?: NOT NULL)?",
    re.I | re.A,
)
"""Declarations that are right for sure: most, and ten times faster told so than parsed."""


def column_problems(
    snapshot: DatasetSnapshot, source: Source, document: int
) -> Iterator[OdfbuildError]:
    """All problems of all declarations of columns in a definition."""
    for index, event in enumerate(snapshot.metadata):
        path: Path = ("content", "metadata", index)
        if isinstance(event, SetPollingSource | AddPushSource):
            path = (*path, "read")
            if event.read.ddl_schema:
                yield from _of_ddl(event.read.ddl_schema, path, source, document)
        declared = event.schema if isinstance(event, SetDataSchema) else None
        if isinstance(event, SetPollingSource | AddPushSource):
            declared = event.read.schema
        if declared is not None:
            yield from _of_fields(declared.fields, (*path, "schema", "fields"), source, document)


def _of_ddl(
    columns: Sequence[str], path: Path, source: Source, document: int
) -> Iterator[ProjectError]:
    simple = [_SIMPLE.fullmatch(text) for text in columns]
    if len({found[1].lower() for found in simple if found}) == len(columns):
        return
    from odfbuild.odf.schema.ddl import DdlError, read_ddl

    key = "ddlSchema" if source.has(document, (*path, "ddlSchema")) else "schema"
    try:
        _check_case(columns, [field.name for field in read_ddl(columns)])
    except DdlError as error:
        close = error.suggestion
        yield ProjectError(
            f"column '{columns[error.index]}' cannot be read: {error}",
            code="E0160",
            location=_in_column(columns, error, (*path, key), source, document),
            help=f"did you mean {close}?" if close else _HELP,
        )


def _check_case(columns: Sequence[str], names: Sequence[str]) -> None:
    """`DdlError` for names that differ only in letter case: the engine cannot tell them apart."""
    from odfbuild.odf.schema.ddl import DdlError

    if len({name.lower() for name in names}) == len(names):
        return
    seen: dict[str, str] = {}
    for name in names:
        first = seen.setdefault(name.lower(), name)
        if first != name:
            index = next(i for i, text in enumerate(columns) if name in text)
            at = columns[index].index(name)
            raise DdlError(f"'{name}' is '{first}' in other letters", index, at, None, len(name))


def _in_column(
    columns: Sequence[str], error: Any, path: Path, source: Source, document: int
) -> Location:
    before = columns[error.index][: error.offset]
    line, column = before.count("\n") + 1, error.offset - (before.rfind("\n") + 1) + 1
    of_column = (*path, error.index)
    place = source.locate_in_scalar(document, of_column, line, column)
    if place is None:
        return source.locate(document, of_column, value=True)
    return replace(place, length=error.length)


def _of_fields(
    fields: Sequence[DataField], path: Path, source: Source, document: int
) -> Iterator[ProjectError]:
    from odfbuild.odf.model import DataSchema
    from odfbuild.odf.schema.arrow_schema import (
        InvalidAttributeError,
        UnsupportedSchemaError,
        from_odf,
    )

    seen = Counter[str]()
    for index, field in enumerate(fields):
        place = source.locate(document, (*path, index))
        seen[field.name.lower()] += 1
        if seen[field.name.lower()] == 2:
            yield ProjectError(
                f"column '{field.name}' is declared twice",
                code="E0160",
                location=place,
                help="rename or remove one of them",
            )
        try:
            from_odf(DataSchema(fields=(field,)))
        except (InvalidAttributeError, UnsupportedSchemaError) as error:
            yield ProjectError(error.message, code=error.code, location=place, help=error.help)
        else:
            if isinstance(field.type, DataTypeStruct):
                inside = (*path, index, "type", "fields")
                yield from _of_fields(field.type.fields, inside, source, document)
