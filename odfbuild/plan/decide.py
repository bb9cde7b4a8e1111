"""Decide what happens to a dataset, after the decisions about its inputs.

Puts together what the definition adds to the chain, what that does to columns, whether the dataset
is stale and what policies say. Imported when something has to be decided: while all is as it was
when the last plan was made, nothing has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from odfbuild.errors import Code, Location, OdfbuildError, PlanError
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import SetPollingSource, SetTransform
from odfbuild.plan.appending import Appending
from odfbuild.plan.changes.correct import asked_for, waiting, waits
from odfbuild.plan.changes.costs import with_costs
from odfbuild.plan.changes.diff import NO_DIFFERENCE, Diff, diff, refused
from odfbuild.plan.changes.limits import refused_by_limits, with_limits
from odfbuild.plan.changes.policy import refused_by_policy
from odfbuild.plan.changes.rebuild import as_rebuild
from odfbuild.plan.columns.evolution import UNCHANGED
from odfbuild.plan.columns_ahead import ColumnsAhead
from odfbuild.plan.cut_offs import CutOffs
from odfbuild.plan.engines import first_of, refused_queries
from odfbuild.plan.expected_input import ExpectedInput
from odfbuild.plan.inputs import PlanInputs
from odfbuild.plan.model import Action, DatasetPlan, Reason, ReasonCode
from odfbuild.plan.places import Path, Place, path_of
from odfbuild.plan.queries.changed import ChangedQueries
from odfbuild.plan.sources import NOT_PROBED, root_verdict, with_watermark
from odfbuild.plan.stale import Input, derivative_verdict
from odfbuild.plan.verdict import IDLE, UP_TO_DATE, Verdict
from odfbuild.project.model import Definition
from odfbuild.sql.mode import BY_CHECKPOINT
from odfbuild.sql.translate.named import remote_of
from odfbuild.sql.translate.runnable import release_for
from odfbuild.values import Value

_NEW = Reason(code=ReasonCode.NEW, message="it has no chain yet")

_BREACHES = (Code.CONTRACT_COLUMN, Code.CONTRACT_TYPE, Code.CONTRACT_CHECK, Code.CONTRACT_AGE)
"""The dataset does not keep to a data contract."""


class Decider:
    """Decides dataset by dataset, inputs first, and remembers what readers need to know."""

    def __init__(self, given: PlanInputs) -> None:
        self.given = given
        self.facts = given.facts
        self.config = given.facts.project.config
        states = given.identities.states
        self.rebuilt = {name: states[name] for name in given.rebuilt}
        # Whatever is rebuilt is planned as if it had no chain yet, and so are its readers.
        self.remaining = (
            {k: v for k, v in states.items() if k not in self.rebuilt} if self.rebuilt else {}
        )
        self.states = self.remaining if self.rebuilt else states
        self.columns = ColumnsAhead(self.states, given.identities.alias, self.facts.memory.lineages)
        self.queries = ChangedQueries(given, self.columns)
        self.appends = Appending(
            self.facts.project.definitions, self.states, given.identities.aliases
        )
        self.cut_offs = CutOffs(self.facts.corrections, self.facts.memory.lineages)
        self.unborn = {name for name in given.faults if name not in states}
        """Datasets that have no chain, or none that can be read, and will not get one."""
        self.lost = frozenset(self.unborn)
        """Those of them that nothing can be told of, not even what their readers have read."""

    def decide(
        self, definition: Definition, inputs: tuple[str, ...]
    ) -> tuple[DatasetPlan, ExpectedInput | None]:
        """The plan of a dataset whose inputs are planned already, and what its readers get."""
        folded = definition.name.lower()
        for each in inputs:
            if each.lower() in self.lost:
                refusal = _input_refused
            elif each.lower() in self.given.unpinned:
                refusal = _never_pulled
            else:
                continue
            return self._without_input(definition, inputs, each, refusal), None
        made, outlook = self._decide(definition, inputs)
        if folded in self.rebuilt:
            by = self.given.by_policy.rebuilt.get(folded)
            made = as_rebuild(made, self.rebuilt[folded], by)
            if made.refusal is not None:
                self.remaining[folded] = self.rebuilt[folded]  # it stays as it is for its readers
        if made.refusal is not None and made.id is None:
            self.unborn.add(folded)
        return made, outlook

    def finished(self, planned: list[DatasetPlan]) -> list[DatasetPlan]:
        """All plans, with refused changes telling whom they would have reached."""
        if not self.columns.broken:
            return planned
        return [
            each
            if each.refusal is None
            else replace(each, refusal=each.refusal.noted(*self.columns.broken.notes(each.name)))
            for each in planned
        ]

    def refuse(
        self, definition: Definition, inputs: tuple[str, ...], error: OdfbuildError
    ) -> DatasetPlan:
        """The plan of a dataset that something is wrong with; as it is, it stays for readers."""
        code = ReasonCode.BREAKING if error.code in _BREACHES else ReasonCode.FAULTY
        reason = Reason(code=code, message=error.message)
        return self._refused(definition, inputs, Verdict(reasons=(reason,), refusal=error))

    def _without_input(
        self,
        definition: Definition,
        inputs: tuple[str, ...],
        lost: str,
        refusal: Callable[[str, str, Location], Verdict],
    ) -> DatasetPlan:
        snapshot = definition.snapshot
        path = next(path_of(snapshot, e) for e in snapshot.metadata if isinstance(e, SetTransform))
        places = _Inputs(self.facts.place_of(definition), path)
        verdict = refusal(definition.name, lost, places.of(inputs.index(lost)))
        return self._refused(definition, inputs, verdict)

    def _refused(
        self, definition: Definition, inputs: tuple[str, ...], verdict: Verdict
    ) -> DatasetPlan:
        state = self.states.get(definition.folded)
        if state is None:
            self.unborn.add(definition.folded)
        where = definition.location
        return _assemble(definition, state, NO_DIFFERENCE, verdict, inputs, verdict.refusal, where)

    def _decide(
        self, definition: Definition, inputs: tuple[str, ...]
    ) -> tuple[DatasetPlan, ExpectedInput | None]:
        snapshot = definition.snapshot
        name = definition.name
        state = self.states.get(name.lower())
        source: SetPollingSource | None = None
        transform: SetTransform | None = None
        for event in snapshot.metadata:
            if isinstance(event, SetPollingSource):
                source = event
            elif isinstance(event, SetTransform):
                transform = event
        location = definition.location
        place = self.facts.place_of(definition)
        difference = diff(snapshot, state, self.given.identities, place)
        wrong = self.queries.refused(definition, state, difference, place)
        follow = self.columns.follow
        evolution = UNCHANGED if wrong else follow(snapshot, state, difference, place)
        if evolution.refusal is not None:
            difference = refused(evolution.refusal)
        refusal = with_costs(difference.refusal, name, self.states) or first_of(
            (
                *refused_queries(snapshot, self.config.engines, place),
                *wrong,
                *self.queries.failing(definition, state, difference),
            )
        )
        if refusal is not None:
            verdict = IDLE
        elif name in self.facts.refusals:
            verdict = _source_refused(self.facts.refusals[name])
        elif transform is not None:
            path = path_of(snapshot, transform)
            places = _Inputs(place, path)
            verdict, difference = self._follow_query(name, transform, inputs, difference, places)
        else:
            verdict = self._ingest(definition, inputs, source, state)
            if verdict.refusal is not None and source is not None:
                path = (*path_of(snapshot, source), "fetch")
                at = place.of((*path, "path"), (*path, "url"), path)
                verdict = replace(verdict, refusal=verdict.refusal.at(at))
        refusal = refusal or verdict.refusal
        made = _assemble(definition, state, difference, verdict, inputs, refusal, location)
        if refusal is not None:
            return made, None
        if evolution.effect is not None:
            made = replace(made, columns=evolution.effect)
        policies = self.config.policies
        against = refused_by_policy(made, policies, place) or refused_by_limits(
            made, policies, self.given.unlimited, location
        )
        if against is not None:
            refusal = against.refusal
            return _assemble(definition, state, against, IDLE, inputs, refusal, location), None
        made = with_limits(made, policies, self.given.unlimited)
        self.columns.settle(name, evolution)
        return self._with_mode(made, transform), verdict.outlook

    def _ingest(
        self,
        definition: Definition,
        inputs: tuple[str, ...],
        source: SetPollingSource | None,
        state: Projection | None,
    ) -> Verdict:
        name = definition.name
        if definition.portal_of is not None:
            return self._publish(name, inputs, state, definition.location)
        verdict = root_verdict(name, source, state, self.facts.sources.get(name, NOT_PROBED))
        is_due = name in self.facts.due and verdict.refusal is None
        return with_watermark(verdict) if is_due else verdict

    def _publish(
        self, name: str, inputs: tuple[str, ...], state: Projection | None, location: Location
    ) -> Verdict:
        """Whether a portal takes over records of the dataset that it follows."""
        from odfbuild.plan.portal import portal_verdict

        (of,) = inputs
        if of.lower() in self.unborn:
            return _input_refused(name, of, location)
        there, outlook = self.states.get(of.lower()), self.facts.memory.outlook(of)
        verdict = portal_verdict(
            name, state, Input(name=of, alias=of, state=there, outlook=outlook)
        )
        if verdict.refusal is None:
            return verdict
        return replace(verdict, refusal=verdict.refusal.at(location))

    def _follow_query(
        self,
        name: str,
        transform: SetTransform,
        inputs: tuple[str, ...],
        difference: Diff,
        places: _Inputs,
    ) -> tuple[Verdict, Diff]:
        """Whether a derivative runs, and that it does not follow its changed query before that."""
        state = self.states.get(name.lower())
        as_defined, transform = transform, self._as_run(transform)
        if transform is not as_defined:
            difference = _goes_forward(difference, state)
        changed = any(isinstance(each.after, SetTransform) for each in difference.changes)
        is_behind = waits(transform, state) and not changed
        folded, policy = name.lower(), self.given.by_policy
        corrected = None
        if folded in self.given.corrected and (changed or is_behind):
            corrected = asked_for(policy.corrected.get(folded))
        verdict = self._derive(
            name, transform, inputs, state, places, corrected=corrected, changed=changed
        )
        if changed and folded in policy.kept:
            stays = Reason(code=ReasonCode.RECORDS_STAY, message=policy.kept[folded])
            difference = replace(difference, reasons=(*difference.reasons, stays))
        if state is None or not is_behind:
            return verdict, difference
        if verdict == IDLE:
            verdict = Verdict(reasons=(waiting(name, state),))
        return verdict, replace(difference, records_to_correct=state.records)

    def _as_run(self, event: SetTransform) -> SetTransform:
        """The transformation with the version of the program that is its engine, if one is."""
        remote = remote_of(event.transform, self.config.engines)
        if remote is None:
            return event
        version = remote.release(event.transform.engine)
        return replace(event, transform=replace(event.transform, version=version))

    def _with_mode(self, made: DatasetPlan, transform: SetTransform | None) -> DatasetPlan:
        """The plan with the mode of a program that is an engine; others follow from the text."""
        if transform is None or not made.actions or self._as_run(transform) is transform:
            return made
        return replace(made, planned_mode=BY_CHECKPOINT)

    def _derive(
        self,
        name: str,
        transform: SetTransform,
        inputs: tuple[str, ...],
        state: Projection | None,
        places: _Inputs,
        *,
        corrected: Reason | None,
        changed: bool,
    ) -> Verdict:
        for index, each in enumerate(inputs):
            if each.lower() in self.unborn:
                return _input_refused(name, each, places.of(index))
            if each.lower() in self.given.left_out and each.lower() not in self.states:
                return _input_left_out(name, each, places.of(index))
        views = [
            Input(
                name=each,
                alias=declared.alias or each,
                state=self.states.get(each.lower()),
                outlook=self.facts.memory.outlook(each),
                appends=self.appends.only(each),
            )
            for each, declared in zip(inputs, transform.inputs, strict=True)
        ]
        since = self.facts.slices.since
        verdict = derivative_verdict(
            name,
            transform.transform,
            state,
            views,
            since,
            corrected=corrected,
            changed=changed,
            elsewhere=self.facts.takes_all,
            cut_offs=self.cut_offs,
        )
        verdict = _placed_way(verdict, places)
        if verdict.refusal is not None:
            verdict = replace(verdict, refusal=verdict.refusal.at(places.of(None)))
        committed = state.transform.transform if state and state.transform else None
        if verdict.action and committed is not None and committed.version:
            release = release_for(committed, self.facts.engine_version, self.config.engines)
            if release not in ("", committed.version):
                reason = _engine_changed(committed.version, release)
                return replace(verdict, reasons=(*verdict.reasons, reason))
        return verdict


def _placed_way(verdict: Verdict, places: _Inputs) -> Verdict:
    """The verdict with the place in the file that makes a changelog read all records."""
    pending = verdict.pending
    way = pending.computation if pending is not None else None
    if pending is None or way is None or way.at is None:
        return verdict
    path = (*places.path, "transform")
    at = places.place.in_query(path, way.at.step, way.at.line, way.at.column)
    way = replace(way, at=None, place=replace(at, snippet=None))
    return replace(verdict, pending=replace(pending, computation=way))


class _Inputs(Value):
    """Where the inputs of a transformation, which stands at `path`, are listed."""

    place: Place
    path: Path

    def of(self, index: int | None) -> Location:
        """The place of one of them, or of all."""
        path: Path = (*self.path, "inputs")
        return self.place.of(path if index is None else (*path, index))


def _assemble(
    definition: Definition,
    state: Projection | None,
    difference: Diff,
    verdict: Verdict,
    inputs: tuple[str, ...],
    refusal: OdfbuildError | None,
    location: Location,
) -> DatasetPlan:
    snapshot = definition.snapshot
    actions: tuple[Action, ...] = ()
    reasons = verdict.reasons
    if refusal is not None:
        actions = (Action.REFUSE,)
        reasons = difference.reasons or verdict.reasons
        difference = NO_DIFFERENCE
        verdict = IDLE
    elif state is None:
        actions = (Action.CREATE,)
        reasons = (_NEW, *(() if reasons == UP_TO_DATE else reasons))
    elif difference != NO_DIFFERENCE:
        actions = (Action.APPEND,) if difference.changes else ()
        reasons = difference.reasons + (() if reasons == UP_TO_DATE else reasons)
    if verdict.action is not None:
        actions += (verdict.action,)
    return DatasetPlan(
        name=str(snapshot.name),
        kind=snapshot.kind,
        id=state.dataset_id if state else None,
        expected_head=state.head if state else None,
        actions=actions,
        reasons=reasons,
        changes=difference.changes,
        pending=verdict.pending,
        records_under_old_query=difference.records_under_old_query,
        records_to_correct=difference.records_to_correct,
        eras=difference.eras,
        definition=definition,
        inputs=inputs,
        location=location,
        refusal=refusal,
    )


def _goes_forward(difference: Diff, state: Projection | None) -> Diff:
    """A changed query of an engine that nobody can ask to compute earlier records again."""
    if state is None or not difference.records_to_correct:
        return difference
    return replace(
        difference, records_to_correct=0, records_under_old_query=state.records, eras=state.eras
    )


def _engine_changed(recorded: str, now: str) -> Reason:
    message = f"{recorded} computed it until now, {now} continues; a SetTransform records that"
    return Reason(code=ReasonCode.ENGINE_CHANGED, message=message)


def _input_refused(name: str, culprit: str, location: Location) -> Verdict:
    message = f"its input {culprit} is refused and has no chain that can be read"
    refusal = PlanError(
        f"'{name}' cannot be planned: its input '{culprit}' is refused",
        code="E0308",
        location=location,
        help=f"correct '{culprit}' first",
        dataset=name,
    )
    reason = Reason(code=ReasonCode.INPUT_REFUSED, message=message, input=culprit)
    return Verdict(reasons=(reason,), refusal=refusal)


def _never_pulled(name: str, culprit: str, location: Location) -> Verdict:
    message = f"its input {culprit} was never pulled"
    refusal = PlanError(
        f"'{name}' cannot be planned: its external input '{culprit}' is not here yet",
        code="E1066",
        location=location,
        help=f"odfbuild pull {culprit}",
        dataset=name,
    )
    reason = Reason(code=ReasonCode.INPUT_HAS_NO_DATA, message=message, input=culprit)
    return Verdict(reasons=(reason,), refusal=refusal)


def _input_left_out(name: str, culprit: str, location: Location) -> Verdict:
    refusal = PlanError(
        f"'{name}' cannot be planned alone: its input '{culprit}' has no chain and is not selected",
        code="E0313",
        location=location,
        help=f"select its inputs, too: `--select +{name}`",
        dataset=name,
    )
    reason = Reason(
        code=ReasonCode.INPUT_HAS_NO_DATA,
        message=f"its input {culprit} has no chain and is not selected",
        input=culprit,
    )
    return Verdict(reasons=(reason,), refusal=refusal)


def _source_refused(refusal: OdfbuildError) -> Verdict:
    reason = Reason(code=ReasonCode.SOURCE_REFUSED, message=refusal.message)
    return Verdict(reasons=(reason,), refusal=refusal)
