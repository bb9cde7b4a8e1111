"""Which steps are recomputed together: those of one dataset in a row with one query and schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from odfbuild.engine.request import is_computed
from odfbuild.inspect.verify.replay import Replay
from odfbuild.sql.forecast import expected_mode
from odfbuild.sql.mode import Mode

_STEPS = 500
LARGEST_JOB = 8 << 20
"""The size of the slices that steps of one job read: larger steps gain nothing by it."""


def in_batches(
    steps: Iterable[tuple[str, Replay]], most_bytes: float = LARGEST_JOB
) -> Iterator[tuple[str, list[Replay]]]:
    """Steps by the names of their datasets, in batches that one job may do; their order stays."""
    batch: list[Replay] = []
    of, size = "", 0
    for name, step in steps:
        more = _bytes_of(step)
        fits = len(batch) < _STEPS and size + more <= most_bytes
        if batch and not (of == name and fits and _are_alike(batch[-1], step)):
            yield of, batch
            batch, size = [], 0
        of, size = name, size + more
        batch.append(step)
    if batch:
        yield of, batch


def _bytes_of(step: Replay) -> int:
    return sum(data.size for each in step.inputs for data, _ in each.step.promised_slices)


def _are_alike(one: Replay, other: Replay) -> bool:
    """Whether the same query handles each of their records alone, over the same columns."""
    return (
        one.transform == other.transform
        and one.before.vocab == other.before.vocab
        and [(e.alias, e.schema, e.vocab) for e in one.inputs]
        == [(e.alias, e.schema, e.vocab) for e in other.inputs]
        and expected_mode(one.transform.transform).mode is Mode.MAP
        and all(is_computed(each.before, each.inputs) for each in (one, other))
    )
