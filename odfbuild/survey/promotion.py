"""Collect what a promotion is decided by, and plan it. Reads chains only: no definitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from odfbuild.engine.step_limits import limit_of_step
from odfbuild.errors import BranchError, OdfbuildError
from odfbuild.exchange.repositories.accept import records_in
from odfbuild.exchange.repositories.fetch_on_demand import workspace_of
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.chain.step import interval_between, next_step
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import (
    AddData,
    ExecuteTransform,
    ExecuteTransformInput,
    MetadataBlock,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.plan.changes.consent import Consent
from odfbuild.plan.external import publications
from odfbuild.plan.model import Action, DatasetPlan, Plan, drops_history
from odfbuild.plan.promotion import Branched, Read, plan_promotion
from odfbuild.plan.readers import consumers_of
from odfbuild.project.model import Config, Project
from odfbuild.project.settings.policy import OnQueryChange, on_query_change
from odfbuild.store.branches import BranchName, BranchRef
from odfbuild.store.cache import project
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.moving_heads import unfinished
from odfbuild.store.workspace import Workspace
from odfbuild.survey.approved import Approved
from odfbuild.survey.protection import check_unprotected
from odfbuild.survey.runs import past_runs

if TYPE_CHECKING:
    from odfbuild.plan.graph.selection import Selection
    from odfbuild.plan.subset import Subset


def survey_promotion(
    config: Config,
    branch: str,
    selection: Selection | None = None,
    consents: Iterable[Consent] = (),
    forward: Iterable[Consent] = (),
) -> tuple[Approved, Subset | None]:
    """The plan of a promotion, and what a selection takes of it.

    `onQueryChange` in odfbuild.yaml gives consents, too, but for datasets that go `forward`.
    `BranchError` E1102 when there is no such branch, also because it was promoted before: a name
    that is misspelt must not look like success.
    """
    config = config.on_head
    ours, main = in_branch(config, BranchName.parse(branch)), workspace_of(config)
    try:
        ours.check_branch()
    except BranchError as error:
        raise _if_promoted(error, config, branch) from None
    refs = ours.branches()[branch]
    states = ours.projections(refs)
    found = _Facts(refs, states, ours, main)
    plan = plan_promotion(
        branch,
        config.name,
        config.env,
        [found.of(name) for name in _inputs_first(states)],
        found.readers,
        consents,
        _on_change(config, states, forward),
    )
    plan = replace(plan, datasets=tuple(_unprotected(config, main, each) for each in plan.datasets))
    part = _selected(plan, selection, config) if selection else None
    plan = part.plan if part else plan
    plan = replace(plan, publications=publications(plan.datasets, config.publish))
    if config.tables:
        from odfbuild.exchange.tables.planned import with_tables

        plan = with_tables(plan, config, main, main.projections())
    project_ = Project(config=config, definitions=())
    return Approved(plan=plan, project=project_, workspace=main), part


def _if_promoted(error: BranchError, config: Config, branch: str) -> OdfbuildError:
    """`error`, that there is no such branch, with when it was promoted, if a run log tells."""
    done = [run for run in past_runs(config.cache) if run.promotes == branch and not run.exit_code]
    if not done:
        return error
    return error.noted(
        f"it was promoted at {done[-1].finished} (run {done[-1].id}): the heads have what it had"
    ).changed(help="nothing is left to do; a job that is run again can skip this step")


def _on_change(
    config: Config, names: Iterable[str], forward: Iterable[Consent]
) -> dict[str, tuple[OnQueryChange, str]]:
    """What `onQueryChange` says about datasets that no option is about."""
    if all(each.on_query_change is None for each in config.policies):
        return {}
    from odfbuild.survey.query_policy import setting

    decided = {each.name.lower() for each in forward}
    found = {name.lower(): on_query_change(config.policies, name) for name in names}
    return {
        name: (said[0], setting(config, said[1]))
        for name, said in found.items()
        if said is not None and name not in decided
    }


def check_finished(workspace: Workspace, branch: str | None = None) -> None:
    """`BranchError` E1129 when a promotion was killed that is not the one of `branch`."""
    found = unfinished(workspace)
    if found is None or found.branch == branch:
        return
    raise BranchError(
        f"the promotion of the branch '{found.branch}' was interrupted: {len(found.moved)} of "
        f"{len(found.names)} heads have moved",
        code="E1129",
        help=f"finish it: `odfbuild promote {found.branch}`",
    )


def in_branch(config: Config, branch: str) -> Workspace:
    """The chains of a project as they are in a branch."""
    return workspace_of(replace(config, given=replace(config.given, branch=branch)))


def _inputs_first(states: Mapping[str, Projection]) -> list[str]:
    names = {state.dataset_id: name for name, state in states.items()}
    found: dict[str, None] = {}

    def visit(name: str) -> None:
        if name in found:
            return
        transform = states[name].transform
        for each in transform.inputs if transform else ():
            if isinstance(each.dataset_ref, DatasetId) and each.dataset_ref in names:
                visit(names[each.dataset_ref])
        found[name] = None

    for name in sorted(states):
        visit(name)
    return list(found)


def _unprotected(config: Config, main: Workspace, item: DatasetPlan) -> DatasetPlan:
    if not drops_history(item):
        return item
    try:
        check_unprotected(config, main, item.name)
    except OdfbuildError as error:
        return replace(item, actions=(Action.REFUSE,), pending=None, changes=(), refusal=error)
    return item


def _selected(plan: Plan, selection: Selection, config: Config) -> Subset:
    """The selected part, with the inputs that the branch has, and all readers of what was rebuilt.

    Those read a history that the head gets only by this promotion.
    """
    from odfbuild.plan.graph.selection import Selection
    from odfbuild.plan.subset import subset
    from odfbuild.survey.selectable import selected_of_plan

    chosen = {each.name for each in plan.datasets}
    if selection.select:
        chosen = set(selected_of_plan(Selection(select=selection.select), plan, config))
    excluded: frozenset[str] = frozenset()
    if selection.exclude:
        excluded = selected_of_plan(Selection(select=selection.exclude), plan, config)
    rebuilt = {each.name for each in plan.datasets if drops_history(each)}
    for each in plan.datasets:  # inputs first
        if rebuilt.intersection(each.inputs) & chosen:
            chosen.add(each.name)
    return subset(plan, chosen, excluded)


class _Facts:
    """What is known of the datasets of a branch."""

    def __init__(
        self,
        refs: Mapping[str, BranchRef],
        states: Mapping[str, Projection],
        ours: Workspace,
        main: Workspace,
    ) -> None:
        self._refs = refs
        self._states = states
        self._ours = ours
        self._heads = main.readable()
        self._names = {state.dataset_id: name for name, state in self._heads.items()}
        self._names |= {state.dataset_id: name for name, state in states.items()}
        self.readers = consumers_of(self._heads)

    def of(self, name: str) -> Branched:
        """The facts about one dataset."""
        ref, branch, main = self._refs[name], self._states[name], self._heads.get(name)
        store = self._ours.dataset(name)
        links = _history(store, branch.head, ref.base)
        ours = {hash for hash, _ in links}
        there: list[Multihash] = []
        same = main is not None and main.dataset_id == branch.dataset_id
        if main is not None and same and main.head not in ours:
            there = [hash for hash, _ in _history(store, main.head, ref.base)]
        elif main is not None and same:
            there = [main.head]
        common = next((hash for hash, _ in links if hash in there), None)
        own = links[: next((n for n, (hash, _) in enumerate(links) if hash == common), None)]
        reached = _reaches(store, main.head if main else None, ref.base)
        return Branched(
            name=name,
            branch=branch,
            main=main,
            base=ref.base,
            left=self._left(store, ref.base if reached else common, main),
            has_base=ref.base is None or _reaches(store, branch.head, ref.base),
            main_has_base=ref.base is None or reached,
            has_main=main is None or (same and _reaches(store, branch.head, main.head)),
            in_main=main is not None and same and _reaches(store, main.head, branch.head),
            blocks=sum(hash != ref.base for hash, _ in own),
            records=sum(records_in(block) for hash, block in own if hash != ref.base),
            limit=_limit(store, ref, own),
            pushed=branch.polling_source is None and any(map(_is_pushed, own)),
            reads=tuple(self._reads(branch)),
        )

    def _left(
        self, store: DatasetStore, block: Multihash | None, main: Projection | None
    ) -> Projection | None:
        if block is None or (main is not None and main.head == block):
            return main if block is not None else None
        return project(store, block, None)

    def _reads(self, branch: Projection) -> Iterable[Read]:
        consumed = {each.dataset_id: each for each in branch.inputs}
        for declared in branch.transform.inputs if branch.transform else ():
            id = declared.dataset_ref
            if not isinstance(id, DatasetId):
                raise AssertionError("committed inputs are identified by DID")
            name = self._names.get(id)
            if name is None:
                yield Read(id=id, name=None)
                continue
            before, main = consumed.get(id), self._heads.get(name)
            block = before.new_block_hash if before else None
            there = self._states.get(name)
            store = self._ours.dataset(name)
            in_branch = there is not None and (block is None or _reaches(store, there.head, block))
            yield Read(
                id=id,
                name=name,
                in_branch=in_branch,
                in_main=main is not None and (block is None or _reaches(store, main.head, block)),
                is_behind=in_branch and there is not None and _is_behind(store, there, before),
                main_offset=main.last_offset if main else None,
                main_records=main.records if main else 0,
            )


Links = list[tuple[Multihash, MetadataBlock]]


def _history(store: DatasetStore, head: Multihash, base: Multihash | None) -> Links:
    """Blocks from `head` down to `base`, both included; to the seed where `base` is not there."""
    found: Links = []
    for hash, block in store.walk(head):
        found.append((hash, block))
        if hash == base:
            break
    return found


def _limit(store: DatasetStore, ref: BranchRef, own: Links) -> str | None:
    """Which part of its inputs the branch read; its chain says so even if its file does not."""
    if ref.limit is not None:
        return str(ref.limit)
    for _, block in own:
        if isinstance(block.event, ExecuteTransform):
            found = limit_of_step(store, block.event)
            if found is not None:
                return str(found.limit)
    return None


def _reaches(store: DatasetStore, head: Multihash | None, block: Multihash | None) -> bool:
    """Whether `block` is in the history of `head`."""
    if head is None or block is None or not store.has_block(block):
        return False
    if head == block:
        return True
    number = store.read_block(block).sequence_number
    for hash, each in store.walk(head):
        if each.sequence_number <= number:
            return hash == block
    return False


def _is_pushed(link: tuple[Multihash, MetadataBlock]) -> bool:
    event = link[1].event
    return isinstance(event, AddData) and event.new_data is not None


def _is_behind(
    store: DatasetStore, there: Projection, consumed: ExecuteTransformInput | None
) -> bool:
    """Whether an input holds more in the branch than was consumed of it."""
    after = consumed.new_block_hash if consumed else None
    if there.schema is None or after == there.head:
        return False
    interval = interval_between(there.head, after, store.read_block)
    return interval is not None and next_step(there.dataset_id, consumed, interval).advances
