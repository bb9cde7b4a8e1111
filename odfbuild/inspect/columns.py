"""The columns of datasets, and which columns of their inputs they are made from.

Told by schemas and queries in force, and by definitions of what has no data yet. Runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import SetTransform
from odfbuild.odf.schema.arrow_form import read_schema
from odfbuild.plan.columns.known import KnownColumns
from odfbuild.plan.columns.lineages import Lineages
from odfbuild.project.settings.describing import descriptions_of
from odfbuild.sql.lineage import Influence
from odfbuild.survey.survey import Survey
from odfbuild.values import Value

_DESCRIPTION = b"opendatafabric.org/description"


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """A column of an input, and how it matters."""

    dataset: str
    column: str
    how: Influence


class ColumnsFrom(Value):
    """Of each column of a dataset, and of its records, where they come from."""

    columns: Mapping[str, tuple[Origin, ...]]
    records: tuple[Origin, ...]


class Column(Value, kw_only=True):
    """A column of a dataset, with its type in the words of Arrow."""

    name: str
    type: str
    required: bool
    description: str | None = None


def columns_from(
    state: Projection,
    aliases: Mapping[DatasetId, str],
    columns_of: Callable[[str], tuple[str, ...] | None],
    lineages: Lineages,
) -> ColumnsFrom | None:
    """The lineage of the query in force, by names of datasets; `None`: it cannot be told."""
    if state.transform is None or state.schema is None:
        return None
    return _named(state.transform, read_schema(state.schema).names, aliases, columns_of, lineages)


def _named(
    made_by: SetTransform,
    columns: list[str],
    aliases: Mapping[DatasetId, str],
    columns_of: Callable[[str], tuple[str, ...] | None],
    lineages: Lineages,
) -> ColumnsFrom | None:
    datasets: dict[str, str] = {}
    known: dict[str, tuple[str, ...] | None] = {}
    for each in made_by.inputs:
        ref = each.dataset_ref
        name = aliases.get(ref) if isinstance(ref, DatasetId) else str(ref)
        alias = each.alias or name
        if alias is None:
            return None
        datasets[alias.lower()] = name or str(ref)
        known[alias] = None if name is None else columns_of(name)
    found = lineages.of(made_by.transform, known)
    if found is None:
        return None
    spelled = {
        (datasets[alias.lower()], column.lower()): column
        for alias, names in known.items()
        for column in names or ()
    }

    def origins(told: frozenset[tuple[str, str, Influence]]) -> tuple[Origin, ...]:
        named = ((datasets[alias], column, how) for alias, column, how in told)
        return tuple(sorted({Origin(n, spelled.get((n, c), c), how) for n, c, how in named}))

    by_column = {name: found.columns.get(name.lower()) for name in columns}
    return ColumnsFrom(
        {name: origins(told) for name, told in by_column.items() if told is not None},
        origins(found.records),
    )


class SurveyedColumns:
    """Columns and their lineage of all datasets of a project, by name; each is asked once."""

    def __init__(self, found: Survey, lineages: Lineages) -> None:
        self._found = found
        self._lineages = lineages
        self._known = KnownColumns(found.project.definitions, found.projections)
        self._aliases = {state.dataset_id: name for name, state in found.projections.items()}
        self._defined = {each.name: each for each in found.project.definitions}
        self._described = found.project.config.descriptions
        self._columns: dict[str, tuple[Column, ...]] = {}
        self._origins: dict[str, ColumnsFrom | None] = {}

    def of(self, name: str) -> tuple[Column, ...]:
        """The columns in the chain, else those that the definition tells of, as far as it does.

        Those that the chain does not describe have the descriptions of odfbuild.yaml.
        """
        if name not in self._columns:
            described = descriptions_of(self._described, name)
            self._columns[name] = tuple(
                replace(each, description=each.description or described.get(each.name.lower()))
                for each in self._read(name)
            )
        return self._columns[name]

    def origins(self, name: str) -> ColumnsFrom | None:
        """Where they come from; `None`: it cannot be told, or the dataset has no inputs."""
        if name not in self._origins:
            self._origins[name] = self._trace(name)
        return self._origins[name]

    def _trace(self, name: str) -> ColumnsFrom | None:
        state = self._found.projections.get(name)
        made_by = state.transform if state else self._transform(name)
        if made_by is None:
            return None
        columns = [each.name for each in self.of(name)]
        return _named(made_by, columns, self._aliases, self._names, self._lineages)

    def _names(self, name: str) -> tuple[str, ...] | None:
        return tuple(each.name for each in self.of(name)) or None

    def _transform(self, name: str) -> SetTransform | None:
        definition = self._defined.get(name)
        events = definition.snapshot.metadata if definition else ()
        return next((each for each in reversed(events) if isinstance(each, SetTransform)), None)

    def _read(self, name: str) -> tuple[Column, ...]:
        state = self._found.projections.get(name)
        if state is None or state.schema is None:
            relation = self._known.relation(name) or ()
            return tuple(
                Column(name=each.name, type=str(each.type or ""), required=False)
                for each in relation
            )
        return tuple(
            Column(
                name=field.name,
                type=str(field.type),
                required=not field.nullable,
                description=_text((field.metadata or {}).get(_DESCRIPTION)),
            )
            for field in read_schema(state.schema)
        )


def _text(value: bytes | None) -> str | None:
    return value.decode(errors="replace") if value else None
