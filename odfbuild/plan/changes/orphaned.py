"""Orphaned chains: those of datasets whose definition was removed from the project.

Nothing happens to them. Names the datasets that still read such a chain, and a new dataset that
looks like the old one under another name, which would start a new history unnoticed. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import (
    AddPushSource,
    DatasetKind,
    DatasetSnapshot,
    SetPollingSource,
    SetTransform,
)
from odfbuild.plan.changes.equality import canonical, unpinned
from odfbuild.plan.model import Action, DatasetPlan, Reason, ReasonCode

_NO_DEFINITION = Reason(
    code=ReasonCode.NO_DEFINITION,
    message="it has a chain and no definition; nothing is deleted",
)


def orphaned(chains: Mapping[str, Projection], planned: Sequence[DatasetPlan]) -> list[DatasetPlan]:
    """The plans of `chains`, by name, that have no definition, beside those that have one."""
    if not chains:
        return []
    readers = _readers(chains, planned)
    twins = _twins(chains, [each for each in planned if Action.CREATE in each.actions])
    return [
        DatasetPlan(
            name=name,
            kind=state.kind,
            id=state.dataset_id,
            expected_head=state.head,
            actions=(Action.FORGET,),
            reasons=(_NO_DEFINITION, *readers.get(name, ()), *twins.get(name, ())),
        )
        for name, state in sorted(chains.items())
    ]


def _readers(
    chains: Mapping[str, Projection], planned: Sequence[DatasetPlan]
) -> dict[str, tuple[Reason, ...]]:
    by_key = {name.lower(): name for name in chains}
    found: dict[str, list[str]] = {}
    for dataset in planned:
        for each in dict.fromkeys(dataset.inputs):
            name = by_key.get(each.lower())
            if name is not None:
                found.setdefault(name, []).append(dataset.name)
    return {name: (_still_read(readers),) for name, readers in found.items()}


def _still_read(readers: Sequence[str]) -> Reason:
    named = ", ".join(readers[:3]) + (f" and {len(readers) - 3} more" if len(readers) > 3 else "")
    verb = "reads it and gets" if len(readers) == 1 else "read it and get"
    return Reason(code=ReasonCode.STILL_READ, message=f"{named} {verb} no new records from it")


def _twins(
    chains: Mapping[str, Projection], created: Sequence[DatasetPlan]
) -> dict[str, tuple[Reason, ...]]:
    """New datasets that are defined as one chain was made; a likeness to several says nothing."""
    if not created:
        return {}
    new: dict[object, list[str]] = {}
    for dataset in created:
        if dataset.snapshot is not None:
            new.setdefault(_made_by(dataset.snapshot), []).append(dataset.name)
    old: dict[object, list[str]] = {}
    for name, state in chains.items():
        old.setdefault(_was_made_by(state), []).append(name)
    return {
        names[0]: (_looks_renamed(names[0], new[key][0]),)
        for key, names in old.items()
        if len(names) == len(new.get(key, ())) == 1
    }


def _looks_renamed(old: str, new: str) -> Reason:
    return Reason(
        code=ReasonCode.LOOKS_RENAMED,
        message=f"{new} has the same definition and starts a new history; to continue this one, "
        "add "
        f"`moved: {{{old}: {new}}}` in odfbuild.yaml",
    )


def _made_by(snapshot: DatasetSnapshot) -> object:
    events = snapshot.metadata
    polling = [each for each in events if isinstance(each, SetPollingSource)]
    transform = [each for each in events if isinstance(each, SetTransform)]
    pushed = [each for each in events if isinstance(each, AddPushSource)]
    return _key(
        snapshot.kind,
        polling[-1] if polling else None,
        transform[-1] if transform else None,
        pushed,
    )


def _was_made_by(state: Projection) -> object:
    pushed = list(state.push_sources.values())
    transform = unpinned(state.transform) if state.transform is not None else None
    return _key(state.kind, state.polling_source, transform, pushed)


def _key(
    kind: DatasetKind,
    polling: SetPollingSource | None,
    transform: SetTransform | None,
    pushed: Sequence[AddPushSource],
) -> object:
    """Equal for what brings or computes the same; inputs may have been renamed as well."""
    query = None
    if transform is not None:
        query = (canonical(transform.transform), tuple(each.alias for each in transform.inputs))
    source = canonical(polling) if polling is not None else None
    return repr((kind, source, query, sorted(repr(canonical(each)) for each in pushed)))
