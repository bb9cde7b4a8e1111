"""Compare the header of a CSV file with the declared columns."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence

import pyarrow as pa

from odfbuild.engine.contract import IngestTask
from odfbuild.engine.spark.reading.csv_quotes import quote_of
from odfbuild.engine.spark.reading.source_text import SourceText
from odfbuild.errors import IngestError, Location
from odfbuild.odf.model import ReadStepCsv


def first_row(text: SourceText, read: ReadStepCsv) -> list[str]:
    """Cells of the first line that is not blank; an empty list when there is none."""
    return split(next((line for _, line in text.lines() if line.strip()), ""), read)


def split(line: str, read: ReadStepCsv) -> list[str]:
    """Cells of one line."""
    if not line:
        return []
    quote = quote_of(read)
    if quote is None:
        return line.split(read.separator or ",")
    escape = None if read.escape in (None, "", quote) else read.escape
    reader = csv.reader(
        [line],
        delimiter=read.separator or ",",
        quotechar=quote,
        escapechar=escape,
        doublequote=True,
    )
    return next(reader, [])


def check_header(
    task: IngestTask, read: ReadStepCsv, text: SourceText, names: Sequence[str]
) -> None:
    """Raise `IngestError` unless the header names the declared columns in their order.

    Names are compared without case, spaces and punctuation, so that a schema may tidy them up.
    """
    found = first_row(text, read)
    if not found:
        return  # an empty file has no records, and so none that could be misread
    plain = [_plain(name) for name in found]
    if plain == [_plain(name) for name in names]:
        return
    missing = [name for name in names if _plain(name) not in plain]
    extra = [name for name in found if _plain(name) not in {_plain(n) for n in names}]
    separator = _separator_of(found, names)
    if separator is not None:
        message = (
            f"the header of '{task.source_name}' is separated by {json.dumps(separator)}, "
            f"not by {json.dumps(read.separator or ',')}"
        )
    elif missing:
        message = f"the header of '{task.source_name}' has no column {_list(missing)}"
    elif extra:
        message = f"the header of '{task.source_name}' has the undeclared column {_list(extra)}"
    else:
        message = f"the header of '{task.source_name}' has its columns in another order"
    nameless = "declare a column without a name as `_ STRING`, " if "" in plain else ""
    raise IngestError(
        message,
        code="E0420",
        location=Location(task.source_name, 1, 1),
        notes=(
            f"declared: {', '.join(names)}",
            f"found: {', '.join(found)}",
            "columns of CSV files are matched by position",
        ),
        help=f"set `read.separator: {json.dumps(separator)}`"
        if separator is not None
        else f"{nameless}write the columns of the file, in its order, in `read.schema`, or let "
        f"odfbuild match them by name with `ingest.onSchemaChange: {{{task.dataset}: ignore}}` "
        "in odfbuild.yaml",
        dataset=task.dataset,
    )


def _separator_of(found: Sequence[str], names: Sequence[str]) -> str | None:
    """What separates the declared columns, where the header was read as one column."""
    if len(found) != 1:
        return None
    wanted = [_plain(name) for name in names]
    return next((s for s in ",;\t|" if [_plain(n) for n in found[0].split(s)] == wanted), None)


def named_header(read: ReadStepCsv, text: SourceText, columns: pa.Schema) -> pa.Schema:
    """The columns of the file, those that are declared as they are; empty for an empty file.

    One without a name is called by its position, so that it can be left out.
    """
    declared = {_plain(field.name): field for field in columns}
    return pa.schema(
        declared.get(_plain(name), pa.field(name or f"column {number}", pa.string()))
        for number, name in enumerate(first_row(text, read), 1)
    )


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.lower())


def _list(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
