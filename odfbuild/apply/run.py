"""Execute a plan: lock datasets, start the engine when needed, run inputs first."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from odfbuild.apply.attempt import Progress, attempt, begin
from odfbuild.apply.audit import Audits
from odfbuild.apply.cut_offs import remember_step
from odfbuild.apply.definitions import by_another_engine, resolve_changes
from odfbuild.apply.derive import read_inputs, stage_transform, validated_schema
from odfbuild.apply.following import Following
from odfbuild.apply.in_pieces import stage_by_executors
from odfbuild.apply.ingest import (
    Ingested,
    fetch_context,
    keep_side_cars,
    read_together,
    stage_by_clock,
    stage_polled,
    validate_source,
)
from odfbuild.apply.options import ApplyOptions, to_do
from odfbuild.apply.personal import check_rights, hiding_of, told_of_plain_values
from odfbuild.apply.portal import Portal
from odfbuild.apply.queries import KnownQueries, changed_queries, check_queries
from odfbuild.apply.roots.planned_files import as_planned, in_batches
from odfbuild.apply.roots.read_ahead import Ahead, ReadAhead
from odfbuild.apply.scheduler import run_graph
from odfbuild.apply.schema import ensure_schema
from odfbuild.apply.transaction import Transaction
from odfbuild.engine.contract import EngineResult, StepProgress
from odfbuild.engine.lazy import LazyEngine
from odfbuild.engine.request import StepInput
from odfbuild.errors import OdfbuildError, StaleHeadError
from odfbuild.ingest.fetch import Fetched, fetch
from odfbuild.ingest.fetch.inbox import put_away_inbox, rename_inbox
from odfbuild.ingest.read_marks import FileMark, ReadMarks, look_at
from odfbuild.ingest.resume import polling_state
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.chain.step import is_due
from odfbuild.odf.model import (
    AddPushSource,
    MetadataEvent,
    SetPollingSource,
    SetTransform,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.vocabulary import vocabulary_of
from odfbuild.plan.changes.delete import still_read
from odfbuild.plan.model import Action, DatasetPlan, Plan, ReasonCode, takes_engine
from odfbuild.plan.readers import consumers_of
from odfbuild.plan.steps import (
    CheckRights,
    Define,
    Delete,
    Derive,
    Ingest,
    Publish,
    Rename,
    StartAgain,
    steps_of,
)
from odfbuild.project.model import Project
from odfbuild.project.settings.watermarks import rule_of
from odfbuild.store.cache import project
from odfbuild.store.claims import held_elsewhere
from odfbuild.store.disposable import scratch_folder
from odfbuild.store.workspace import Workspace
from odfbuild.survey.late_files import remember_in_vain
from odfbuild.survey.outcome import ApplyOutcome, DatasetOutcome, Status
from odfbuild.survey.protection import check_unprotected


def apply_plan(
    plan: Plan, project: Project, workspace: Workspace, options: ApplyOptions
) -> ApplyOutcome:
    """Do what `plan` says, dataset by dataset; never raises for a dataset's failure."""
    todo = to_do(plan)
    names = [name for item in todo.values() for name in (item.renamed_from, item.name) if name]
    engine = LazyEngine(options.factory)
    began = time.monotonic()
    try:
        with (
            workspace.claim(names, options.waiting) as claim,
            scratch_folder(project.config.cache, "apply") as scratch,
        ):
            run = _Run(project, workspace, options, engine, scratch, todo, dict(claim.held))
            if any(takes_engine(item) and name in claim.won for name, item in todo.items()):
                engine.warm_up()
            run.check_queries()
            options.listener.begin(len(todo), run.step_progress)
            waits_for = _waits_for(todo.values())
            with run.reading_ahead():
                results = run_graph(
                    list(todo),
                    # What is wrong waits for nothing, so that it is told at once.
                    {name: () if run.is_wrong(name) else waits_for[name] for name in todo},
                    run.work,
                    run.skip,
                    lambda outcome: outcome.status in _INCOMPLETE,
                    jobs=options.jobs,
                    stopped=run.is_stopped,
                )
            results |= {name: run.abandon(name) for name in run.abandoned(results)}
    finally:
        engine.stop()
    return ApplyOutcome(
        datasets=tuple(results[name] for name in todo if name in results),
        interrupted=options.cancel.is_set(),
        seconds=time.monotonic() - began,
    )


