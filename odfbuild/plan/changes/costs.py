"""Costs of the alternatives to a breaking change: records and downstream datasets. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from odfbuild.errors import PlanError
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import DatasetKind
from odfbuild.plan.readers import all_readers, consumers_of
from odfbuild.wording import count

_BREAKING = frozenset({"E0303", "E0304", "E0309", "E0312", "E0314", "E0315"})
_LISTED = 5


def with_costs(
    refusal: PlanError | None, name: str, states: Mapping[str, Projection]
) -> PlanError | None:
    """The refusal of a change with what a new name, and computing again, would cost.

    `states` are the chains by alias in lower case. Looks at all of them: only for what is refused.
    """
    state = states.get(name.lower())
    if refusal is None or refusal.code not in _BREAKING or state is None or not state.records:
        return refusal
    by_name = {alias: (alias, each) for alias, each in states.items()}
    readers = sorted(all_readers(state.dataset_id, consumers_of(states), by_name))
    own = count(state.records, "record")
    many = count(len(readers), "downstream dataset")
    stay = f"; still reading the old history: {_listed(readers)}" if readers else ""
    if state.kind is DatasetKind.Root:
        costs = [f"a new name starts without {own}{stay}"]
    else:
        costs = [f"a new name recomputes {own}{stay}"]
        theirs = sum(states[reader].records for reader in readers)
        of_readers = f", and {count(theirs, 'record')} of {many}" if readers else ""
        costs.append(f"a rebuild drops {own}{of_readers}")
    return refusal.noted(*(f"cost: {each}" for each in costs))


def _listed(names: list[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "")
