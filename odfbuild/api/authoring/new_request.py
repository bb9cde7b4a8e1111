"""The arguments of `odfbuild new`, and errors in them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from odfbuild.errors import ProjectError
from odfbuild.values import Value
from odfbuild.wording import did_you_mean


class NewDatasetRequest(Value, kw_only=True):
    """What was asked for; `sources` are files, an address or inputs, as `kind` has it.

    `read` names a format, `sample` a local file that looks like the data, `over` a column and its
    values (`country=NO,PT`). With `sql_file` the query gets a file of its own.
    """

    kind: str
    name: str
    sources: tuple[str, ...] = ()
    merge: str | None = None
    key: tuple[str, ...] = ()
    read: str | None = None
    sample: Path | None = None
    over: str | None = None
    sql_file: bool = False
    description: str | None = None


def as_name(text: str) -> str:
    """The nearest text that is a name; empty when nothing of it can be in one."""
    parts = (re.sub(r"[^A-Za-z0-9]+", "-", part).strip("-") for part in text.split("."))
    return ".".join(part for part in parts if part).lower()


def check_column(
    name: str, columns: Sequence[str], option: str, dataset: str | None = None
) -> None:
    """Raise `ProjectError` unless `name`, the value of an option, is one of the columns."""
    if name in columns:
        return
    of = f" of '{dataset}'" if dataset else ""
    raise ProjectError(
        f"'{name}' ({option}) is no column{of}",
        code="E0142",
        help=did_you_mean(name, columns, f"columns are: {', '.join(columns)}"),
    )


def missing(message: str, help: str) -> ProjectError:
    """The error for a request that lacks a required option."""
    return ProjectError(message, code="E0143", help=help)
