"""Which datasets only append: none of their new records ever takes an earlier one back. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import (
    DatasetKind,
    SetTransform,
    TransformSql,
)
from odfbuild.odf.vocabulary import vocabulary_of
from odfbuild.project.model import Definition
from odfbuild.sql.forecast import expected_mode
from odfbuild.sql.mode import Mode


class Appending:
    """Answers for datasets by name; `states` are their chains by name in lower case."""

    def __init__(
        self,
        definitions: Iterable[Definition],
        states: Mapping[str, Projection],
        aliases: Callable[[tuple[str, ...]], tuple[str, ...]],
    ) -> None:
        self._given = definitions
        self._definitions: dict[str, Definition] | None = None
        self._states = states
        self._aliases = aliases
        self._found: dict[str, bool] = {}

    def only(self, name: str) -> bool:
        """Whether that is certain of a dataset."""
        folded = name.lower()
        if folded not in self._found:
            self._found[folded] = False  # in a circle, which is told elsewhere
            self._found[folded] = self._only(folded)
        return self._found[folded]

    def _only(self, folded: str) -> bool:
        state = self._states.get(folded)
        if state is None:
            return False
        if state.kind is DatasetKind.Root:
            sources = [state.polling_source, *state.push_sources.values()]
            merges = [each.merge for each in sources if each is not None]
            return bool(merges) and all(each.ONLY_APPENDS for each in merges)
        if self._definitions is None:
            self._definitions = {each.folded: each for each in self._given}
        definition = self._definitions.get(folded)
        if definition is None or state.transform is None:
            return False
        events = definition.snapshot.metadata
        asked = [each.transform for each in events if isinstance(each, SetTransform)]
        operation = vocabulary_of(state.vocab).operation_type
        if not all(_appends(each, operation) for each in (*asked, state.transform.transform)):
            return False
        return all(map(self.only, self._aliases(definition.inputs)))


def _appends(transform: TransformSql, operation: str) -> bool:
    """Whether a query over inputs that only append gives no operations."""
    mode = expected_mode(transform).mode
    if mode is Mode.STREAM:
        return True
    named = re.compile(rf"\b{re.escape(operation)}\b", re.I)
    return mode is Mode.MAP and not any(named.search(e.query) for e in transform.queries or ())
