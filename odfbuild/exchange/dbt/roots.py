"""Definitions of roots for seeds and sources of dbt.

A seed is a CSV file that is copied. A source is a root that reads files where dbt knows some, else
one that gets its data by `odfbuild ingest`. Reads samples of local files.
"""

from __future__ import annotations

import csv
import io
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from odfbuild.exchange.dbt.model import GenericTest, Node
from odfbuild.exchange.dbt.properties import listed, mapping
from odfbuild.ingest.fetch.files_glob import matching_files
from odfbuild.ingest.sample import Form, Sample, form_of, look_at
from odfbuild.limits import RENDERED_BYTES
from odfbuild.odf.schema.ddl import DdlError, quoted_name, read_ddl
from odfbuild.store.files import read_bounded
from odfbuild.values import Value

_SHORT_HOUR = re.compile(r"^(\d{4}-\d{2}-\d{2})[ T](\d:\d{2}:\d{2}(?:\.\d+)?)$")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_WILDCARD = re.compile(r"[*?\[]")
_READ_FUNCTION = re.compile(r"""read_\w+\(\s*'([^']+)'.*\)""", re.DOTALL)


class Root(Value, kw_only=True):
    """The events of a root, its columns with types in DDL, and what to look at.

    `copy` is a file to copy to `data`; where `text` is given, that is written there instead.
    """

    events: tuple[Mapping[str, Any], ...]
    columns: Mapping[str, str]
    notes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    """What somebody has to add."""
    data: str | None = None
    copy: Path | None = None
    text: str | None = None
    line_breaks: bool = False


def seed(node: Node, folder: Path, dialect: str, key: Sequence[str]) -> Root:
    """The root of a seed; raises `IngestError` for a file that is no CSV."""
    given = node.config.get("delimiter")
    separator = given if isinstance(given, str) and len(given) == 1 else ","
    file = folder / node.place.file
    data = read_bounded(file, RENDERED_BYTES)
    text, changes = as_dbt_reads(data, separator)
    with tempfile.TemporaryDirectory() as scratch:
        looked = file
        if text is not None:
            looked = Path(scratch) / file.name
            looked.write_text(text, encoding="utf-8")
        sample = look_at([looked], Form("Csv", separator))
    types = {
        name: ddl_type(str(kind), dialect)
        for name, kind in mapping(node.config.get("column_types")).items()
    }
    columns = {c.name: types.get(c.name) or c.type for c in sample.guess.columns}
    unknown = [
        f"`{name}` has a type without equivalent" for name, kind in types.items() if not kind
    ]
    target = f"data/seeds/{file.name}"
    merge, notes = _merge(key or sample.guess.key, columns, sample, is_state=True)
    if not key and len({*data.splitlines()}) < len(data.splitlines()):
        merge = {"kind": "Append"}
        notes = ["some records are the same: all are appended, and again when the file changes"]
    read = _read(Form("Csv", sample.form.separator), columns, sample)
    source = _polling({"kind": "Url", "url": f"file:{target}"}, read, merge, None)
    return Root(
        events=(source, *_vocabulary(node)),
        columns=columns,
        notes=(*changes, *notes),
        missing=tuple(unknown),
        data=target,
        copy=file,
        text=text,
        line_breaks=sample.line_breaks,
    )


def as_dbt_reads(data: bytes, separator: str) -> tuple[str | None, list[str]]:
    """A CSV file in which dbt fills what is left out, written out; `None` where nothing is.

    Short rows end in empty cells, and times may have hours of one digit. Also says what changed.
    """
    try:
        rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig")), delimiter=separator))
    except (UnicodeDecodeError, csv.Error):
        return None, []
    width = len(rows[0]) if rows else 0
    changes: dict[str, None] = {}
    made = []
    for row in rows:
        if not row:
            continue
        if len(row) < width:
            changes["the copy fills short rows with empty cells"] = None
        cells = [*row, *[""] * (width - len(row))]
        times = [_SHORT_HOUR.sub(r"\1 0\2", cell) for cell in cells]
        if times != cells:
            changes["the copy writes hours of times with two digits"] = None
        made.append(times)
    if not changes:
        return None, []
    written = io.StringIO()
    csv.writer(written, delimiter=separator, lineterminator="\n").writerows(made)
    return written.getvalue(), [*changes]


