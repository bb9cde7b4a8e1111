"""The columns that queries can use, from definitions and chains.

For whoever writes a query: of datasets that have no data yet, too. Runs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import (
    AddPushSource,
    MetadataEvent,
    SetPollingSource,
    SetTransform,
    SetVocab,
    TransformSql,
)
from odfbuild.odf.vocabulary import Vocabulary, vocabulary_of
from odfbuild.plan.columns.evolution import committed_columns, result_of_source
from odfbuild.project.model import Definition
from odfbuild.sql.columns.of_query import Column, Columns, result_of
from odfbuild.sql.columns.shape import shape_of


class KnownColumns:
    """Columns of the datasets that are defined, or have chains; `projections` by alias.

    `definitions` may come by name in lower case. Datasets are asked for by name or DID. Nothing is
    known of `wrong` ones: their chains have the columns from before somebody began to edit.
    """

    def __init__(
        self,
        definitions: Iterable[Definition] | Mapping[str, Definition],
        projections: Mapping[str, Projection],
        wrong: Iterable[str] = (),
    ) -> None:
        if not isinstance(definitions, Mapping):
            definitions = {each.folded: each for each in definitions}
        self._definitions = definitions
        self._projections = projections
        self._aliases = {name.lower(): name for name in projections}
        self._found: dict[str, Columns | None] = dict.fromkeys(map(str.lower, wrong))
        self._by_id: dict[str, str] | None = None

    def names(self, dataset: str) -> tuple[str, ...] | None:
        """Its columns without those that odfbuild adds; `None` when only data can tell."""
        columns = self._of(dataset)
        if columns is None:
            return None
        vocabulary = self.vocabulary(dataset)
        ours = (vocabulary.offset, vocabulary.operation_type, vocabulary.system_time)
        return tuple(column.name for column in columns if column.name not in ours)

    def vocabulary(self, dataset: str) -> Vocabulary:
        """What its system columns are called."""
        name = self._alias(dataset)
        events = self._events(name)
        vocab = next((each for each in reversed(events) if isinstance(each, SetVocab)), None)
        projection = self._chain(name)
        return vocabulary_of(vocab or (projection.vocab if projection else None))

    def types(self, dataset: str) -> dict[str, str | None] | None:
        """Arrow types of its columns by name (`None`: not known); `None` as of `names`."""
        columns = self._of(dataset)
        if columns is None:
            return None
        return {each.name: None if each.type is None else str(each.type) for each in columns}

    def relation(self, dataset: str) -> Columns | None:
        """Its columns as its readers see them, before anything is committed, too."""
        columns = self._of(dataset)
        if columns is None:
            return None
        names = self.vocabulary(dataset)
        ours = (names.offset, names.operation_type, names.system_time)
        system = (*ours, names.event_time)
        given = {each.name for each in columns}
        # What a source calls like a column of odfbuild gets an underscore.
        renamed = [replace(each, name=f"_{each.name}") for each in columns if each.name in ours]
        return (
            *(Column(name, None) for name in system if name not in given),
            *columns,
            *(each for each in renamed if each.name not in given),
        )

    def name_of(self, dataset: str) -> str:
        """The name, in lower case, of what is asked for by name or DID."""
        return self._alias(dataset)

    def _alias(self, dataset: str) -> str:
        """The name in lower case of what a name or DID stands for."""
        if dataset.startswith("did:"):
            if self._by_id is None:
                states = self._projections.items()
                self._by_id = {str(state.dataset_id): name.lower() for name, state in states}
            return self._by_id.get(dataset, dataset)
        return dataset.lower()

    def _of(self, dataset: str) -> Columns | None:
        name = self._alias(dataset)
        if name not in self._found:
            self._found[name] = None  # a circle ends here
            with suppress(RecursionError):  # very many datasets may stand behind each other
                self._found[name] = self._defined(name) or self._committed(name)
        return self._found[name]

    def _events(self, name: str) -> tuple[MetadataEvent, ...]:
        definition = self._definitions.get(name)
        return definition.snapshot.metadata if definition is not None else ()

    def _chain(self, name: str) -> Projection | None:
        alias = self._aliases.get(name)
        return None if alias is None else self._projections[alias]

    def _committed(self, name: str) -> Columns | None:
        projection = self._chain(name)
        return committed_columns(projection) if projection is not None else None

    def _defined(self, name: str) -> Columns | None:
        for event in reversed(self._events(name)):
            if isinstance(event, SetTransform):
                inputs = {
                    each.alias or str(each.dataset_ref): self._of(str(each.dataset_ref))
                    for each in event.inputs
                }
                return _result(event.transform, inputs)
            if isinstance(event, SetPollingSource | AddPushSource):
                result = result_of_source(event, meanings=False)
                return result.columns if result else None
        return None


def _result(transform: TransformSql, inputs: Mapping[str, Columns | None]) -> Columns | None:
    """The columns of the result; queries of one shape are parsed once."""
    shape = shape_of(transform, inputs)
    if shape is not None:
        named = {shape.names[alias]: columns for alias, columns in inputs.items()}
        result = result_of(shape.transform, named, meanings=False)
        if result is not None and not shape.is_told_of(each.name for each in result.columns):
            return result.columns
    result = result_of(transform, inputs, meanings=False)
    return result.columns if result else None
