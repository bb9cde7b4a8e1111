"""Tables that are published from datasets: `tables` of odfbuild.yaml.

A chain is a history. A published table is what readers without odfbuild take: the current state
or the history of one dataset, in a format that they know.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Literal

from odfbuild.declared_settings import Fits, setting
from odfbuild.project.settings.by_name import Name, Patterns
from odfbuild.project.settings.freshness import age, parse_age
from odfbuild.values import Value


class Format(Value, kw_only=True):
    """A format of tables: the extra that has its libraries, and what only it understands.

    `only` has settings of `tables` that mean nothing without it. `has_dots`: names of its tables
    may have them.
    """

    extra: str = "tables"
    only: tuple[str, ...] = ()
    has_dots: bool = True


FORMATS = {
    "kartothek": Format(only=("indices", "group"), has_dots=False),
    "delta": Format(extra="delta"),
    "iceberg": Format(extra="iceberg", only=("catalogue",)),
    "parquet": Format(),
}
"""Formats by their names, which are those of modules of `exchange/tables`, too."""

FormatName = Annotated[str, Fits(enum=[*FORMATS])]

_SIZE = re.compile(r"^(\d{1,7})(kB|MB|GB)$")
_BYTES = {"kB": 10**3, "MB": 10**6, "GB": 10**9}


def parse_size(text: str) -> int:
    """The bytes of a size such as `128MB`; `ValueError` for anything else."""
    found = _SIZE.search(text)
    if found is None:
        raise ValueError(f"not a size: {text!r}")
    return int(found[1]) * _BYTES[found[2]]


Location = Annotated[
    str,
    Fits(
        pattern=r"^(s3|gs|az|abfs|file)://.|^[^:]+$",
        examples=["../lake", "s3://bucket/lake"],
        description="Folder of the tables: a folder, s3://bucket/prefix, gs:, az:",
    ),
]
Size = Annotated[
    int,
    Fits(
        str,
        parse_size,
        pattern=_SIZE.pattern,
        examples=["64MB", "1GB"],
        description="A number and a unit: 500kB, 128MB, 1GB",
    ),
]


class TableSettings(Value):
    """Each dataset whose name matches is published as a table; all entries that match count."""

    match: Patterns = setting()
    format: FormatName = setting(about="Format of the table")
    location: Location = setting()
    name: Name = setting(
        "{dataset}",
        "Name of the table, and of its folder below `location`; unique in a project. `{dataset}` "
        "stands for the name of the dataset, `{identifier}` for the same with `_` for `-` and `.`",
    )
    group: Name | None = setting(
        None, "For kartothek: the dataset of kartothek whose tables these are (default: one each)"
    )
    view: Literal["current", "history"] = setting(
        "current",
        "`current`: the current state, without system columns. `history`: every record",
    )
    partition_by: tuple[Name, ...] = setting(
        (), "Columns of whose values each combination is a partition"
    )
    indices: tuple[Name, ...] = setting((), "For kartothek: columns with an inverted index")
    sort: tuple[Name, ...] = setting(
        (), "Columns that records of a partition are sorted by (default: the event time)"
    )
    target_file_size: Size = setting(128 * 10**6, "A new file begins where one has so many bytes")
    keep: Annotated[timedelta, age(parse_age)] = setting(
        timedelta(days=7), "How long readers can use a state that is no longer the current one"
    )
    catalogue: Mapping[str, Name] = setting(
        {},
        "For Iceberg: properties of the catalogue, as PyIceberg names them "
        "(default: a file of SQLite at `location`)",
    )
