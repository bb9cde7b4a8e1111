"""Withdraw objects that a plan says are due: a signed statement first, then the objects go.

A process that is killed in between leaves the statement, and objects that nobody reads any more;
`gc` removes them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from odfbuild.errors import OdfbuildError, StaleHeadError
from odfbuild.ingest.unexpected_errors import unforeseen
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.stewardship import Withdrawal
from odfbuild.odf.timestamp import Timestamp
from odfbuild.plan.retention import DueWithdrawal, Old, old_slices
from odfbuild.project.git.person import who_acts
from odfbuild.store.claims import Waiting, held_elsewhere
from odfbuild.store.stewardship import sign_statement, withdrawals
from odfbuild.store.storage import ObjectKind
from odfbuild.survey.outcome import WithdrawalOutcome
from odfbuild.survey.retention import why_not

if TYPE_CHECKING:
    from odfbuild.plan.model import Plan
    from odfbuild.project.model import Project
    from odfbuild.store.dataset import DatasetStore
    from odfbuild.store.workspace import Workspace


def withdraw_due(
    plan: Plan, project: Project, workspace: Workspace, waiting: Waiting
) -> tuple[WithdrawalOutcome, ...]:
    """Withdraw what is allowed, dataset by dataset; never raises for the failure of one."""
    found = []
    for due in plan.retention:
        if not due.allowed:
            continue
        try:
            found.append(_withdraw(due, plan, project, workspace, waiting))
        except OdfbuildError as error:
            found.append(WithdrawalOutcome(dataset=due.dataset, error=error))
        except Exception as error:  # a defect of ours must not stop the others
            defect = unforeseen(
                error, project.config.cache, f"withdrawing records of '{due.dataset}'", due.dataset
            )
            found.append(WithdrawalOutcome(dataset=due.dataset, error=defect))
    return tuple(found)


def _withdraw(
    due: DueWithdrawal, plan: Plan, project: Project, workspace: Workspace, waiting: Waiting
) -> WithdrawalOutcome:
    if due.refusal is not None:
        raise due.refusal
    name = due.dataset
    with workspace.claim([name], waiting) as claim:
        if name in claim.held:
            raise held_elsewhere(name, claim.held[name])
        store, state = workspace.dataset(name), workspace.projection(name)
        said = withdrawals(store.statements())
        if all(each.through != due.through for each in said):
            old = None if state is None else _still_due(store, due, {e.through for e in said})
            if state is None or old is None:
                raise StaleHeadError(
                    f"the history of '{name}' was changed since the plan was made",
                    code="E0701",
                    dataset=name,
                    help="run `odfbuild plan` again",
                )
            # Since the plan was made, somebody else may have come to need them.
            inputs = {each.name: each.inputs for each in plan.datasets}
            need = why_not(name, store, state, old, workspace.readable(), inputs)
            if need is not None:
                raise need
            statement = Withdrawal(
                dataset_id=state.dataset_id,
                time=Timestamp.now(),
                by=who_acts(project.config.root),
                why=due.why,
                through=due.through,
                number=due.number,
                records=due.records,
            )
            store.add_statements([sign_statement(workspace.private_keys, statement, name)])
        remove_withdrawn(workspace, name)
    return WithdrawalOutcome(dataset=name, objects=due.objects, records=due.records)


def _still_due(store: DatasetStore, due: DueWithdrawal, ends: Collection[object]) -> Old | None:
    """The slices that are due up to the same block; `None`: it is not in the history."""
    head = store.head()
    links = [] if head is None else list(store.walk(head))
    at = next((n for n, (hash, _) in enumerate(links) if hash == due.through), None)
    if at is None:
        return None
    later = Timestamp(due.until.ns + 1)
    return old_slices(links[at:], later, {hash for hash, _ in links if hash in ends})


def remove_withdrawn(workspace: Workspace, name: str) -> None:
    """Remove the objects that the owner of a dataset withdrew: here, and from the storage.

    Side-cars, which hold copies of records, go with them; they are made again when needed. What
    another dataset of this project refers to stays in the storage.
    """
    import shutil

    store = workspace.dataset(name)
    withdrawn = store.withdrawn()
    if not withdrawn:
        return
    if store.storage is not None:
        store.storage.remove(withdrawn.keys() - _of_others(workspace, name))
    for kind, hash in withdrawn:
        store.object_path(kind, hash).unlink(missing_ok=True)
    shutil.rmtree(workspace.cache / "side-cars" / name, ignore_errors=True)


def _of_others(workspace: Workspace, name: str) -> set[tuple[ObjectKind, Multihash]]:
    """The objects that the other datasets of a project refer to."""
    from odfbuild.store.garbage import reachable

    found: set[tuple[ObjectKind, Multihash]] = set()
    for other in workspace.aliases():
        head = workspace.dataset(other).head()
        if other != name and head is not None:
            named = reachable(workspace.dataset(other), head)
            found |= {("data", each) for each in named.data}
            found |= {("checkpoints", each) for each in named.checkpoints}
    return found
