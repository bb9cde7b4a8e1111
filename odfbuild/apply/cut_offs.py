"""Steps that change nothing, because no column that their query reads has changed.

Where all that is new in the inputs are corrections of columns that a query does not read, its
result is the same, so nothing is computed. `store.corrections` tells what corrections change; a
step of which that is not known is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from odfbuild.apply.transaction import Transaction
from odfbuild.engine.request import StepInput, is_continued
from odfbuild.fallbacks import falling_back
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import AddData, ExecuteTransform
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.schema.arrow_form import read_schema
from odfbuild.odf.vocabulary import vocabulary_of
from odfbuild.records.corrected import corrected_columns
from odfbuild.sql.columns.query_lineage import lineage_of
from odfbuild.sql.columns.used import may_read, names_to_follow
from odfbuild.store.corrections import (
    KEPT,
    Corrected,
    changes_of,
    keep_corrections,
    kept_corrections,
)
from odfbuild.store.workspace import Workspace


def changes_nothing(transaction: Transaction, inputs: Sequence[StepInput]) -> bool:
    """Whether it is certain that a step changes nothing in the result."""
    state, base, workspace = transaction.state, transaction.base, transaction.workspace
    if base is None or state.transform is None or transaction.events:
        return False
    known = kept_corrections(workspace.side_cars(transaction.alias))
    if known is None or not known.in_full or known.covered != base.head:
        return False
    stores = [*(each.store for each in inputs), workspace.dataset(transaction.alias)]
    # What was withdrawn or erased is missing in what a full step reads.
    if not is_continued(state, inputs) or any(each.statements() for each in stores):
        return False
    changed = {}
    for each in inputs:
        files = [str(data.physical_hash) for data in each.step.slices]
        kept = kept_corrections(workspace.side_cars(each.store.name)) if files else None
        found = changes_of(kept, files, vocabulary_of(each.vocab))
        if found is None:
            return False
        changed[each.alias] = found
    if not any(changed.values()):
        return True
    transform = state.transform.transform
    names = {each.alias: [f.name for f in read_schema(each.schema)] for each in inputs}
    return not may_read(transform, lineage_of(transform, names_to_follow(names)), changed)


def remember_merge(workspace: Workspace, alias: str, state: Projection) -> None:
    """Keep what the newest slices of a root correct, if its merges correct what is there."""
    sources = [state.polling_source, *state.push_sources.values()]
    if all(each.merge.COMPARES for each in sources if each is not None):
        known = kept_corrections(workspace.side_cars(alias))
        _remember(workspace, alias, state, known.covered if known else None)


def remember_step(
    workspace: Workspace, alias: str, before: Projection | None, *, in_full: bool
) -> None:
    """Keep what a step corrected, and whether the records are what the query gives `in_full`."""
    state = workspace.projection(alias)
    if state is None or not in_full:
        return
    until = state.head
    known = kept_corrections(workspace.side_cars(alias))
    if before is not None and known is not None and known.in_full and known.covered == before.head:
        # Else it may have corrected what was not there, such as the result of an earlier query.
        until = before.head
    _remember(workspace, alias, state, until, in_full=True)


def _remember(
    workspace: Workspace,
    alias: str,
    state: Projection,
    until: Multihash | None,
    *,
    in_full: bool = False,
) -> None:
    """Look at the slices behind the block `until`, the newest ones at most."""
    import pyarrow as pa

    store, vocab = workspace.dataset(alias), vocabulary_of(state.vocab)
    found: dict[str, Corrected] = {}
    with falling_back(__name__, "what was corrected is not kept", OSError, pa.ArrowException):
        for hash, block in islice(store.walk(state.head), KEPT):
            if hash == until:
                break
            event = block.event
            if not isinstance(event, AddData | ExecuteTransform) or event.new_data is None:
                continue
            file = store.object_path("data", event.new_data.physical_hash)
            corrected = corrected_columns(file, vocab) if file.exists() else None
            if corrected is not None:
                found[file.name] = corrected
        slices = dict(reversed(found.items()))
        keep_corrections(workspace.side_cars(alias), state.head, slices, in_full=in_full)
