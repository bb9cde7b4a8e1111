"""Decide what a promotion does with each dataset of a branch.

Input: the datasets of the branch, inputs first, as they are in the branch and on the head. Output:
a plan. A head that did not move since the branch left it is set to the block of the branch. Where
it moved, or where an input is computed again, the branch's definitions are applied on top of the
head and only what is waiting there is computed. Reads no files, runs no queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum

from odfbuild.errors import BranchError, OdfbuildError, as_one
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import DatasetKind, SetTransform
from odfbuild.odf.multihash import Multihash
from odfbuild.plan.changes.consent import Consent
from odfbuild.plan.changes.correct import asked_for
from odfbuild.plan.changes.equality import EventMatch, compare, unpinned
from odfbuild.plan.changes.three_way import Merged, merge
from odfbuild.plan.model import (
    Action,
    DatasetPlan,
    EventChange,
    Pending,
    Plan,
    Promoted,
    Reason,
    ReasonCode,
)
from odfbuild.project.settings.policy import OnQueryChange
from odfbuild.sql.forecast import expected_mode
from odfbuild.sql.mode import Mode
from odfbuild.values import Value
from odfbuild.wording import count, named


class Read(Value, kw_only=True):
    """What a dataset consumed of an input, in the branch.

    `name` is `None` when the input is gone. `in_branch` and `in_main` tell whether the consumed
    block is in the history of the input there; `is_behind` whether the branch holds more of the
    input than was consumed. `main_offset` is the newest record of the input on the head, which has
    `main_records` of them.
    """

    id: DatasetId
    name: str | None
    in_branch: bool = False
    in_main: bool = False
    is_behind: bool = False
    main_offset: int | None = None
    main_records: int = 0


class Branched(Value, kw_only=True):
    """A dataset of a branch.

    `branch` is its state there and `main` that on the head (`None`: it has none). `base` is the
    block of the head that the branch left, `left` the state there. `has_base` and `main_has_base`
    tell whether `base` is in the history of the branch and of the head, `has_main` whether the
    branch continues the head, `in_main` whether the head has all of the branch. `blocks` and
    `records` are what only the branch has. `limit` is the part of the inputs that the branch was
    computed over. `pushed`: it holds data of a push source that the head lacks.
    """

    name: str
    branch: Projection
    main: Projection | None
    base: Multihash | None
    left: Projection | None
    has_base: bool = True
    main_has_base: bool = True
    has_main: bool = True
    in_main: bool = False
    blocks: int = 0
    records: int = 0
    limit: str | None = None
    pushed: bool = False
    reads: tuple[Read, ...] = ()

    @property
    def is_rebuilt(self) -> bool:
        """Whether its history was computed again in the branch."""
        return self.base is not None and not self.has_base

    @property
    def changes_query(self) -> bool:
        """Whether the branch has another query than the head that it left."""
        before = None if self.left is None else self.left.transform
        after = self.branch.transform
        if before is None or after is None:
            return False
        return compare(unpinned(before), unpinned(after)) is EventMatch.DIFFERENT


OnChange = Mapping[str, tuple[OnQueryChange, str]]
"""What settings do about changed queries, by dataset in lower case, each with where it says so."""


class _Fate(Enum):
    """What becomes of a dataset; its readers depend on it."""

    DONE = "done"
    MOVED = "moved"
    REPLAYED = "replayed"


def plan_promotion(
    branch: str,
    project: str,
    env: str | None,
    datasets: Sequence[Branched],
    readers: Mapping[DatasetId, Sequence[str]],
    consents: Iterable[Consent] = (),
    on_change: OnChange | None = None,
) -> Plan:
    """The plan of a promotion of `datasets`, inputs first.

    `readers` are names in lower case of the datasets that consumed a dataset on the head.
    """
    on_change = on_change or {}
    allowed = _allowed(datasets, consents, on_change)
    decider = _Decider(branch, datasets, readers, allowed, on_change)
    return Plan(
        project=project,
        env=env,
        datasets=tuple(decider.decide(each) for each in datasets),
        promotes=branch,
    )


def _allowed(
    datasets: Sequence[Branched], consents: Iterable[Consent], on_change: OnChange
) -> dict[str, str]:
    """What lets histories give way, by names in lower case; what needs none does no harm.

    Where the query changed, a setting can ask for it as the option `NAME+` does.
    """
    allowed: dict[str, str] = {}
    for each in datasets:
        what, setting = on_change.get(each.name.lower(), ("forward", ""))
        if what == "rebuild" and each.is_rebuilt and each.changes_query:
            for reader in _below(each.name, datasets):
                allowed.setdefault(reader, f"{setting} rebuilds '{each.name}' upstream of it")
            allowed[each.name.lower()] = setting
    for consent in consents:
        names = _below(consent.name, datasets) if consent.readers else {consent.name.lower()}
        allowed |= dict.fromkeys(names, "--allow rebuild is given")
    return allowed


def _below(name: str, datasets: Sequence[Branched]) -> set[str]:
    """All that read a dataset in the branch, however far, in lower case."""
    found = {name.lower()}
    for each in datasets:  # inputs first
        if any(read.name and read.name.lower() in found for read in each.reads):
            found.add(each.name.lower())
    return found


class _Decider:
    """Decides dataset by dataset, inputs first, and remembers what readers need to know."""

    def __init__(
        self,
        branch: str,
        datasets: Sequence[Branched],
        readers: Mapping[DatasetId, Sequence[str]],
        allowed: Mapping[str, str],
        on_change: OnChange,
    ) -> None:
        self._branch = branch
        self._known = {each.name.lower(): each for each in datasets}
        self._readers = readers
        self._allowed = allowed
        self._on_change = on_change
        self._fates: dict[str, _Fate] = {}
        self._growing: set[str] = set()
        """Those that get more records than the branch has of them."""

    def decide(self, given: Branched) -> DatasetPlan:
        """The plan of a dataset whose inputs are decided."""
        merged = merge(given.left, given.main, given.branch)
        refusals = [*self._refusals(given, merged)]
        if refusals:
            refusal = as_one(refusals)
            reason = Reason(code=ReasonCode.PROMOTION_REFUSED, message=refusal.message)
            return _plan_of(given, (Action.REFUSE,), (reason,), refusal=refusal)
        name = given.name.lower()
        if given.in_main:
            self._fates[name] = _Fate.DONE
            reason = Reason(
                code=ReasonCode.ALREADY_PROMOTED, message="the head has all that the branch has"
            )
            return _plan_of(given, (), (reason,), promoted=Promoted(branch=given.branch.head))
        replayed = self._replayed_input(given)
        if replayed is None and (given.has_main or given.is_rebuilt):
            self._fates[name] = _Fate.MOVED
            return self._moved(given, merged)
        self._fates[name] = _Fate.REPLAYED
        self._growing.add(name)
        return self._replayed(given, merged, replayed)

    # --- What is refused ---

    def _refusals(self, given: Branched, merged: Merged) -> Iterator[BranchError]:
        name, branch = given.name, self._branch
        anew = f"`odfbuild branch delete {branch}`, then `odfbuild apply -b {branch}`"
        if given.limit is not None:
            yield BranchError(
                f"'{name}' cannot be promoted: the branch was computed over part of the inputs",
                code="E1120",
                notes=(f"it was built with {given.limit}",),
                help=f"build a branch from all records: `odfbuild apply -b {branch}-all`",
                dataset=name,
            )
        if given.main is None and given.base is not None:
            yield BranchError(
                f"'{name}' cannot be promoted: it was deleted on the head",
                code="E1121",
                notes=(f"the branch left it at block {given.base.short}",),
                help=f"bring it back with `odfbuild reset {name} --to {given.base}`, or delete the "
                f"branch: `odfbuild branch delete {branch}`",
                dataset=name,
            )
            return
        if given.main is not None and given.main.dataset_id != given.branch.dataset_id:
            yield BranchError(
                f"'{name}' cannot be promoted: the head got another dataset of that name",
                code="E1122",
                notes=(
                    f"in the branch: {given.branch.dataset_id}",
                    f"on the head:   {given.main.dataset_id}",
                ),
                help=f"rename one of them, or build the branch again: {anew}",
                dataset=name,
            )
            return
        if not given.main_has_base and not given.in_main:
            yield BranchError(
                f"'{name}' cannot be promoted: its head was reset or rebuilt since the branch "
                "left it",
                code="E1123",
                notes=(f"block {given.base} is not in the history of the head",),
                help=f"build the branch again on the present head: {anew}",
                dataset=name,
            )
        if given.pushed and not given.has_main and not given.in_main:
            yield BranchError(
                f"'{name}' cannot be promoted: data was pushed to it in the branch, and its head "
                "moved",
                code="E1127",
                notes=("what was pushed cannot be fetched again",),
                help=f"push the data to the head with `odfbuild ingest {name}`, then build the "
                f"branch again: {anew}",
                dataset=name,
            )
        if merged.conflicts and given.main_has_base and not given.in_main:
            yield self._conflict(given, merged)
        yield from self._lost_inputs(given, anew)
        if given.is_rebuilt and not given.in_main:
            yield from self._rebuild_refusals(given)

    def _lost_inputs(self, given: Branched, anew: str) -> Iterator[BranchError]:
        for read in given.reads:
            if read.name is None:
                yield BranchError(
                    f"'{given.name}' cannot be promoted: an input of it was deleted",
                    code="E1128",
                    notes=(f"the input is {read.id}",),
                    help="bring its chain back (git checkout, `odfbuild reset NAME --to BLOCK`), "
                    f"or change the definition and build the branch again: {anew}",
                    dataset=given.name,
                )
            elif read.name.lower() not in self._known and not read.in_main:
                yield BranchError(
                    f"'{given.name}' cannot be promoted: its input '{read.name}' was reset or "
                    "rebuilt on the head",
                    code="E1128",
                    notes=("the branch read records that the input no longer has",),
                    help=f"build the branch again: {anew}",
                    dataset=given.name,
                )

    def _rebuild_refusals(self, given: Branched) -> Iterator[BranchError]:
        left = sorted(
            reader
            for reader in self._readers.get(given.branch.dataset_id, ())
            if not (found := self._known.get(reader)) or not (found.is_rebuilt or found.in_main)
        )
        if left:
            yield BranchError(
                f"'{given.name}' cannot be promoted: it was rebuilt, and {named(left)} read the "
                "history that it replaces",
                code="E1125",
                help="rebuild all of them in the branch: "
                f"`odfbuild apply -b {self._branch} --allow rebuild:{given.name}+`",
                dataset=given.name,
            )
        if given.name.lower() not in self._allowed:
            lost = given.main.records if given.main else 0
            yield BranchError(
                f"'{given.name}' was rebuilt in the branch: its promotion drops the history of "
                "the head",
                code="E1124",
                notes=(f"the head has {count(lost, 'record')}",),
                help=f"allow it by name: --allow rebuild:{given.name}",
                dataset=given.name,
            )

    def _conflict(self, given: Branched, merged: Merged) -> BranchError:
        return BranchError(
            f"'{given.name}' cannot be promoted: its definition was changed in the branch and on "
            "the head",
            code="E1126",
            notes=tuple(f"both changed {each}" for each in merged.conflicts),
            help="merge the definitions in Git, and build the branch again: "
            f"`odfbuild branch delete {self._branch}`, then `odfbuild apply -b {self._branch}`",
            dataset=given.name,
        )

    # --- What is done ---

    def _replayed_input(self, given: Branched) -> str | None:
        """An input whose history in the branch will not be the one that was read."""
        for read in given.reads:
            fate = self._fates.get(read.name.lower()) if read.name else None
            if fate is _Fate.REPLAYED or (fate is _Fate.DONE and not read.in_main):
                return read.name
            if fate is _Fate.MOVED and not read.in_branch:
                return read.name
        return None

    def _moved(self, given: Branched, merged: Merged) -> DatasetPlan:
        """The head is set to the block of the branch, with what waits on top of it if any."""
        name = given.name.lower()
        promoted = Promoted(branch=given.branch.head)
        if given.main is None:
            reasons = [Reason(code=ReasonCode.BRANCH_ONLY, message="it is new in the branch")]
        elif given.is_rebuilt:
            message = (
                f"{self._allowed[name]}: {given.main.records:,} records of the head give way to "
                f"{given.branch.records:,}"
            )
            reasons = [Reason(code=ReasonCode.REBUILT_IN_BRANCH, message=message)]
        else:
            message = f"the head did not move: {_amount(given)} move to it"
            reasons = [Reason(code=ReasonCode.HEAD_UNMOVED, message=message)]
        behind = [
            r.name
            for r in given.reads
            if r.name and (r.is_behind or r.name.lower() in self._growing)
        ]
        advanced = given.main is not None and given.base not in (None, given.main.head)
        actions: tuple[Action, ...] = (Action.PROMOTE,)
        if merged.on_ours:
            actions += (Action.APPEND,)
        if behind:
            reasons.append(_unfinished(behind[0], self._growing))
        if advanced and given.is_rebuilt:
            reasons.append(_head_moved(given))
        pending = None
        if behind or advanced:
            pending = self._waiting(given, given.branch)
            if pending is None or pending.records != 0:
                actions += _run_of(given)
                self._growing.add(name)
        return _plan_of(
            given,
            actions,
            tuple(reasons),
            changes=merged.on_ours,
            pending=pending if len(actions) > 1 else None,
            promoted=promoted,
        )

    def _replayed(self, given: Branched, merged: Merged, because: str | None) -> DatasetPlan:
        """What the branch changed is replayed on top of the head."""
        reasons = []
        # Where there is no head, or a history of its own, it starts over behind its seed.
        anew = given.main is None or given.is_rebuilt
        if not given.has_main and not anew:
            reasons.append(_head_moved(given))
        if because is not None:
            message = f"its input {because} is not as the branch had it"
            reasons.append(Reason(code=ReasonCode.INPUT_REPLAYED, message=message, input=because))
        onto = None if anew else given.main
        changes = merged.definition if anew else merged.on_theirs
        pending = self._waiting(given, onto)
        actions: tuple[Action, ...] = (Action.PROMOTE,)
        if changes:
            actions += (Action.APPEND,)
        corrected = None if anew else self._corrected(given, changes)
        if corrected is not None:
            reasons.append(corrected)
        if corrected is not None or pending is None or pending.records != 0:
            actions += _run_of(given)
        return _plan_of(
            given,
            actions,
            tuple(reasons),
            changes=changes,
            pending=pending,
            promoted=Promoted(
                branch=given.branch.head, replays=True, onto=onto.head if onto else None
            ),
        )

    def _corrected(self, given: Branched, changes: Iterable[EventChange]) -> Reason | None:
        """Why records of the head follow the query of the branch at once, if they do."""
        what, setting = self._on_change.get(given.name.lower(), ("forward", ""))
        query = next((c.after for c in changes if isinstance(c.after, SetTransform)), None)
        if what != "correct" or query is None:
            return None
        if expected_mode(query.transform).mode is not Mode.CHANGELOG:
            return None
        return asked_for(setting)

    def _waiting(self, given: Branched, onto: Projection | None) -> Pending | None:
        """How much a derivative reads when it continues from `onto` (`None`: from nothing)."""
        if given.branch.kind is DatasetKind.Root:
            return None
        consumed = {i.dataset_id: i.new_offset for i in (onto.inputs if onto else ())}
        records = most = 0
        for read in given.reads:
            name = (read.name or "").lower()
            if name in self._growing:
                return Pending(records=None, bytes=None, exact=False)
            there = self._known.get(name)
            newest = there.branch.last_offset if there else read.main_offset
            before = consumed.get(read.id)
            most += there.branch.records if there else read.main_records
            records += 0 if newest is None else newest - (-1 if before is None else before)
        return Pending(records=records, bytes=None, read_least=records, read_most=most)


def _run_of(given: Branched) -> tuple[Action, ...]:
    """A source is asked again, inputs are read on."""
    if given.branch.kind is DatasetKind.Derivative:
        return (Action.RUN,)
    return (Action.POLL,) if given.branch.polling_source is not None else ()


def _head_moved(given: Branched) -> Reason:
    if given.main is None:
        raise AssertionError("only a dataset with a head has one that moved")
    return Reason(
        code=ReasonCode.HEAD_MOVED,
        message="the head moved since the branch left it",
        from_block=given.base,
        from_offset=given.left.last_offset if given.left else None,
        to_block=given.main.head,
        to_offset=given.main.last_offset,
    )


def _unfinished(name: str, growing: set[str]) -> Reason:
    what = "gets new records" if name.lower() in growing else "has records in the branch to read"
    return Reason(code=ReasonCode.INPUT_ADVANCED, message=f"its input {name} {what}", input=name)


def _amount(given: Branched) -> str:
    records = f", {count(given.records, 'record')}," if given.records else ""
    return f"{count(given.blocks, 'block')}{records}"


def _plan_of(
    given: Branched,
    actions: tuple[Action, ...],
    reasons: tuple[Reason, ...],
    *,
    changes: tuple[EventChange, ...] = (),
    pending: Pending | None = None,
    promoted: Promoted | None = None,
    refusal: OdfbuildError | None = None,
) -> DatasetPlan:
    if promoted is not None and Action.PROMOTE in actions and not promoted.replays:
        promoted = replace(promoted, blocks=given.blocks, records=given.records)
    return DatasetPlan(
        name=given.name,
        kind=given.branch.kind,
        id=given.branch.dataset_id,
        expected_head=given.main.head if given.main else None,
        actions=actions,
        reasons=reasons,
        changes=changes,
        pending=pending,
        inputs=tuple(read.name for read in given.reads if read.name),
        promoted=promoted,
        refusal=refusal,
    )
