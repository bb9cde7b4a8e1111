"""Find drift: differences from the last definitions and runs.

Reads definitions, chains, Git and the log of runs; starts no engine and writes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from odfbuild.errors import ChainError, Code, IntegrityError, OdfbuildError
from odfbuild.inspect.verify.finding import Finding
from odfbuild.inspect.verify.integrity import verify_integrity
from odfbuild.inspect.verify.presence import missing_parts
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import ExecuteTransformInput
from odfbuild.plan.changes.definitions import ChangeKind, DefinitionChange
from odfbuild.plan.drift import ChainDrift, DriftCause
from odfbuild.project.model import Project
from odfbuild.project.overrides import NO_OVERRIDES, Overrides
from odfbuild.store.workspace import Workspace
from odfbuild.survey.authors import Authors
from odfbuild.survey.chain_drift import read_elsewhere
from odfbuild.survey.compare import compare_chains
from odfbuild.survey.definitions import look_at_definitions, renames_of
from odfbuild.survey.known_heads import KnownHead, departure, gone, known_heads
from odfbuild.survey.source_drift import source_drift
from odfbuild.values import Value


class Drifted(Value, kw_only=True):
    """What was looked at and what drifted, by dataset; `deep`: objects were hashed, too.

    `faults` are why definitions could not be compared with chains.
    """

    project: str
    datasets: tuple[str, ...]
    drifts: tuple[ChainDrift, ...]
    deep: bool
    faults: tuple[OdfbuildError, ...] = ()


def find_drift(
    start: Path | None,
    given: Overrides = NO_OVERRIDES,
    chosen: Collection[str] | None = None,
    *,
    deep: bool = False,
) -> Drifted:
    """All drift of the datasets `chosen` (default: all that are defined or have a chain).

    Objects are looked at by presence and size, with `deep` by their hashes. A chain that cannot be
    read is drift of bytes, and told as such only.
    """
    defined = look_at_definitions(start, given)
    project, workspace, projections = defined.project, defined.workspace, defined.projections
    config = project.config
    heads = workspace.heads()
    renames = renames_of(project, heads)
    names = _names(project, workspace, renames, chosen)
    known = known_heads(config)
    compared = compare_chains(defined)
    authors = Authors(config, workspace, known)
    found = [drift for change in compared.changes for drift in _of_change(change, authors)]
    found += _histories(workspace, projections, known, {d.name for d in project.definitions})
    found += source_drift(project, workspace, projections)
    damage = [*_bytes(workspace, [name for name in names if name in heads], deep)]
    found += damage
    told = {drift.dataset for drift in damage}
    faults = {n: e for n, e in compared.faults.items() if n not in told or not _is_damage(e)}
    # Names of one dataset before and after a pending rename stand for the same one.
    wanted = {*names, *(new for new, old in renames.items() if old in names)}
    order = {name: number for number, name in enumerate(sorted(wanted))}
    kept = sorted((d for d in found if d.dataset in wanted), key=lambda d: order[d.dataset])
    return Drifted(
        project=config.name,
        datasets=tuple(names),
        drifts=tuple(kept),
        deep=deep,
        faults=tuple(replace(compared, faults=faults).faults_of(chosen)),
    )


def _is_damage(error: OdfbuildError) -> bool:
    return isinstance(error, IntegrityError | ChainError)


def _names(
    project: Project,
    workspace: Workspace,
    renames: Mapping[str, str],
    chosen: Collection[str] | None,
) -> list[str]:
    present = {renames.get(d.name, d.name) for d in project.definitions}
    spelt = {name.lower(): name for name in (*present, *workspace.aliases())}
    return sorted(name for name in spelt.values() if chosen is None or name in chosen)


# --- Definitions ---


def _of_change(change: DefinitionChange, authors: Authors) -> Iterator[ChainDrift]:
    place = str(change.after.location) if change.after else None
    match change.kind:
        case ChangeKind.ADDED:
            yield ChainDrift(
                dataset=change.name,
                cause=DriftCause.NEVER_APPLIED,
                message="it is defined and has no chain",
                help=f"`odfbuild apply -s {change.name}` creates it",
                file=place,
            )
        case ChangeKind.REMOVED:
            yield ChainDrift(
                dataset=change.name,
                cause=DriftCause.NOT_DEFINED,
                message="it has a chain and no definition",
                help=f"`odfbuild import {change.name}` writes one; "
                "or remove the folder of its chain where nobody needs it",
            )
        case ChangeKind.RENAMED:
            yield ChainDrift(
                dataset=change.name,
                cause=DriftCause.NOT_APPLIED,
                message=f"it will be renamed from '{change.before and change.before.name}'",
                help=f"`odfbuild apply -s {change.name}` renames it",
                file=place,
            )
    if change.kind in (ChangeKind.CHANGED, ChangeKind.RENAMED):
        yield from authors.drifts(change)


# --- Histories ---


def _histories(
    workspace: Workspace,
    projections: Mapping[str, Projection],
    known: Mapping[str, KnownHead],
    defined: Collection[str],
) -> Iterator[ChainDrift]:
    chains = workspace.heads()
    for name, each in known.items():
        if name in projections:
            drift = departure(workspace.dataset(name), projections[name].head, each)
            if drift is not None:
                yield drift
        elif name in defined and name not in chains:
            yield gone(name, each)
    names = {state.dataset_id: name for name, state in projections.items()}
    for reader, state in projections.items():
        for consumed in state.consumed:
            source = names.get(consumed.dataset_id)
            if source is not None:
                yield from _read(workspace, reader, source, projections[source], consumed)


def _read(
    workspace: Workspace,
    reader: str,
    source: str,
    state: Projection,
    consumed: ExecuteTransformInput,
) -> Iterator[ChainDrift]:
    """Whether what a reader consumed is still there."""
    block = consumed.new_block_hash
    if block is None:
        return
    known = KnownHead(head=block, by=f"'{reader}'")
    if departure(workspace.dataset(source), state.head, known) is not None:
        yield read_elsewhere(source, reader)


# --- Bytes ---

_CAUSES = {
    "E0801": DriftCause.HASH,
    Code.BLOCK_MISSING: DriftCause.MISSING,
    Code.OBJECT_MISSING: DriftCause.MISSING,
    "E0812": DriftCause.SIZE,
    "E0813": DriftCause.HASH,
}


def _bytes(workspace: Workspace, names: Sequence[str], deep: bool) -> Iterator[ChainDrift]:
    if deep:
        yield from map(_damage, verify_integrity(workspace, names))
    else:
        for name in names:
            yield from map(_damage, missing_parts(workspace.dataset(name)))


def _damage(found: Finding) -> ChainDrift:
    return ChainDrift(
        dataset=found.dataset,
        cause=_CAUSES.get(found.code, DriftCause.DAMAGED),
        message=found.message,
        help=found.help,
        block=found.block,
        sequence_number=found.sequence_number,
        file=str(found.path) if found.path else None,
    )
