"""A cache of the lineage of queries, by content.

Told from the text alone, with the columns of the inputs known; a query that is not understood
gives `None`, and whoever asks has to take everything for affected. Parsing costs milliseconds, so
only readers of what changed are asked about, and answers are kept by content. Runs nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from odfbuild.odf.model import TransformSql
from odfbuild.sql.columns.of_query import Names
from odfbuild.sql.columns.shape import shape_of
from odfbuild.sql.lineage import Influence, Lineage, Origins


class Lineages:
    """Answers that were given before, as plain values that `load` gets, and those given now.

    Nothing is loaded before something is asked.
    """

    def __init__(self, load: Callable[[], Mapping[str, Any] | None] = lambda: None) -> None:
        self._load = load
        self._before: Mapping[str, Any] | None = None
        self.kept: dict[str, Any] = {}

    def of(self, transform: TransformSql, inputs: Names) -> Lineage | None:
        """The lineage of a transformation; `None` when it cannot be told."""
        shape = shape_of(transform, inputs)
        if shape is not None:
            names = {shape.names[alias]: columns for alias, columns in inputs.items()}
            found = self._of(shape.transform, names)
            if found is not None and not shape.is_told_of(found.columns):
                return _with_aliases(found, {name: a.lower() for a, name in shape.names.items()})
        return self._of(transform, inputs)

    def _of(self, transform: TransformSql, inputs: Names) -> Lineage | None:
        if self._before is None:
            self._before = self._load() or {}
        key = _key(transform, inputs)
        for known in (self.kept, self._before):
            if key in known:
                self.kept[key] = known[key]
                return _loaded(known[key])
        from odfbuild.sql.columns.query_lineage import lineage_of

        found = lineage_of(transform, inputs)
        self.kept[key] = _dumped(found)
        return found

    @property
    def is_changed(self) -> bool:
        """Whether `kept` holds an answer that was not there before."""
        return self._before is not None and not self.kept.keys() <= self._before.keys()


def _with_aliases(lineage: Lineage, aliases: Mapping[str, str]) -> Lineage:
    """The lineage of a shape, by what its inputs are called."""

    def named(origins: Origins) -> Origins:
        return frozenset((aliases[name], column, kind) for name, column, kind in origins)

    columns = {column: named(origins) for column, origins in lineage.columns.items()}
    return Lineage(columns, named(lineage.records))


def _key(transform: TransformSql, inputs: Names) -> str:
    steps = [(step.alias, step.query) for step in transform.queries or ()]
    tables = [(table.name, table.primary_key) for table in transform.temporal_tables or ()]
    text = repr((transform.engine, steps, tables, sorted(inputs.items())))
    return hashlib.sha256(text.encode()).hexdigest()


def _dumped(lineage: Lineage | None) -> Any:
    if lineage is None:
        return None
    columns = [(name, _plain(origins)) for name, origins in lineage.columns.items()]
    return columns, _plain(lineage.records)


def _plain(origins: Origins) -> list[tuple[str, str, str]]:
    return sorted((alias, column, kind.value) for alias, column, kind in origins)


def _loaded(plain: Any) -> Lineage | None:
    if plain is None:
        return None
    columns, records = plain
    return Lineage({name: _origins(each) for name, each in columns}, _origins(records))


def _origins(plain: Iterable[tuple[str, str, str]]) -> Origins:
    return frozenset((alias, column, Influence(kind)) for alias, column, kind in plain)