def _waits_for(items: Iterable[DatasetPlan]) -> dict[str, Sequence[str]]:
    """What has to be complete before each dataset: its inputs, what its checks refer to, and
    before a deletion the one before."""
    found: dict[str, Sequence[str]] = {}
    before: tuple[str, ...] = ()
    for item in items:
        found[item.name] = (*item.inputs, *item.checked_against)
        if Action.DELETE in item.actions:
            found[item.name] = before
            before = (item.name,)
    return found


_INCOMPLETE = (Status.FAILED, Status.LOST, Status.SKIPPED)


class _Run:
    """The tasks of one apply and what they share."""

    def __init__(
        self,
        project: Project,
        workspace: Workspace,
        options: ApplyOptions,
        engine: LazyEngine,
        scratch: Path,
        todo: dict[str, DatasetPlan],
        held: dict[str, str],
    ) -> None:
        self.project = project
        self.workspace = workspace
        self.options = options
        self.engine = engine
        self.scratch = scratch
        self.todo = todo
        self.held = held
        self.first_failure: str | None = None
        self.wrong: Mapping[str, OdfbuildError] = {}
        self.portals = {each.name.lower(): each.of for each in project.config.portals}
        self.following = Following(project, workspace)
        self.audits = Audits(project.config.root, project.config.checks, workspace, engine.get)

    @contextmanager
    def reading_ahead(self) -> Iterator[None]:
        """Read roots that can be read together before their turn, until the end of the block."""
        items = [e for e in self.todo.values() if not self.is_wrong(e.name)]
        self.ahead = ReadAhead(
            items,
            self._begun,
            self.workspace,
            self.engine.get,
            self.project.config,
            self.scratch,
            self.is_stopped,
        )
        try:
            yield
        finally:
            self.ahead.stop()

    def is_stopped(self) -> bool:
        """Whether no further dataset may begin."""
        failed = self.options.fail_fast and self.first_failure is not None
        return failed or self.options.cancel.is_set()

    def abandoned(self, results: Mapping[str, DatasetOutcome]) -> list[str]:
        """Datasets that did not begin because another one failed, or somebody interrupted."""
        return [name for name in self.todo if name not in results]

    def abandon(self, name: str) -> DatasetOutcome:
        """A dataset that did not begin because of an interrupt or `--fail-fast`."""
        because = f"not started: '{self.first_failure}' did not complete, and that ends this run"
        outcome = DatasetOutcome(name=name, status=Status.SKIPPED, because=because)
        if self.options.cancel.is_set():
            outcome = DatasetOutcome(name=name, status=Status.INTERRUPTED, because="not started")
        self.options.listener.finished(outcome)
        return outcome

    def check_queries(self) -> None:
        """Check what is to be committed before any dataset is touched."""
        subjects = changed_queries(self.todo.values())
        if subjects:
            known = KnownQueries(self.project.config.cache, self.options.engine_version)
            projections = self.workspace.readable()
            engines = self.project.config.engines
            checked = check_queries(subjects, projections, self.engine.get, known, engines)
            self.wrong = checked.errors

    def is_wrong(self, name: str) -> bool:
        """Whether it is known before anything runs that a dataset will not be touched."""
        return name in self.wrong or self.todo[name].refusal is not None

    def step_progress(self, name: str) -> StepProgress | None:
        """How far the engine is with a dataset."""
        engine = self.engine.peek()
        return engine.progress(name) if engine else None

    def skip(self, name: str, culprit: str) -> DatasetOutcome:
        """A dataset that cannot run because of another one."""
        outcome = DatasetOutcome(
            name=name, status=Status.SKIPPED, because=f"'{culprit}' did not complete"
        )
        self.options.listener.finished(outcome)
        return outcome

    def work(self, name: str) -> DatasetOutcome:
        """Bring one dataset to what the plan says; every error becomes an outcome."""
        started = time.monotonic()
        self.options.listener.started(name)
        outcome = replace(self._attempt(self.todo[name]), seconds=time.monotonic() - started)
        if outcome.status in _INCOMPLETE and self.first_failure is None:
            self.first_failure = name
        self.options.listener.finished(outcome)
        return outcome

    def _attempt(self, item: DatasetPlan) -> DatasetOutcome:
        return attempt(
            item.name,
            partial(self._bring_up, item),
            locate=self.options.locate,
            cache=self.project.config.cache,
            committed=partial(self.options.listener.progressed, item.name),
            hide=hiding_of(self.workspace, item.name, item.inputs),
        )

    def _bring_up(self, item: DatasetPlan, progress: Progress) -> str:
        """Carry out the steps of the plan; gives a note about what was not done."""
        base = self._as_planned(item)
        portal = self.portals.get(item.name.lower())
        steps = steps_of(item, exists=base is not None, portal_of=portal)
        replaces: Multihash | None = None
        ahead: Ahead | None = None
        note = ""
        for step in steps:
            match step:
                case Delete():
                    self._delete(item)
                    progress.deleted = True
                case Rename():
                    rename_inbox(self.project.config.inbox, step.before, item.name)
                    self.workspace.rename(step.before, item.name)
                    progress.renamed_from = step.before
                case StartAgain() if base is not None:
                    if step.drops:
                        check_unprotected(self.project.config, self.workspace, item.name)
                    store = self.workspace.dataset(item.name)
                    onto = step.onto or store.seed(base.head)
                    base, replaces = project(store, onto, None), base.head
                case Define():
                    audit = self.audits.of(item.name, progress.warn)
                    ahead = self.ahead.take(item.name)
                    transaction = ahead.transaction if ahead else self._begun(item, base, replaces)
                    transaction.audit = audit
                case CheckRights():
                    engine = self.project.config.engine
                    check_rights(self.workspace, item.name, item.inputs, engine)
                    told = told_of_plain_values(self.workspace, item.name, base)
                    progress.warn(*filter(None, [told]))
                case Ingest():
                    note = self._ingest(item, step, transaction, progress, ahead)
                case Publish():
                    note = self._publish(item, step, transaction, progress)
                case Derive():
                    note = self._derive(item, transaction, progress)
        if progress.records:
            source = transaction.state.polling_source
            keep_side_cars(self.workspace, item.name, source.merge if source else None)
        return note

    def _as_planned(self, item: DatasetPlan) -> Projection | None:
        """What a dataset says now, which has to be what it said to the plan."""
        if item.refusal is not None:
            raise item.refusal
        if item.name in self.wrong:
            raise self.wrong[item.name]
        for name in filter(None, (item.name, item.renamed_from)):
            if name in self.held:
                raise held_elsewhere(name, self.held[name])
        base = self.workspace.projection(item.name)
        if base is None and item.renamed_from is not None:
            base = self.workspace.projection(item.renamed_from)
        head = base.head if base else None
        if head != item.expected_head:
            raise StaleHeadError(
                f"'{item.name}' moved since the plan was made: "
                f"{_short(item.expected_head)} → {_short(head)}",
                code="E0701",
                dataset=item.name,
                help="run `odfbuild plan` again",
            )
        return base

    def _folder(self, item: DatasetPlan) -> Path:
        """An empty folder for the files of a dataset."""
        prefix = f"{item.name.replace('/', '-')}-"
        return Path(tempfile.mkdtemp(prefix=prefix, dir=self.scratch))

    def _begun(
        self, item: DatasetPlan, base: Projection | None, replaces: Multihash | None = None
    ) -> Transaction:
        transaction = begin(self.workspace, item.name, item.kind, base, replaces)
        transaction.add(*self._resolved(item))
        return transaction

    def _resolved(self, item: DatasetPlan) -> tuple[MetadataEvent, ...]:
        engines = self.project.config.engines
        return resolve_changes(item, self.workspace, self.options.engine_version, engines)

    def _delete(self, item: DatasetPlan) -> None:
        """Delete a chain that, since the plan was made, nothing else has come to count on."""
        check_unprotected(self.project.config, self.workspace, item.name)
        if item.id is None or item.expected_head is None:
            raise AssertionError("only a dataset with a chain is deleted")
        readers = consumers_of(self.workspace.projections()).get(item.id)
        if readers:
            raise still_read(item.name, sorted(readers))
        deleted = self.workspace.delete(item.name, item.expected_head, item.id)
        put_away_inbox(self.project.config.inbox, item.name, deleted.inbox)

    def _ingest(
        self,
        item: DatasetPlan,
        step: Ingest,
        transaction: Transaction,
        progress: Progress,
        ahead: Ahead | None,
    ) -> str:
        config = self.project.config
        source = transaction.state.polling_source
        note = ""
        if source is not None and step.reads:
            folder = self._folder(item)
            found = fetch(
                source.fetch,
                polling_state(transaction.state),
                fetch_context(transaction, config, folder),
            )
            for batch in in_batches(source.fetch, as_planned(item, source.fetch, found)):
                transaction, more = self._ingest_batch(
                    item, transaction, batch, folder, progress, ahead
                )
                note, ahead = more or note, None
        for event in transaction.events:
            if isinstance(event, SetPollingSource | AddPushSource):
                validate_source(transaction, event, self.engine.get)
        note = stage_by_clock(transaction, rule_of(config.watermarks, item.name)) or note
        progress.add(transaction.commit())
        return note if progress.blocks else "the source has no new data"

    def _publish(
        self, item: DatasetPlan, step: Publish, transaction: Transaction, progress: Progress
    ) -> str:
        """A portal takes over block by block; when a check stops one, those before it stay."""
        portal = Portal(self.workspace, item.name, step.of)
        folder = self._folder(item)
        for block in portal.not_yet_published() if step.reads else ():
            records = portal.stage(transaction, block, folder)
            if records:
                progress.add(transaction.commit(), records)
                base = self.workspace.projection(item.name)
                transaction = begin(
                    self.workspace, item.name, item.kind, base, audit=transaction.audit
                )
        progress.add(transaction.commit())
        return "" if progress.blocks else f"'{step.of}' has no new records"

    def _ingest_batch(
        self,
        item: DatasetPlan,
        transaction: Transaction,
        batch: Sequence[Fetched],
        folder: Path,
        progress: Progress,
        ahead: Ahead | None,
    ) -> tuple[Transaction, str]:
        """A block for each file; gives the transaction that comes next, and the last note.

        Files that were read together are committed together: each sync of the disk, and what
        readers see of them, comes once. When one of them fails, those before it are committed.
        """
        config, note = self.project.config, ""
        source = transaction.state.polling_source
        # Before they are read: an edit that comes later is told by the next plan.
        looks = [look_at(source.fetch, each) if source else None for each in batch]
        folders = [Path(tempfile.mkdtemp(prefix="file-", dir=folder)) for _ in batch]
        if ahead and [(ahead.fetched, ahead.looked)] == [*zip(batch, looks, strict=True)]:
            ready: Sequence[EngineResult | None] = [ahead.result]
        else:
            ready = read_together(transaction, self.engine.get, batch, folders, config)
        waiting: list[tuple[Ingested, FileMark | None]] = []
        in_vain: list[str] = []

        def commit() -> Transaction:
            records = sum(came.records for came, _ in waiting)
            progress.add(transaction.commit(), records)
            base = self.workspace.projection(item.name)
            if base is not None:
                marks = [looked for _, looked in waiting if looked is not None]
                ReadMarks(config.cache, base.dataset_id).add(*marks)
                remember_in_vain(self.workspace, base, in_vain)
                in_vain.clear()
            for came, _ in waiting:
                progress.skip(came.skipped)
                progress.tolerate(came.drift)
                progress.warn(*came.warnings)
            waiting.clear()
            return begin(self.workspace, item.name, item.kind, base, audit=transaction.audit)

        for fetched, looked, scratch, result in zip(batch, looks, folders, ready, strict=True):
            try:
                with transaction.undone_by_error():
                    came = stage_polled(
                        transaction, self.engine.get, fetched, scratch, config, result
                    )
            except Exception:
                if waiting:
                    commit()
                raise
            waiting.append((came, looked))
            in_vain += [fetched.display_name] if fetched.late and not came.records else []
            note = came.note or note
            audit = transaction.audit
            if result is None or (audit is not None and audit.reads_its_own):
                # What comes next is merged, or compared, with what this one brought.
                transaction = commit()
                shutil.rmtree(scratch, ignore_errors=True)
        if waiting:
            transaction = commit()
        for scratch in folders:
            shutil.rmtree(scratch, ignore_errors=True)
        if len(batch) > 1:
            # For the merge of the next batch.
            keep_side_cars(self.workspace, item.name, source.merge if source else None)
        return transaction, note

    def _derive(self, item: DatasetPlan, transaction: Transaction, progress: Progress) -> str:
        closeness = self.following.of(item.name)
        inputs = read_inputs(self.workspace, item.name, transaction.state, closeness)
        if inputs is None:
            progress.add(transaction.commit())
            return "" if progress.blocks else "an input has no data yet"
        folder = self._folder(item)
        changed = any(isinstance(event, SetTransform) for event in transaction.events)
        changed &= item.promoted is None  # its schema comes with it
        note = ""
        corrected = any(each.code is ReasonCode.CORRECT for each in item.reasons)
        while is_due((i.step for i in inputs), has_schema=transaction.state.schema is not None) or (
            corrected and transaction.state.query_waits
        ):
            scratch = Path(tempfile.mkdtemp(prefix="step-", dir=folder))
            # What another release computes is said by the chain from here on.
            release = by_another_engine(
                transaction.state.transform,
                self.options.engine_version,
                self.project.config.engines,
            )
            transaction.add(*([release] if release else []))
            planned = item.pending.computation if item.pending is not None else None
            settings = self.project.config.engine
            derived = stage_by_executors(
                transaction, self.engine.get, inputs, scratch, settings, planned
            ) or stage_transform(transaction, self.engine.get, inputs, scratch, planned)
            progress.add(transaction.commit(), derived.records)
            remember_step(self.workspace, item.name, transaction.base, in_full=derived.in_full)
            progress.read(derived.read, derived.counted)
            progress.late.update(derived.late)
            note = derived.note or note
            shutil.rmtree(scratch, ignore_errors=True)
            if all(each.step.complete for each in inputs):
                return note
            base = self.workspace.projection(item.name)
            transaction = begin(self.workspace, item.name, item.kind, base, audit=transaction.audit)
            inputs = read_inputs(self.workspace, item.name, transaction.state, closeness) or ()
            changed = False
        if changed:
            self._settle_query(item, transaction, inputs)
        progress.add(transaction.commit())
        return "" if progress.blocks else "its inputs did not advance"

    def _settle_query(
        self, item: DatasetPlan, transaction: Transaction, inputs: tuple[StepInput, ...]
    ) -> None:
        """A changed query that runs later must fit the committed schema, or extend it, now."""
        state = transaction.state
        if state.transform is None or state.schema is None:
            return
        vocab = vocabulary_of(state.vocab)
        result = validated_schema(self.engine.get(), item.name, state.transform, inputs, vocab)
        if result is not None:
            ensure_schema(transaction, result, vocab)


def _short(head: object) -> str:
    return "nothing" if head is None else f"…{str(head)[-8:]}"