def source(
    node: Node, folder: Path, project: Path, dialect: str, key: Sequence[str], used: Sequence[str]
) -> Root:
    """The root of a source; raises `IngestError` for local files that cannot be understood.

    `used` are the columns that queries name, where the project declares none.
    """
    declared = {c.name: ddl_type(c.type, dialect) if c.type else None for c in node.columns}
    location = node.location and _place_of(node.location)
    form = form_of(location) if location else None
    declared = declared or dict.fromkeys(used)
    if location and form is not None:
        return _of_files(node, (location, form), folder, project, declared, key)
    columns = {name: kind or "STRING" for name, kind in declared.items()}
    notes = ["its data comes by `odfbuild ingest`: dbt reads a table that others fill"]
    missing = []
    if location:
        notes = [f"`{location}` does not show a format that odfbuild reads"]
    untyped = [name for name, kind in declared.items() if kind is None]
    if not columns:
        missing = ["the project declares no columns: add them to `schema`"]
    elif untyped:
        missing = [f"correct the types of {', '.join(untyped)}: STRING, as none are declared"]
    merge, more = _merge(key, columns, None, is_state=True)
    event = {
        "kind": "AddPushSource",
        "sourceName": "default",
        "read": {"kind": "NdJson", "schema": _ddl(columns)},
        "merge": merge,
    }
    return Root(
        events=(event, *_vocabulary(node)),
        columns=columns,
        notes=(*notes, *more),
        missing=tuple(missing),
    )


def _place_of(location: str) -> str:
    """The path or address in what dbt-duckdb takes: also `read_csv('…')`."""
    found = _READ_FUNCTION.fullmatch(location.strip())
    return found[1] if found else location.strip().strip("'")


def _of_files(
    node: Node,
    located: tuple[str, Form],
    folder: Path,
    project: Path,
    declared: Mapping[str, str | None],
    key: Sequence[str],
) -> Root:
    location, form = located
    is_many = _WILDCARD.search(location) is not None
    sample: Sample | None = None
    if not _SCHEME.match(location):
        path = folder / location
        files = [Path(each) for each in matching_files(str(path), "/")] if is_many else [path]
        files = [each for each in files if each.is_file()]
        if files:
            sample = look_at(sorted(files), form)
        location = os.path.relpath(path, project)
    found = {c.name: c.type for c in sample.guess.columns} if sample else {}
    columns = {**found, **{name: kind for name, kind in declared.items() if kind}}
    missing = []
    if sample is None:
        columns = {name: kind or "STRING" for name, kind in declared.items()}
        what = "cannot be read here" if _SCHEME.match(location) else "is not there"
        missing = [f"{node.location} {what}: correct its place and the columns in `schema`"]
    guessed = key or (sample.guess.key if sample else ())
    merge, notes = _merge(guessed, columns, sample, is_state=not is_many)
    fetch: dict[str, Any] = {"kind": "FilesGlob", "path": location, "order": "ByName"}
    if not is_many:
        url = location if _SCHEME.match(location) else f"file:{location}"
        fetch = {"kind": "Url", "url": url}
    form = sample.form if sample else form
    event = _polling(fetch, _read(form, columns, sample), merge, form.packed)
    return Root(
        events=(event, *_vocabulary(node)),
        columns=columns,
        notes=tuple(notes),
        missing=tuple(missing),
        line_breaks=sample is not None and sample.line_breaks,
    )


