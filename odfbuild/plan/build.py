"""Put the decisions about all datasets of a project together into a plan.

Pure: definitions, projections of chains and facts about sources come in, a frozen `Plan` goes out.
The same input gives an equal plan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from odfbuild.errors import Location, OdfbuildError, PlanError
from odfbuild.ingest.facts import SourceFacts
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import SetPollingSource, SetTransform
from odfbuild.odf.projection import Projection
from odfbuild.plan.columns_ahead import ColumnsAhead
from odfbuild.plan.diff import NO_DIFFERENCE, Diff, diff, refused
from odfbuild.plan.memory import Memory
from odfbuild.plan.mode import fresh
from odfbuild.plan.model import Action, DatasetPlan, Plan, Reason, ReasonCode
from odfbuild.plan.outlook import Outlook
from odfbuild.plan.place import FileOnly, Path, Place, path_of
from odfbuild.plan.policy import refused_by_policy
from odfbuild.plan.rebuild import as_rebuild
from odfbuild.plan.slices import SliceIndex
from odfbuild.plan.sources import NOT_PROBED, root_verdict
from odfbuild.plan.stale import Input, derivative_verdict
from odfbuild.plan.verdict import IDLE, UP_TO_DATE, Verdict
from odfbuild.project.model import Definition, Project
from odfbuild.project.policy import Policy
from odfbuild.store.collector import paused_collector

_NEW = Reason(code=ReasonCode.NEW, message="it has no chain yet")
_NO_DEFINITION = (
    Reason(
        code=ReasonCode.NO_DEFINITION,
        message="it has a chain and no definition; nothing is deleted",
    ),
)


class Order(Protocol):
    """The part of a graph that planning needs."""

    @property
    def order(self) -> Sequence[str]:
        """Aliases of all defined datasets, inputs first."""
        ...


def build_plan(
    project: Project,
    graph: Order,
    projections: Mapping[str, Projection],
    facts: Mapping[str, SourceFacts],
    slice_index: SliceIndex,
    refusals: Mapping[str, OdfbuildError] | None = None,
    left_out: Collection[str] = (),
    rebuilt: Collection[str] = (),
    place_of: Callable[[Definition], Place] = FileOnly,
    memory: Memory | None = None,
    engine_version: str = "",
) -> Plan:
    """Plan a whole project.

    `projections` are the committed chains by alias, `facts` what is known about the polling sources
    of root datasets by alias (absent: not looked at), `slice_index` answers for those inputs that
    moved, `refusals` are sources that cannot be ingested by alias, and why. Breaking changes do
    not raise: they are refusals of single datasets in the plan, with the place that `place_of`
    knows for them. Datasets that are `left_out` stay as they are, and their readers are planned
    accordingly; those that are `rebuilt` (in lower case, as `to_rebuild` gives them) begin anew.
    `engine_version` is the release that would compute: another one than recorded is said, and no
    reason to run. `memory` gives what was decided last time and learns what is decided now.
    """
    memory = memory or Memory({}, {})
    planner = _Planner(
        projections,
        facts,
        slice_index,
        refusals or {},
        left_out,
        rebuilt,
        place_of,
        memory,
        project.config.policies,
        engine_version,
    )
    definitions = {definition.name: definition for definition in project.definitions}
    order = [n for n in graph.order if n not in left_out] if left_out else graph.order
    with paused_collector():
        planned = [planner.plan(definitions[name]) for name in order]
    planned += [
        _forgotten(name, projection)
        for name, projection in sorted(projections.items())
        if name.lower() not in planner.decided and name not in left_out
    ]
    return Plan(
        project=project.config.name,
        env=project.config.env,
        datasets=tuple(planned),
        complete=not left_out,
    )


class _Planner:
    """Decides dataset by dataset, inputs first, and remembers what readers need to know."""

    def __init__(
        self,
        projections: Mapping[str, Projection],
        facts: Mapping[str, SourceFacts],
        slice_index: SliceIndex,
        refusals: Mapping[str, OdfbuildError],
        left_out: Collection[str],
        rebuilt: Collection[str],
        place_of: Callable[[Definition], Place],
        memory: Memory,
        policies: Sequence[Policy],
        engine_version: str,
    ) -> None:
        self.place_of = place_of
        self.engine_version = engine_version
        self.policies = policies
        self.refusals = refusals
        self.left_out = frozenset(name.lower() for name in left_out)
        self.memory = memory
        self.facts = facts
        self.slice_index = slice_index
        self.ids = _Identities(projections)
        self.rebuilt = {name: self.ids.states[name] for name in rebuilt}
        # Whatever is rebuilt is planned as if it had no chain yet, and so are its readers.
        states = self.ids.states
        self.states = {k: v for k, v in states.items() if k not in rebuilt} if rebuilt else states
        self.decided: set[str] = set()
        self.columns = ColumnsAhead(self.states, self._alias, memory.lineages)
        self.unborn: set[str] = set()
        """Datasets that have no chain and will not get one, because they are refused."""

    def plan(self, definition: Definition) -> DatasetPlan:
        """The plan of one dataset whose inputs are planned already."""
        folded = definition.name.lower()
        self.decided.add(folded)
        inputs = tuple([self._alias(ref) for ref in definition.inputs])
        recalled = self.memory.recall(definition, inputs)
        if recalled is not None:
            return recalled
        made, outlook = self._decide(definition, inputs)
        if folded in self.rebuilt:
            made = as_rebuild(made, self.rebuilt[folded])
            if made.refusal is not None:
                self.states[folded] = self.rebuilt[folded]  # it stays as it is for its readers
        if made.refusal is not None and made.id is None:
            self.unborn.add(folded)
        self.memory.learn(definition, inputs, made, outlook)
        return made

    def _decide(
        self, definition: Definition, inputs: tuple[str, ...]
    ) -> tuple[DatasetPlan, Outlook | None]:
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
        place = self.place_of(definition)
        difference = diff(snapshot, state, self.ids, place)
        evolution = self.columns.follow(snapshot, state, difference, place)
        if evolution.refusal is not None:
            difference = refused(evolution.refusal)
        refusal: OdfbuildError | None = difference.refusal
        if refusal is not None:
            verdict = IDLE
        elif name in self.refusals:
            verdict = _source_refused(self.refusals[name])
        elif transform is not None:
            path = path_of(snapshot, transform)
            verdict = self._derive(name, transform, inputs, state, _Inputs(place, path))
        else:
            known = self.facts.get(name, NOT_PROBED)
            verdict = root_verdict(name, source, state, known)
            if verdict.refusal is not None and source is not None:
                path = (*path_of(snapshot, source), "fetch")
                verdict.refusal.location = place.of((*path, "path"), (*path, "url"), path)
        refusal = refusal or verdict.refusal
        made = _assemble(definition, state, difference, verdict, inputs, refusal, location)
        if refusal is not None:
            return made, None
        if evolution.effect is not None:
            made = replace(made, columns=evolution.effect)
        against = refused_by_policy(made, self.policies, place)
        if against is not None:
            refusal = against.refusal
            return _assemble(definition, state, against, IDLE, inputs, refusal, location), None
        self.columns.settle(name, evolution)
        return made, verdict.outlook

    def _alias(self, ref: str) -> str:
        return self.ids.alias(ref) if ref.startswith("did:") else ref

    def _derive(
        self,
        name: str,
        transform: SetTransform,
        inputs: tuple[str, ...],
        state: Projection | None,
        places: _Inputs,
    ) -> Verdict:
        for index, each in enumerate(inputs):
            if each.lower() in self.unborn:
                return _input_refused(name, each, places.of(index))
            if each.lower() in self.left_out and each.lower() not in self.states:
                return _input_left_out(name, each, places.of(index))
        views = [
            Input(
                name=each,
                alias=declared.alias or each,
                state=self.states.get(each.lower()),
                outlook=self.memory.outlook(each),
            )
            for each, declared in zip(inputs, transform.inputs, strict=True)
        ]
        since = self.slice_index.since
        verdict = derivative_verdict(name, transform.transform, state, views, since)
        if verdict.refusal is not None:
            verdict.refusal.location = places.of(None)
        recorded = state.transform.transform.version if state and state.transform else None
        if verdict.action and recorded and self.engine_version not in ("", recorded):
            reason = _engine_changed(recorded, self.engine_version)
            return replace(verdict, reasons=(*verdict.reasons, reason))
        return verdict


@dataclass(frozen=True, slots=True)
class _Inputs:
    """Where the inputs of a transformation, which stands at `path`, are listed."""

    place: Place
    path: Path

    def of(self, index: int | None) -> Location:
        """The place of one of them, or of all."""
        path: Path = (*self.path, "inputs")
        return self.place.of(path if index is None else (*path, index))


class _Identities(Mapping[str, DatasetId]):
    """DIDs by alias in lower case, looked up where they are asked for."""

    def __init__(self, projections: Mapping[str, Projection]) -> None:
        self.states = {name.lower(): projection for name, projection in projections.items()}
        self._projections = projections
        self._aliases: dict[str, str] | None = None

    def __getitem__(self, folded: str) -> DatasetId:
        return self.states[folded].dataset_id

    def __iter__(self) -> Iterator[str]:
        return iter(self.states)

    def __len__(self) -> int:
        return len(self.states)

    def alias(self, did: str) -> str:
        """The alias of the dataset with that DID, the DID itself when there is none."""
        if self._aliases is None:
            states = self._projections.items()
            self._aliases = {str(state.dataset_id): name for name, state in states}
        return self._aliases.get(did, did)


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
        reasons = (_NEW, *(() if reasons is UP_TO_DATE else reasons))
    elif difference is not NO_DIFFERENCE:
        actions = (Action.APPEND,) if difference.changes else ()
        reasons = difference.reasons + (() if reasons is UP_TO_DATE else reasons)
    if verdict.action is not None:
        actions += (verdict.action,)
    return fresh(
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
        snapshot=snapshot,
        inputs=inputs,
        location=location,
        refusal=refusal,
    )


def _engine_changed(recorded: str, now: str) -> Reason:
    message = f"{recorded} computed it so far, {now} goes on; a SetTransform says so"
    return Reason(code=ReasonCode.ENGINE_CHANGED, message=message)


def _input_refused(name: str, culprit: str, location: Location) -> Verdict:
    message = f"its input {culprit} is refused and has no chain"
    refusal = PlanError(
        f"'{name}' cannot be created: its input '{culprit}' is refused",
        code="E0308",
        location=location,
        help=f"mend '{culprit}' first",
        dataset=name,
    )
    reason = Reason(code=ReasonCode.INPUT_REFUSED, message=message, input=culprit)
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


def _forgotten(name: str, projection: Projection) -> DatasetPlan:
    return DatasetPlan(
        name=name,
        kind=projection.kind,
        id=projection.dataset_id,
        expected_head=projection.head,
        actions=(Action.FORGET,),
        reasons=_NO_DEFINITION,
    )
