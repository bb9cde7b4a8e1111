"""`--allow rebuild`: rebuild derivatives from the start, by name.

The history of a rebuilt dataset starts over after its seed, so its downstream datasets must be
rebuilt, too; all of them have to be named.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from odfbuild.errors import PlanError
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import DatasetKind
from odfbuild.plan.changes.consent import Consent
from odfbuild.plan.changes.diff import committed
from odfbuild.plan.model import Action, DatasetPlan, Reason, ReasonCode
from odfbuild.plan.readers import all_readers, consumers_of
from odfbuild.project.model import Definition
from odfbuild.wording import did_you_mean, named


def to_rebuild(
    requests: Iterable[Consent],
    definitions: Iterable[Definition],
    projections: Mapping[str, Projection],
    left_out: Collection[str] = (),
    deleted: Collection[str] = (),
) -> frozenset[str]:
    """Names in lower case of the datasets that these requests are about; those without a chain not.

    Raises `PlanError` when a name is unknown, of a root or not selected, and when a reader of one
    of them is neither among them nor `deleted`: it could never be verified again.
    """
    defined = {definition.name.lower(): definition for definition in definitions}
    states = {name.lower(): (name, state) for name, state in projections.items()}
    consumers = consumers_of(projections)
    asked: dict[str, Consent] = {}
    for request in requests:
        folded = request.name.lower()
        if folded not in defined:
            raise _unknown(request.name, [each.name for each in defined.values()])
        asked[folded] = request
        if request.readers and folded in states:
            for reader in all_readers(states[folded][1].dataset_id, consumers, states):
                if reader in defined:
                    asked.setdefault(reader, Consent(defined[reader].name))
    wanted = frozenset(name for name in asked if name in states)
    for name in wanted:
        alias, state = states[name]
        if DatasetKind.Root in (state.kind, defined[name].snapshot.kind):
            raise _is_root(alias)
        if alias in left_out:
            raise not_selected(alias, "rebuilt")
        readers = all_readers(state.dataset_id, consumers, states) - wanted
        missing = sorted(states[r][0] for r in readers if r in defined)
        if missing:
            raise _readers_missing(alias, missing)
        orphaned = sorted({states[r][0] for r in readers}.difference(deleted))
        if orphaned:
            raise _orphaned_readers(alias, orphaned)
    return wanted


def as_rebuild(fresh: DatasetPlan, state: Projection, by: str | None = None) -> DatasetPlan:
    """The plan of a rebuild, from what would be planned if the dataset had no chain yet.

    `by` says which setting asks for it, if it was no option.
    """
    if fresh.refusal is not None:
        return replace(fresh, id=state.dataset_id, expected_head=state.head)
    again = Reason(
        code=ReasonCode.REBUILD,
        message=f"{by or '--allow rebuild is given'}: {state.records:,} records are dropped and "
        "recomputed",
    )
    implied = (ReasonCode.NEW, ReasonCode.NEVER_RUN)
    return replace(
        fresh,
        id=state.dataset_id,
        expected_head=state.head,
        actions=tuple(Action.REBUILD if a is Action.CREATE else a for a in fresh.actions),
        reasons=(again, *(r for r in fresh.reasons if r.code not in implied)),
        changes=tuple(
            replace(change, before=committed(change.after, state)) for change in fresh.changes
        ),
    )


def _unknown(name: str, known: list[str]) -> PlanError:
    return PlanError(
        f"there is no definition of '{name}' to rebuild",
        code="E0335",
        dataset=name,
        help=did_you_mean(name, known, "`odfbuild ls` lists all datasets"),
    )


def _is_root(name: str) -> PlanError:
    return PlanError(
        f"'{name}' is a root: it cannot be recomputed from inputs",
        code="E0336",
        dataset=name,
        notes=("what its source no longer offers would be lost",),
        help=f"`odfbuild reset {name}` drops its records, if that is intended",
    )


def not_selected(name: str, what: str) -> PlanError:
    """The error about a dataset that is to be rebuilt or deleted, and left out."""
    return PlanError(
        f"'{name}' is to be {what}, but not selected",
        code="E0338",
        dataset=name,
        help=f"select it, too: `--select {name}`",
    )


def _readers_missing(name: str, missing: list[str]) -> PlanError:
    return PlanError(
        f"'{name}' cannot be rebuilt alone: {named(missing)} consumed its records",
        code="E0337",
        dataset=name,
        help=f"rebuild all of them: --allow rebuild:{name}+",
    )


def _orphaned_readers(name: str, orphaned: list[str]) -> PlanError:
    consents = " ".join(f"--allow delete:{each}" for each in orphaned)
    return PlanError(
        f"'{name}' cannot be rebuilt as long as there is {named(orphaned)}, which nothing defines "
        "and which consumed its records",
        code="E0337",
        dataset=name,
        notes=("its records could no longer be reproduced",),
        help=f"define it again, or delete it too: {consents}",
    )
