"""Errors in the columns that a definition declares, with their places.

Told from the text alone, so that `validate` says what reading the source would fall over.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from odfbuild.errors import Location, OdfbuildError, ProjectError
from odfbuild.odf.model import (
    AddPushSource,
    DataField,
    DataSchema,
    DatasetSnapshot,
    DataTypeStruct,
    ReadStepCsv,
    SetDataSchema,
    SetPollingSource,
)
from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.odf.schema import arrow
    from odfbuild.project.source import Source

Path = tuple[str | int, ...]

_HELP = "docs/reading.md lists the types of columns"
_MOST_DIGITS = 38
"""How many digits a decimal of the engine has at most."""

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
        if isinstance(event, SetDataSchema) and event.schema is not None:
            path = (*path, "schema", "fields")
            use = _Use(in_csv=False, is_kept=True)
            yield from _of_fields(event.schema.fields, use, path, source, document)
        elif isinstance(event, SetPollingSource | AddPushSource):
            path = (*path, "read")
            read = event.read
            use = _Use(isinstance(read, ReadStepCsv), event.preprocess is None)
            if read.ddl_schema and not are_simple(tuple(read.ddl_schema)):
                yield from _of_ddl(read.ddl_schema, use, path, source, document)
            if read.schema is not None:
                path = (*path, "schema", "fields")
                yield from _of_fields(read.schema.fields, use, path, source, document)


@lru_cache(1_024)  # sources of one kind have the same columns
def are_simple(columns: tuple[str, ...]) -> bool:
    """Whether declarations are right for sure, and none of them has a precision."""
    simple = [_SIMPLE.fullmatch(text) for text in columns]
    return len({found[1].lower() for found in simple if found}) == len(columns)


class _Use(Value):
    """What becomes of declared columns: read from cells of CSV, kept as they are read."""

    in_csv: bool
    is_kept: bool


def _of_ddl(
    columns: Sequence[str], use: _Use, path: Path, source: Source, document: int
) -> Iterator[ProjectError]:
    from odfbuild.odf.schema.ddl import DdlError, read_ddl

    key = "ddlSchema" if source.has(document, (*path, "ddlSchema")) else "schema"
    try:
        _check_case(columns, [field.name for field in read_ddl(columns)])
        for index, text in enumerate(columns):
            for field in () if _SIMPLE.fullmatch(text) else read_ddl([text]):
                place = source.locate(document, (*path, key, index), value=True)
                yield from _of_type(field, use, place)
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
    fields: Sequence[DataField], use: _Use | None, path: Path, source: Source, document: int
) -> Iterator[ProjectError]:
    """Problems of fields and of those in them; `use` is that of columns, `None` within them."""
    from odfbuild.odf.schema.arrow_encoding import InvalidAttributeError, unfit_encodings
    from odfbuild.odf.schema.arrow_form import arrow_form
    from odfbuild.odf.schema.arrow_raw import UnsupportedSchemaError

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
        alone = DataSchema(fields=(field,))
        try:
            (column,) = arrow_form(alone)
        except (InvalidAttributeError, UnsupportedSchemaError) as error:
            # Of what is read, unfit attributes are told where they stand.
            if "read" not in path or not any(unfit_encodings(alone)):
                yield ProjectError(error.message, code=error.code, location=place, help=error.help)
        else:
            if use is not None:
                yield from _of_type(column, use, place)
            if isinstance(field.type, DataTypeStruct):
                inside = (*path, index, "type", "fields")
                yield from _of_fields(field.type.fields, None, inside, source, document)


def _of_type(field: arrow.Field, use: _Use, place: Location) -> Iterator[ProjectError]:
    """What the engine would refuse of a type, which is told by its name alone."""
    types = list(_within(field.type))
    digits = max(each.precision for each in types)
    if any(each.name == "map" for each in types):
        yield ProjectError(
            f"column '{field.name}' has a MAP, which no dataset can hold",
            code="E0512",
            location=place,
            help="declare it as STRING and take it apart in `preprocess`, or leave it out",
        )
    elif digits > _MOST_DIGITS:
        yield ProjectError(
            f"column '{field.name}' has {digits} digits; decimals can have {_MOST_DIGITS} at most",
            code="E0512",
            location=place,
            help=f"declare at most DECIMAL({_MOST_DIGITS}, …), or STRING",
        )
    elif use.in_csv and len(types) > 1:
        yield ProjectError(
            f"column '{field.name}' is nested ({field.type}), which a cell of CSV cannot hold",
            code="E0422",
            location=place,
            help="declare it as STRING and take it apart in `preprocess`, such as "
            f"from_json({field.name}, '…')",
        )
    elif use.is_kept and any(_is_list_of_structs(each) for each in types):
        yield ProjectError(
            f"column '{field.name}' has a list of structs, which no dataset can hold",
            code="E0530",
            location=place,
            help="take it apart in `preprocess`, or leave it out",
        )


def _is_list_of_structs(kind: arrow.Type) -> bool:
    return kind.name != "struct" and any(each.type.name == "struct" for each in kind.fields)


def _within(kind: arrow.Type) -> Iterator[arrow.Type]:
    """A type and all types inside of it."""
    yield kind
    for field in kind.fields:
        yield from _within(field.type)
