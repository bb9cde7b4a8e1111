"""Datasets of others in a plan: what is pinned of them, and what is published. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from odfbuild.odf.chain.projection import Projection
from odfbuild.plan.model import Action, DatasetPlan, PinnedDataset, Publication
from odfbuild.project.settings.by_name import last_matching
from odfbuild.project.settings.sharing import Publishing


def pinned_datasets(
    declared: Mapping[str, str],
    chains: Mapping[str, Projection],
    pulled_from: Callable[[str], str | None],
    left_out: Collection[str] = (),
) -> tuple[PinnedDataset, ...]:
    """What is `declared`, with references by name, and which of `chains` were pulled; sorted.

    `chains` have no definition; `pulled_from` tells where one comes from.
    """
    spelt = {name.lower(): name for name in chains}
    found = {spelt.get(name.lower(), name): reference for name, reference in declared.items()}
    for name in chains:
        reference = None if name in found else pulled_from(name)
        if reference is not None:
            found[name] = reference
    return tuple(
        _pinned(name, reference, chains.get(name))
        for name, reference in sorted(found.items())
        if name not in left_out
    )


def _pinned(name: str, reference: str, state: Projection | None) -> PinnedDataset:
    if state is None:
        return PinnedDataset(name=name, reference=reference)
    return PinnedDataset(
        name=name,
        reference=reference,
        id=state.dataset_id,
        head=state.head,
        blocks=state.blocks,
        records=state.records,
        watermark=state.watermark,
    )


def publications(
    planned: Iterable[DatasetPlan], rules: Iterable[Publishing]
) -> tuple[Publication, ...]:
    """What is published after an apply: datasets that stay and are not refused, and where to."""
    found = []
    for dataset in planned:
        if {Action.REFUSE, Action.DELETE, Action.FORGET}.isdisjoint(dataset.actions):
            rule = last_matching(rules, dataset.name)
            if rule is not None:
                found.append(Publication(dataset=dataset.name, repository=rule.to))
    return tuple(found)