def _polling(
    fetch: Mapping[str, Any], read: Mapping[str, Any], merge: Any, packed: str | None
) -> dict[str, Any]:
    prepare = {"prepare": [{"kind": "Decompress", "format": packed}]} if packed else {}
    return {"kind": "SetPollingSource", "fetch": fetch, **prepare, "read": read, "merge": merge}


def _read(form: Form, columns: Mapping[str, str], sample: Sample | None) -> dict[str, Any]:
    read: dict[str, Any] = {"kind": form.kind}
    if form.kind == "Csv":
        read["header"] = sample is None or sample.header
        if form.separator != ",":
            read["separator"] = form.separator
        if sample is not None and sample.guess.null:
            read["nullValue"] = sample.guess.null
    if columns and form.kind != "Parquet":
        read["schema"] = _ddl(columns)
    return read


def _ddl(columns: Mapping[str, str]) -> list[str]:
    return [f"{quoted_name(name)} {kind}" for name, kind in columns.items()]


def _merge(
    key: Sequence[str], columns: Mapping[str, str], sample: Sample | None, *, is_state: bool
) -> tuple[dict[str, Any], list[str]]:
    """How records are merged, and what to check about it."""
    spelled = {name.lower(): name for name in columns}
    known = [spelled[each.lower()] for each in key if each.lower() in spelled]
    if known:
        return {"kind": "Snapshot" if is_state else "Ledger", "primaryKey": known}, []
    if is_state and sample is not None and columns:
        why = "no column tells its records apart: all of them are the key, so none may occur twice"
        return {"kind": "Snapshot", "primaryKey": [*columns]}, [why]
    return {"kind": "Append"}, ["no test says that a column is unique: every record is appended"]


def _vocabulary(node: Node) -> list[dict[str, Any]]:
    column = node.config.get("event_time")
    if not isinstance(column, str) or column == "event_time":
        return []
    return [{"kind": "SetVocab", "eventTimeColumn": column}]


def key_of(node: Node) -> tuple[str, ...]:
    """Columns that tests or settings call unique; empty where none do."""
    unique = [each for each in node.tests if each.name == "unique" and each.column]
    if unique:
        return (str(unique[0].column),)
    for each in node.tests:
        if combination(each):
            return combination(each)
    return tuple(listed(node.config.get("unique_key")))


def combination(test: GenericTest) -> tuple[str, ...]:
    """The columns of a test that several are unique together; empty for any other test."""
    if test.name != "dbt_utils.unique_combination_of_columns":
        return ()
    return tuple(listed(test.arguments.get("combination_of_columns")))


def ddl_type(text: str, dialect: str) -> str | None:
    """A type of a database in DDL of odfbuild; `None` where there is none."""
    from sqlglot import exp

    kind = _type(text, dialect)
    if kind is None:
        return None
    if kind.is_type(*exp.DataType.TEXT_TYPES):
        return "STRING"
    if kind.is_type("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ", "DATETIME"):
        return "TIMESTAMP"
    if kind.is_type("DECIMAL") and not kind.expressions:
        return "DECIMAL(38, 10)"
    found = str(kind.sql("spark"))
    try:
        read_ddl([f"x {found}"])
    except DdlError:
        return None
    return found


def type_in(ddl: str, dialect: str) -> str:
    """A type in DDL as a database calls it, for the analysis of queries."""
    kind = _type(ddl, "spark")
    return "UNKNOWN" if kind is None else str(kind.sql(dialect))


def kind_of(text: str, dialect: str) -> str | None:
    """`text` or `number`, which a type of a database is; `None` for others and unknown ones."""
    from sqlglot import exp

    kind = _type(text, dialect)
    if kind is not None and kind.is_type(*exp.DataType.TEXT_TYPES):
        return "text"
    return "number" if kind and kind.is_type(*exp.DataType.NUMERIC_TYPES) else None


def _type(text: str, dialect: str) -> Any:
    """A type as sqlglot reads it; `None` for what is none."""
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        return exp.DataType.build(text, dialect=dialect)
    except (SqlglotError, ValueError):
        return None
