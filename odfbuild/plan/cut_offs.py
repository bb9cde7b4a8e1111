"""Which steps are certain to change nothing, because no column that their query reads has changed.

The step itself asks the same (`apply.cut_offs`). Pure: what is kept beside chains comes in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import TransformSql
from odfbuild.odf.schema.arrow_form import read_schema
from odfbuild.odf.vocabulary import vocabulary_of
from odfbuild.plan.columns.lineages import Lineages
from odfbuild.sql.columns.used import may_read, names_to_follow
from odfbuild.store.corrections import Corrections, changes_of
from odfbuild.values import Value


class News(Value):
    """An input, called `alias` in the query: its state, and its new data files."""

    name: str
    alias: str
    state: Projection
    files: tuple[str, ...]


class CutOffs:
    """Answers by what `kept` tells of datasets by name: `store.corrections`."""

    def __init__(self, kept: Callable[[str], Corrections | None], lineages: Lineages) -> None:
        self._kept = kept
        self._lineages = lineages

    def why_nothing(
        self, name: str, transform: TransformSql, projection: Projection, inputs: Sequence[News]
    ) -> str:
        """Why a step changes nothing, where that is certain; empty where it may change something.

        It is a step with the same query as the last one.
        """
        known = self._kept(name)
        if known is None or not known.in_full or known.covered != projection.head:
            return ""
        changed: dict[str, frozenset[str]] = {}
        shown = []
        for each in inputs:
            vocab = vocabulary_of(each.state.vocab)
            kept = self._kept(each.name) if each.files else None
            found = changes_of(kept, each.files, vocab)
            if found is None:
                return ""
            changed[each.alias] = found
            system = (vocab.offset, vocab.operation_type, vocab.system_time)
            shown += [f"{each.name}.{column}" for column in sorted(found.difference(system))]
        if not any(changed.values()):
            return "its inputs have no new records"
        names = names_to_follow(_columns(inputs))
        if may_read(transform, self._lineages.of(transform, names), changed):
            return ""
        if not shown:
            return "what is new corrects no column"
        return f"it uses no column that is corrected ({', '.join(shown)})"


def _columns(inputs: Sequence[News]) -> Mapping[str, Sequence[str]]:
    return {
        each.alias: [field.name for field in read_schema(each.state.schema)]
        for each in inputs
        if each.state.schema is not None
    }


NO_CUT_OFFS = CutOffs(lambda _: None, Lineages())
"""Where nothing is kept."""
