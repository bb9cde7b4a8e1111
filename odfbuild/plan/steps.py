"""What `apply` does to a dataset, step by step: decided with the plan, carried out by `apply`.

Each step is a value. Nothing here reads or writes anything.
"""

from __future__ import annotations

from odfbuild.odf.model import DatasetKind
from odfbuild.odf.multihash import Multihash
from odfbuild.plan.model import Action, DatasetPlan, replays
from odfbuild.values import Value


class Delete(Value):
    """Delete the chain and its folder."""


class Rename(Value):
    """Give the dataset `before` its new name, also where its pushed files wait."""

    before: str


class StartAgain(Value):
    """Continue from the block `onto` (`None`: from the seed), without what came after it.

    The first commit moves the head, so the chain has the old history or the new one. It `drops`
    what was committed, unless it is a branch that continues from a head which moved.
    """

    onto: Multihash | None = None
    drops: bool = True


class Define(Value):
    """Begin a transaction with the changed definition."""


class CheckRights(Value):
    """Make sure that personal columns can be read and encrypted here."""


class Ingest(Value):
    """Commit what is waiting; if it `reads`, with new records of the source."""

    reads: bool


class Publish(Value):
    """Take over new blocks of the dataset `of` into a portal, if it `reads`."""

    of: str
    reads: bool


class Derive(Value):
    """Compute the result for new records of the inputs, a slice for each step."""


Step = Delete | Rename | StartAgain | Define | CheckRights | Ingest | Publish | Derive


def steps_of(item: DatasetPlan, *, exists: bool, portal_of: str | None = None) -> tuple[Step, ...]:
    """The steps of one dataset in order; none for a dataset that is refused.

    `exists`: it has a chain, under this or its former name. `portal_of` is the dataset that a
    portal follows.
    """
    if item.refusal is not None:
        return ()
    if Action.DELETE in item.actions:
        return (Delete(),)
    steps: list[Step] = []
    if item.renamed_from is not None:
        steps.append(Rename(item.renamed_from))
    if exists and Action.REBUILD in item.actions:
        steps.append(StartAgain())
    if exists and item.promoted is not None and replays(item):
        steps.append(StartAgain(item.promoted.onto, drops=False))
    steps.append(Define())
    reads = not {Action.RUN, Action.POLL}.isdisjoint(item.actions)
    if reads:
        steps.append(CheckRights())
    if portal_of is not None:
        steps.append(Publish(portal_of, reads))
    elif item.kind is DatasetKind.Root:
        steps.append(Ingest(reads))
    else:
        steps.append(Derive())
    return tuple(steps)
