"""The tables that odfbuild.yaml declares, one by one. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odfbuild.errors import ProjectError
from odfbuild.odf.identity import identifier_of
from odfbuild.project.settings.by_name import matching
from odfbuild.project.settings.personal import subjects_of
from odfbuild.project.settings.tables import FORMATS, TableSettings
from odfbuild.project.yaml.source import locate
from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.errors import Location
    from odfbuild.project.model import Config
    from odfbuild.project.settings.content import Content
    from odfbuild.records.pin import View

PLACEHOLDER = "{dataset}"
"""Stands in names of tables for that of the dataset."""
IDENTIFIER = "{identifier}"
"""Stands for the same as SQL takes it without quotes."""


class Table(Value, kw_only=True):
    """A table of one dataset, as odfbuild.yaml declares it.

    `location` is absolute: a path, or the address of a store of objects. `entry` is the number of
    its entry in `tables`; `personal` has the names of personal columns, behind what it shows of
    them.
    """

    name: str
    dataset: str
    format: str
    location: str
    group: str | None = None
    view: View = "current"
    partition_by: tuple[str, ...] = ()
    indices: tuple[str, ...] = ()
    sort: tuple[str, ...] = ()
    target_file_size: int = 128 * 10**6
    keep: timedelta = timedelta(days=7)
    catalogue: tuple[tuple[str, str], ...] = ()
    personal: tuple[str, ...] = ()
    entry: int = 0

    @property
    def summary(self) -> str:
        """What it is, in a few words."""
        by = f", by {', '.join(self.partition_by)}" if self.partition_by else ""
        view = "" if self.view == "current" else ", history"
        return f"{self.format}{view}{by}"

    @property
    def address(self) -> str:
        """Where its files are: `location/name`; with a group `location/group`."""
        name = self.group or self.name
        if not FORMATS[self.format].has_dots:
            name = name.replace(".", "_")
        return f"{self.location.rstrip('/')}/{name}"

    def says(self, key: str) -> tuple[str | int, ...]:
        """The path in odfbuild.yaml, from `content`, of a setting of its entry."""
        return ("tables", self.entry, key)


def declared_tables(config: Config, datasets: Iterable[str]) -> tuple[Table, ...]:
    """All tables of these datasets, by entry, then in the order of `datasets`."""
    if not config.tables:
        return ()
    names = list(datasets)
    return tuple(
        _table(config, number, entry, name)
        for number, entry in enumerate(config.tables)
        for name in names
        if matching(entry, name) is not None
    )


def location_of(config: Config, entry: TableSettings) -> str:
    """The location as odfbuild.yaml says it; an environment has one of its own, beside."""
    location = entry.location.rstrip("/")
    return location if config.env is None else f"{location}-{config.env}"


def _table(config: Config, number: int, entry: TableSettings, dataset: str) -> Table:
    return Table(
        name=entry.name.replace(PLACEHOLDER, dataset.replace("/", ".")).replace(
            IDENTIFIER, identifier_of(dataset)
        ),
        dataset=dataset,
        format=entry.format,
        location=_absolute(config.root, location_of(config, entry)),
        group=entry.group,
        view=entry.view,
        partition_by=entry.partition_by,
        indices=entry.indices,
        sort=entry.sort,
        target_file_size=entry.target_file_size,
        keep=entry.keep,
        catalogue=tuple(sorted(entry.catalogue.items())),
        personal=_personal(config, dataset),
        entry=number,
    )


def _personal(config: Config, dataset: str) -> tuple[str, ...]:
    columns = subjects_of(config.personal, dataset)
    machine = config.personal_keys
    shown = "plain" if machine.publish and machine.keys else machine.hide
    return (shown, *sorted(columns)) if columns else ()


def _absolute(root: Path, location: str) -> str:
    scheme, separator, path = location.partition("://")
    if not separator:
        return str((root / location).resolve())
    return path if scheme == "file" else location


# --- What is wrong ---


# What depends on columns is checked where they are known (`exchange/tables/rules.py`).

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
