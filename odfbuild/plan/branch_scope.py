"""Which datasets an apply in a branch is about.

Those whose definitions changed, those that are in the branch already, and all that read them. What
is only behind its sources or inputs stays as it is on the head. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping

from odfbuild.odf.chain.projection import Projection
from odfbuild.plan.branch import InBranch, Start, Waiting
from odfbuild.plan.model import Action, DatasetPlan, Plan, ReasonCode
from odfbuild.store.branches import Limit
from odfbuild.values import Value

_CHANGES = frozenset({Action.CREATE, Action.APPEND, Action.REBUILD})
_NOT_OF_DEFINITIONS = frozenset(
    {
        ReasonCode.SOURCE_REFUSED,
        ReasonCode.SOURCE_MISSING,
        ReasonCode.INPUT_REFUSED,
        ReasonCode.INPUT_REWRITTEN,
    }
)
"""Why datasets are refused that no definition changed."""


class Scope(Value):
    """Names of the datasets that are planned, and those whose changes wait for the head."""

    names: frozenset[str]
    waiting: tuple[Waiting, ...]


def scope_of(
    plan: Plan,
    inputs: Mapping[str, Iterable[str]],
    held: Container[str],
    named: Collection[str] = (),
) -> Scope:
    """What a branch is about, by the plan of all datasets, inputs first.

    `inputs` are those of each dataset, `held` those that are in the branch, `named` those that
    options ask for, in lower case.
    """
    found: set[str] = set()
    waiting: dict[str, str] = {}
    for each in plan.datasets:
        name = each.name
        read = set(inputs.get(name, ()))
        if each.renamed_from is not None:
            waiting[name] = f"'{each.renamed_from}' gets this name on the head"
        elif Action.FORGET in each.actions:
            waiting[name] = "its definition was removed, and chains are deleted on the head"
        elif _is_changed(each) or name in held or name.lower() in named or read & found:
            first = min(read & waiting.keys(), default=None)
            if first is None:
                found.add(name)
            else:
                waiting[name] = f"it reads '{first}', which waits"
    return Scope(
        frozenset(found), tuple(Waiting(dataset=name, why=why) for name, why in waiting.items())
    )


def in_branch(
    name: str,
    plan: Plan,
    chains: Mapping[str, Projection],
    held: Container[str],
    waiting: tuple[Waiting, ...],
    limit: Limit | None,
) -> InBranch:
    """What a plan says of its branch."""
    starts = [
        Start(
            dataset=each.name,
            block=each.expected_head,
            sequence_number=chains[each.name].blocks - 1,
            in_branch=each.name in held,
        )
        for each in plan.datasets
        if each.expected_head is not None and each.actions and each.name in chains
    ]
    return InBranch(name=name, starts=tuple(starts), waiting=waiting, limit=limit)


def _is_changed(dataset: DatasetPlan) -> bool:
    if dataset.refusal is None:
        return not _CHANGES.isdisjoint(dataset.actions)
    return not {reason.code for reason in dataset.reasons} <= _NOT_OF_DEFINITIONS
