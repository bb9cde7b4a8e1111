"""What is wrong with `tables` of odfbuild.yaml, whatever datasets there are.

What depends on columns is checked where they are known (`plan/tables`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from odfbuild.errors import ProjectError
from odfbuild.project.settings.tables import FORMATS
from odfbuild.project.tables.declared import IDENTIFIER, PLACEHOLDER
from odfbuild.project.yaml.source import locate

if TYPE_CHECKING:
    from odfbuild.errors import Location
    from odfbuild.project.settings.content import Content

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_FIELDS = {"partitionBy": "partition_by", "indices": "indices", "sort": "sort"}


def wrong_tables(content: Content, text: str, file: str) -> Iterator[ProjectError]:
    """All that is wrong with `tables` of odfbuild.yaml (`text`), whatever the datasets are."""
    for number, entry in enumerate(content.tables):

        def at(*path: str | int, number: int = number) -> Location:
            return locate(text, file, 0, ("content", "tables", number, *path))

        for key in dict.fromkeys(key for each in FORMATS.values() for key in each.only):
            formats = [name for name, each in FORMATS.items() if key in each.only]
            if getattr(entry, key) and entry.format not in formats:
                yield ProjectError(
                    f"`{key}` means nothing to a table of the format {entry.format}",
                    code="E1301",
                    location=at(key),
                    help=f"remove it, or change `format` to {' or '.join(formats)}",
                )
        for key in ("name", "group"):
            value = getattr(entry, key)
            if value is not None and not _NAME.fullmatch(_without_placeholders(value)):
                yield ProjectError(
                    f"'{value}' cannot be the name of a table: names have letters, digits, '-', "
                    "'.' and '_', and {dataset} or {identifier} for that of the dataset",
                    code="E1302",
                    location=at(key),
                    help='give another name, such as `"{dataset}-delta"`',
                )
        for key in ("partitionBy", "indices", "sort"):
            yield from _twice(key, getattr(entry, _FIELDS[key]), at)


def _without_placeholders(name: str) -> str:
    return name.replace(PLACEHOLDER, "x").replace(IDENTIFIER, "x")


def _twice(key: str, columns: Sequence[str], at: Any) -> Iterator[ProjectError]:
    for number, column in enumerate(columns):
        if column in columns[:number]:
            yield ProjectError(
                f"`{key}` names the column '{column}' twice",
                code="E1303",
                location=at(key, number),
                help="remove one of them",
            )
