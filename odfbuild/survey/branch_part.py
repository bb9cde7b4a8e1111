"""What a plan in a branch is about, and what is not done there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from odfbuild.errors import BranchError, OdfbuildError
from odfbuild.odf.model import FetchStepMqtt, SetPollingSource
from odfbuild.store.branches import BranchInfo, Limit
from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.odf.chain.projection import Projection
    from odfbuild.plan.branch_scope import Scope
    from odfbuild.plan.changes.consent import Consent
    from odfbuild.plan.graph.dag import Graph
    from odfbuild.plan.model import Plan
    from odfbuild.project.model import Definition
    from odfbuild.store.dataset import DatasetStore


class BranchPart(Value, kw_only=True):
    """The part of a plan that belongs to the branch `name`; `held` are the datasets in it."""

    name: str
    held: Collection[str]
    scope: Scope
    is_selected: bool
    limit: Limit | None = None

    def chosen(self, names: Collection[str]) -> frozenset[str]:
        """Those of `names` that are planned: what the branch changes, or what is selected of it."""
        if not self.is_selected:
            return self.scope.names.intersection(names)
        return frozenset(names) - {each.dataset for each in self.scope.waiting}

    def refusals(self, definitions: Iterable[Definition]) -> dict[str, OdfbuildError]:
        """The sources that cannot be polled in a branch, by dataset."""
        return _refused_sources(definitions, self.name)

    def described(self, plan: Plan, chains: Mapping[str, Projection]) -> Plan:
        """The plan with what it says of its branch; nothing is published from there."""
        from odfbuild.plan.branch_scope import in_branch

        waiting = () if self.is_selected else self.scope.waiting
        about = in_branch(self.name, plan, chains, self.held, waiting, self.limit)
        return replace(plan, branch=about, publications=())


def branch_part(
    name: str,
    plan: Plan,
    graph: Graph,
    held: Collection[str],
    named: Iterable[Consent],
    *,
    is_selected: bool,
    limit: Limit | None,
) -> BranchPart:
    """What a plan in that branch is about, by the plan of all datasets.

    `named` are the datasets that options ask for.
    """
    from odfbuild.plan.branch_scope import scope_of

    asked = {each.name.lower() for each in named}
    scope = scope_of(plan, graph.inputs, held, asked)
    return BranchPart(name=name, held=held, scope=scope, is_selected=is_selected, limit=limit)


def check_limit(
    name: str, held: Iterable[str], store_of: Callable[[str], DatasetStore], limit: Limit | None
) -> None:
    """Raise `BranchError` E1108 unless all of a branch is computed under that limit."""
    for each in sorted(held):
        known = BranchInfo.read(store_of(each).folder, each, name).limit
        if known != limit:
            raise BranchError(
                f"the branch '{name}' is computed {_over(known)}, and not {_over(limit)}",
                code="E1108",
                dataset=each,
                help=f"give {known}"
                if known
                else f"use another branch, or `odfbuild branch delete {name}` first",
            )


def _over(limit: Limit | None) -> str:
    return "over all of its inputs" if limit is None else f"over part of its inputs ({limit})"


def no_branch(limit: Limit) -> BranchError:
    """The error for a limit outside of branches."""
    return BranchError(
        f"{limit} needs a branch: heads are computed from all records",
        code="E1109",
        help="add --branch NAME",
    )


def no_deletions(branch: str) -> BranchError:
    """The error for a deletion that is asked for in a branch."""
    return BranchError(
        f"no dataset is deleted in the branch '{branch}'",
        code="E1105",
        notes=("a branch consists of references; a deletion takes the chain away for everyone",),
        help="promote the branch, then run `odfbuild apply --allow delete:NAME` without --branch",
    )


def _refused_sources(definitions: Iterable[Definition], branch: str) -> dict[str, OdfbuildError]:
    """The sources that cannot be polled in a branch, by dataset."""
    return {
        each.name: BranchError(
            f"'{each.name}' takes messages from a broker, which hands each of them over only once",
            code="E1106",
            dataset=each.name,
            location=each.location,
            notes=(f"what the branch '{branch}' took would be missing on the head",),
            help=f"change it on the head, or leave it out: --exclude {each.name}",
        )
        for each in definitions
        for event in each.snapshot.metadata
        if isinstance(event, SetPollingSource) and isinstance(event.fetch, FetchStepMqtt)
    }
