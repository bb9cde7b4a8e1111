"""Find records by a condition, and their provenance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow.parquet as pq

from odfbuild.engine.contract import EngineFactory
from odfbuild.engine.lazy import LazyEngine
from odfbuild.errors import OdfbuildError
from odfbuild.inspect.ask import Question, asked_of
from odfbuild.inspect.verify.provenance import Extent, TracedRecords, provenance
from odfbuild.odf.vocabulary import vocabulary_of
from odfbuild.store.disposable import scratch_folder
from odfbuild.store.workspace import Workspace


def trace(
    workspace: Workspace,
    name: str,
    which: str | Sequence[int],
    factory: EngineFactory,
    extent: Extent,
    limit: int | None = None,
) -> tuple[list[TracedRecords], int]:
    """Where records of a dataset come from, at most `limit` of them, and how many are left out.

    `which`: their offsets, or a condition in SQL over all records ever committed, with the system
    columns. Raises as `provenance`, and `QueryError`s for a condition that is wrong.
    """
    with LazyEngine(factory) as engine:
        if isinstance(which, str):
            offsets = _holding(workspace, name, which, engine)
        else:
            offsets = sorted(set(which))
        chosen = offsets[:limit]
        with scratch_folder(workspace.cache, "provenance") as scratch:
            trees = provenance(workspace, name, chosen, engine.get, scratch, extent)
    return trees, len(offsets) - len(chosen)


def _moved(error: OdfbuildError, columns: int) -> OdfbuildError:
    """With a place in the condition, which begins after so many columns of the query."""
    place = error.location
    if place is None or place.line != 1 or place.column is None:
        return error
    return error.at(replace(place, column=max(1, place.column - columns)))


def _holding(workspace: Workspace, name: str, condition: str, engine: LazyEngine) -> list[int]:
    """Offsets of the records for which a condition holds, in order."""
    state = workspace.projection(name)
    offset = vocabulary_of(state.vocab if state else None).offset
    beginning = f"SELECT `{offset}` FROM `{name}` WHERE ("
    question = Question(condition, f"{beginning}{condition}\n) ORDER BY 1", {name: name})
    try:
        with asked_of(engine.get, workspace, question, history=True, name="--where") as found:
            parts = [pq.read_table(part) for part in found.parts]
    except OdfbuildError as error:
        raise error.mapped(lambda each: _moved(each, len(beginning))) from None
    return [offset for part in parts for offset in part.column(0).to_pylist()]
