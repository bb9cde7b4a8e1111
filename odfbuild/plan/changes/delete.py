"""`--allow delete`: delete orphaned chains by name.

Removing a definition deletes nothing. A deletion is refused while the dataset has a definition, or
while a dataset that stays has consumed its records.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from odfbuild.errors import PlanError
from odfbuild.odf.chain.projection import Projection
from odfbuild.plan.changes.consent import Consent
from odfbuild.plan.changes.rebuild import not_selected
from odfbuild.plan.model import Action, DatasetPlan, Reason, ReasonCode
from odfbuild.plan.readers import all_readers, consumers_of
from odfbuild.project.model import Definition
from odfbuild.wording import count, did_you_mean, named


def to_delete(
    requests: Iterable[Consent],
    definitions: Iterable[Definition],
    projections: Mapping[str, Projection],
    left_out: Collection[str] = (),
) -> tuple[str, ...]:
    """Names of the datasets that these requests are about, readers first.

    Raises `PlanError` E0390 for a name without a chain, E0391 for one that is defined, E0392 when
    something that stays has consumed it, E0338 for one that is not selected.
    """
    defined = {each.name.lower(): each for each in definitions}
    states = {name.lower(): (name, state) for name, state in projections.items()}
    consumers = consumers_of(projections)
    wanted: set[str] = set()
    for request in requests:
        folded = request.name.lower()
        if folded not in states:
            raise _unknown(request.name, [n for n in projections if n.lower() not in defined])
        wanted.add(folded)
        if request.readers:
            wanted |= all_readers(states[folded][1].dataset_id, consumers, states)
    behind = {
        name: all_readers(states[name][1].dataset_id, consumers, states) - {name} for name in wanted
    }
    for name in sorted(wanted):
        if name in defined:
            raise _is_defined(defined[name])
        if states[name][0] in left_out:
            raise not_selected(states[name][0], "deleted")
        staying = behind[name] - wanted
        if staying:
            raise still_read(states[name][0], sorted(states[each][0] for each in staying))
    # Whoever reads a dataset has fewer readers than it.
    order = sorted(wanted, key=lambda name: (len(behind[name]), name))
    return tuple(states[name][0] for name in order)


def as_deletion(name: str, state: Projection, branches: Sequence[str] = ()) -> DatasetPlan:
    """The plan of a chain that goes, also from the `branches` that it is in."""
    noun = "branch" if len(branches) == 1 else "branches"
    also = f", also from the {noun} {named(branches)}" if branches else ""
    asked = Reason(
        code=ReasonCode.DELETE,
        message=f"--allow delete is given: {count(state.records, 'record')} and their history "
        f"are removed{also}",
    )
    return DatasetPlan(
        name=name,
        kind=state.kind,
        id=state.dataset_id,
        expected_head=state.head,
        actions=(Action.DELETE,),
        reasons=(asked,),
    )


def _unknown(name: str, known: list[str]) -> PlanError:
    return PlanError(
        f"there is no chain of '{name}' to delete",
        code="E0390",
        dataset=name,
        help=did_you_mean(name, known, "`odfbuild plan` lists chains without a definition"),
    )


def _is_defined(definition: Definition) -> PlanError:
    return PlanError(
        f"'{definition.name}' has a definition, so the next apply would create it again",
        code="E0391",
        location=definition.location,
        dataset=definition.name,
        help="remove its definition and those of its downstream datasets, then repeat the command",
    )


def still_read(name: str, readers: list[str]) -> PlanError:
    """The error about a dataset that is to be deleted, and whose `readers` are to stay."""
    return PlanError(
        f"'{name}' cannot be deleted alone: {named(readers)} consumed its records",
        code="E0392",
        dataset=name,
        notes=("their records could no longer be reproduced",),
        help=f"delete all of them: --allow delete:{name}+",
    )
