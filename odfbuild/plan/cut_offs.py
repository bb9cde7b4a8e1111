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

    def settled(self, transform: TransformSql, inputs: Sequence[News]) -> Mapping[str, str]:
        """Why an input brings nothing to a query, by alias, for those of which that is certain."""
        changed = {
            each.alias: found for each in inputs if (found := self._changed(each)) is not None
        }
        if not any(changed.values()):
            return dict.fromkeys(changed, "")
        lineage = self._lineages.of(transform, names_to_follow(_columns(inputs)))
        return {
            each.alias: _shown(each, changed[each.alias])
            for each in inputs
            if each.alias in changed
            and not (
                changed[each.alias]
                and may_read(transform, lineage, {each.alias: changed[each.alias]})
            )
        }

    def is_in_full(self, name: str, projection: Projection) -> bool:
        """Whether the records so far are certain to be what the query gives for its inputs."""
        known = self._kept(name)
        return known is not None and known.in_full and known.covered == projection.head

    def _changed(self, each: News) -> frozenset[str] | None:
        kept = self._kept(each.name) if each.files else None
        return changes_of(kept, each.files, vocabulary_of(each.state.vocab))


def why_nothing(settled: Mapping[str, str]) -> str:
    """Why a step whose inputs are all settled changes nothing."""
    shown = ", ".join(filter(None, settled.values()))
    return (
        f"it uses no column that is corrected ({shown})"
        if shown
        else "its inputs bring nothing new"
    )


def _shown(each: News, changed: frozenset[str]) -> str:
    vocab = vocabulary_of(each.state.vocab)
    system = (vocab.offset, vocab.operation_type, vocab.system_time)
    return ", ".join(f"{each.name}.{column}" for column in sorted(changed.difference(system)))


def _columns(inputs: Sequence[News]) -> Mapping[str, Sequence[str]]:
    return {
        each.alias: [field.name for field in read_schema(each.state.schema)]
        for each in inputs
        if each.state.schema is not None
    }


NO_CUT_OFFS = CutOffs(lambda _: None, Lineages())
"""Where nothing is kept."""
