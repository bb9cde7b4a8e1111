"""The columns that queries can name, as far as definitions and chains tell them.

For whoever writes a query: of datasets that have no data yet, too. Runs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from odfbuild.engine.contract import Vocabulary, vocabulary_of
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import (
    AddPushSource,
    DatasetSnapshot,
    SetPollingSource,
    SetTransform,
    SetVocab,
)
from odfbuild.plan.columns.evolution import committed_columns, result_of_source
from odfbuild.plan.columns.of_query import Columns, result_of


class KnownColumns:
    """Columns of the datasets of a project; `snapshots` and `projections` by alias."""

    def __init__(
        self, snapshots: Mapping[str, DatasetSnapshot], projections: Mapping[str, Projection]
    ) -> None:
        self._snapshots = {name.lower(): each for name, each in snapshots.items()}
        self._projections = {name.lower(): each for name, each in projections.items()}
        self._found: dict[str, Columns | None] = {}

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
        snapshot = self._snapshots.get(dataset.lower())
        events = snapshot.metadata if snapshot else ()
        vocab = next((each for each in reversed(events) if isinstance(each, SetVocab)), None)
        projection = self._projections.get(dataset.lower())
        return vocabulary_of(vocab or (projection.vocab if projection else None))

    def types(self, dataset: str) -> dict[str, str | None] | None:
        """Arrow types of its columns by name (`None`: not known); `None` as of `names`."""
        columns = self._of(dataset)
        if columns is None:
            return None
        return {each.name: None if each.type is None else str(each.type) for each in columns}

    def result(self, dataset: str) -> tuple[str, ...] | None:
        """What the query of its definition gives; `None` when it has none or cannot be told."""
        columns = self._defined(dataset.lower())
        return None if columns is None else tuple(column.name for column in columns)

    def _of(self, dataset: str) -> Columns | None:
        name = dataset.lower()
        if name not in self._found:
            self._found[name] = None  # a circle ends here
            self._found[name] = self._defined(name) or self._committed(name)
        return self._found[name]

    def _committed(self, name: str) -> Columns | None:
        projection = self._projections.get(name)
        return committed_columns(projection) if projection is not None else None

    def _defined(self, name: str) -> Columns | None:
        snapshot = self._snapshots.get(name)
        for event in reversed(snapshot.metadata if snapshot else ()):
            if isinstance(event, SetTransform):
                inputs = {
                    each.alias or str(each.dataset_ref): self._of(str(each.dataset_ref))
                    for each in event.inputs
                }
                result = result_of(event.transform, inputs)
                return result.columns if result else None
            if isinstance(event, SetPollingSource | AddPushSource):
                result = result_of_source(event)
                return result.columns if result else None
        return None
