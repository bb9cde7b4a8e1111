"""Downstream datasets that consumed a dataset, from their chains, not from definitions."""

from __future__ import annotations

from collections.abc import Mapping

from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.identity import DatasetId


def consumers_of(projections: Mapping[str, Projection]) -> dict[DatasetId, list[str]]:
    """Names in lower case of those that consumed a dataset, by its identity."""
    found: dict[DatasetId, list[str]] = {}
    for name, state in projections.items():
        for each in state.consumed:
            found.setdefault(each.dataset_id, []).append(name.lower())
    return found


def all_readers(
    dataset_id: DatasetId,
    consumers: Mapping[DatasetId, list[str]],
    states: Mapping[str, tuple[str, Projection]],
) -> set[str]:
    """All that consumed a dataset, however far, by name in lower case; `consumers_of` tells."""
    found: set[str] = set()
    waiting = [dataset_id]
    while waiting:
        for name in consumers.get(waiting.pop(), ()):
            if name not in found:
                found.add(name)
                waiting.append(states[name][1].dataset_id)
    return found
