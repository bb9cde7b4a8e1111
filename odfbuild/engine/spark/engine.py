"""The engine that `apply` talks to: requests in, Parquet parts out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, TypeVar, cast

import pyarrow as pa

from odfbuild.engine.contract import (
    Done,
    EngineInfo,
    EngineResult,
    IngestTask,
    Provenance,
    ProvenanceTask,
    QueryTask,
    Request,
    ScreenTask,
    StepProgress,
    Together,
    TransformResult,
    TransformTask,
    ValidateTask,
    ViolationsTask,
)
from odfbuild.engine.in_pieces import (
    CheckTask,
    PiecesTask,
    RootTask,
    WholeTask,
    WrittenPiece,
    WrittenRoot,
    WrittenStep,
)
from odfbuild.engine.precision import micros_of_step
from odfbuild.engine.release import engine_version
from odfbuild.engine.settings import in_force
from odfbuild.engine.spark.internals.status import fault_of, stages
from odfbuild.engine.spark.merging.earlier_records import set_up
from odfbuild.engine.spark.merging.in_memory import merge_in_memory
from odfbuild.engine.spark.merging.merge import merge, merge_together
from odfbuild.engine.spark.queries.ask import answer
from odfbuild.engine.spark.queries.checked import preprocess, result_columns, screen
from odfbuild.engine.spark.queries.checks import violations
from odfbuild.engine.spark.queries.findings import place_at_run_time
from odfbuild.engine.spark.queries.inputs import empty_view
from odfbuild.engine.spark.queries.provenance import trace
from odfbuild.engine.spark.queries.together import derive_together
from odfbuild.engine.spark.queries.transform import derive
from odfbuild.engine.spark.reading.bad_records import BadRecords
from odfbuild.engine.spark.reading.read import can_be_together, read_source
from odfbuild.engine.spark.results.executor import use, why_here
from odfbuild.engine.spark.results.frames import marked_uuids, to_arrow_schema
from odfbuild.engine.spark.session.limits import within
from odfbuild.engine.spark.session.recovery import Recovery, why_lost
from odfbuild.engine.spark.session.session import Session
from odfbuild.errors import Code, EngineProblem, EnvironmentProblem, OdfbuildError, QueryError
from odfbuild.fallbacks import fell_back
from odfbuild.records.intact import Damage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from odfbuild.odf.model import TransformSql


Stored = TypeVar("Stored", PiecesTask, WholeTask, RootTask, CheckTask)


class SparkEngine:
    """`contract.Engine` in one Spark session; every request has views of its own."""

    def __init__(
        self, recovery: Recovery, caller: str = "", step_seconds: float | None = None
    ) -> None:
        self._recovery = recovery
        self._caller = caller
        self._step_seconds = step_seconds
        self._begun: set[str] = set()

    @property
    def jvm(self) -> int | None:
        """The process id of its JVM."""
        return self._session.jvm

    def for_caller(self, caller: str, step_seconds: float | None) -> SparkEngine:
        """The same engine for one of several programs, with a limit and jobs of its own."""
        return SparkEngine(self._recovery, f"{caller} ", step_seconds)

    def cancel(self) -> None:
        """Cancel all jobs that this caller has now."""
        spark = self._session.spark
        for group in tuple(self._begun):
            spark.sparkContext.cancelJobGroup(group)

    @property
    def _session(self) -> Session:
        return self._recovery.session

    def run(self, request: Request[Done]) -> Done:
        """See `contract.Engine`."""
        done: Any = None
        if isinstance(request, Together):
            return cast(Done, self._together(request.tasks))
        if isinstance(request, IngestTask) and self._session.remote is None:
            done = merge_in_memory(request)
        if done is None:
            work = self._WORK[type(request)]
            done = self._recovery.carry_out(
                lambda again: work(self, request.afresh() if again else request)
            )
        return cast(Done, done)

    def _validate(self, task: ValidateTask) -> pa.Schema:
        if not task.preprocess:
            return result_columns(self.request, task)
        with self.request(task.dataset) as spark:
            for each in task.inputs:
                empty_view(spark, each)
            frame, _ = preprocess(spark, task.dataset, task.transform)
            micros = micros_of_step(frame.columns, task.inputs)
            return to_arrow_schema(frame, (), micros, marked_uuids(frame))

    def _screen(self, task: ScreenTask) -> None:
        with self.request(task.dataset) as spark:
            screen(spark, task.dataset, task.transform, task.inputs)

    def _transform(self, task: TransformTask) -> TransformResult:
        with self.request(task.dataset, task.transform) as spark:
            self._session.check_workers(_files_of(task))
            return replace(derive(spark, task), stayed=why_here(spark))

    def _provenance(self, task: ProvenanceTask) -> Provenance:
        with self.request(task.step.dataset) as spark:
            self._session.check_workers(_files_of(task.step))
            return trace(spark, task)

    def _ingest(self, task: IngestTask) -> EngineResult:
        task = self._within_reach(task)
        with self.request(task.dataset) as spark:
            self._session.check_workers([task.file])
            bad = BadRecords(task)
            set_up(spark, [task])
            found = read_source(spark, task, bad)
            if found is None:
                return EngineResult(parts=(), schema=None)
            return replace(merge(spark, *found, task, bad), stayed=why_here(spark))

    def _violations(self, task: ViolationsTask) -> tuple[int, str]:
        with self.request(task.dataset) as spark:
            return violations(spark, task)

    def _query(self, task: QueryTask) -> EngineResult:
        with self.request("query") as spark:
            return answer(spark, task)

    def _pieces(self, task: PiecesTask) -> Sequence[WrittenPiece] | None:
        from odfbuild.engine.spark.pieces.run import write_in_pieces

        return self._by_tasks(task, write_in_pieces)

    def _whole(self, task: WholeTask) -> WrittenStep | None:
        from odfbuild.engine.spark.pieces.whole import write_whole

        return self._by_tasks(task, write_whole)

    def _root(self, task: RootTask) -> WrittenRoot:
        from odfbuild.engine.spark.pieces.roots import write_root

        return self._by_tasks(task, write_root) or WrittenRoot(why="Spark Connect computes")

    def _check(self, task: CheckTask) -> Sequence[Damage | None] | None:
        from odfbuild.engine.spark.pieces.check import check_slices

        return self._by_tasks(task, check_slices)

    def _by_tasks(
        self, task: Stored, work: Callable[Concatenate[SparkSession, Stored, Path, str, ...], Done]
    ) -> Done | None:
        """Let tasks in Python carry out `work`; `None` where it is not for them."""
        session = self._session
        if session.remote is not None and not isinstance(task, PiecesTask | CheckTask):
            return None
        if session.settings.embedded and session.fences.network:
            raise EngineProblem(
                "tasks run Python, which the sandbox around Spark does not allow",
                code="E1684",
                dataset=task.dataset,
                help="leave `slices: executors` out below `engine` in odfbuild.yaml, or write "
                "`sandbox: off` there, and run only what people whom you trust have defined",
            )
        transform = None if isinstance(task, RootTask | CheckTask) else task.transform
        with self.request(task.dataset, transform) as spark:
            now = self._session
            do = partial(work, spark, task, now.scratch, now.settings.address)
            return do() if now.remote is None else now.remote.carry_out(task.dataset, do)

    def _together(self, tasks: Sequence[Any]) -> Any:
        if self._session.remote is not None:
            return None
        first = tasks[0]
        work: Callable[[SparkSession, Any], Any] = derive_together
        if isinstance(first, IngestTask):
            if not can_be_together(tasks):
                return None
            if first.dataset != tasks[-1].dataset:
                done = [merge_in_memory(each) for each in tasks]
                if all(done):
                    return done
            tasks, work = [self._within_reach(each) for each in tasks], merge_together
        files = {file for each in tasks for file in _files_of(each)}

        def carry_out(again: bool) -> Any:
            with self.request(first.dataset) as spark:
                self._session.check_workers(files)
                return None if again else work(spark, tasks)

        return _or_none(lambda: self._recovery.carry_out(carry_out))

    def _within_reach(self, task: IngestTask) -> IngestTask:
        return replace(task, file=self._session.within_reach(task.file, task.scratch))

    _WORK: ClassVar[Mapping[type, Callable[[SparkEngine, Any], Any]]] = {
        ValidateTask: _validate,
        ScreenTask: _screen,
        TransformTask: _transform,
        PiecesTask: _pieces,
        WholeTask: _whole,
        RootTask: _root,
        CheckTask: _check,
        ProvenanceTask: _provenance,
        IngestTask: _ingest,
        ViolationsTask: _violations,
        QueryTask: _query,
    }

    def progress(self, dataset: str) -> StepProgress | None:
        """See `contract.Engine`."""
        remote = self._session.remote
        there = remote.progress(dataset) if remote is not None else None
        if there is not None:
            return there
        try:
            return headway_of(self._session, self._caller + dataset)
        except Exception:
            if self._session.exit_code(0) is None:
                raise
            return None

    def printed(self) -> Path | None:
        """The file to which the JVM prints; `None` where none runs."""
        return self._session.log

    def about(self) -> EngineInfo:
        """See `contract.Engine`."""
        session = self._session
        found = session.fences
        return EngineInfo(session.settings.address, engine_version(), str(found), found.lacking)

    def stop(self) -> None:
        """See `contract.Engine`."""
        self._session.stop()

    @contextmanager
    def request(
        self, dataset: str, transform: TransformSql | None = None
    ) -> Iterator[SparkSession]:
        """A session for one piece of work; what fails in it becomes an error for people.

        With `transform`, an error that the data caused has its place there.
        Raises `JvmEnded` when the JVM ended meanwhile.
        """
        session = self._recovery.live()
        try:
            spark = session.request()
            context = spark.sparkContext
            group = self._caller + dataset
            self._begun.add(group)
            context.setJobGroup(group, dataset)
            remote = session.remote
            if remote is not None:
                use(spark, remote.executor(dataset))

            def cancel() -> None:
                context.cancelJobGroup(group)
                if remote is not None:
                    remote.cancel(dataset)

            seconds = self._step_seconds or in_force(session.settings).step_seconds
            with within(seconds, dataset, cancel):
                yield spark
        except Exception as error:
            raised = why_lost(error, session, dataset)
            if raised is None and not isinstance(error, OdfbuildError):
                raised = _no_room(error, dataset) or _from_run_time(error, dataset, transform)
            if raised is None:
                raise
            raise raised from None


def _or_none(work: Callable[[], Any]) -> Any:
    """What is wrong with work done together is told by the one part of it that is to blame."""
    try:
        return work()
    except Exception as error:
        fell_back(__name__, "the parts of a job are done one by one", error)
        return None


def _files_of(task: TransformTask | IngestTask) -> set[Path]:
    if isinstance(task, IngestTask):
        return {task.file}
    return {file for each in task.inputs for file in each.files}


def headway_of(session: Session, group: str) -> StepProgress | None:
    """Stages and tasks of the jobs of `group` that Spark still remembers."""
    context = session.spark.sparkContext
    tracker = context.statusTracker()
    jobs = map(tracker.getJobInfo, tracker.getJobIdsForGroup(group))
    numbers = {number for job in jobs if job is not None for number in job.stageIds}
    # One that is skipped never becomes known.
    known = [each for each in sorted(numbers) if tracker.getStageInfo(each) is not None]
    if not known:
        return None
    found = stages(context, known)
    return StepProgress(
        stages_done=sum(each.done == each.tasks for each in found),
        stages=len(numbers),
        tasks_done=sum(each.done for each in found),
        tasks=sum(each.tasks for each in found),
        records_read=sum(each.records_read for each in found),
    )


def _no_room(error: Exception, dataset: str) -> EnvironmentProblem | None:
    """An error of a disk that took no more of what Spark wrote; `None` for anything else."""
    found = re.search(r"No space left on device|Disk quota exceeded", str(error))
    if found is None:
        return None
    return EnvironmentProblem(
        f"Spark cannot write for '{dataset}': {found[0]}",
        code="E0910",
        dataset=dataset,
        notes=("nothing of it was committed",),
        help="make room on the disk of the project, then run the same command again",
    )


def _from_run_time(
    error: Exception, dataset: str, transform: TransformSql | None
) -> QueryError | None:
    """An error that the data caused while a query ran; `None` for anything else."""
    fault = fault_of(error)
    if fault is None or (fault.condition is None and transform is None):
        return None
    steps = (transform.queries or ()) if transform is not None else ()
    # The settings that Spark goes on to recommend are pinned.
    text = re.split(r"SQLSTATE|If necessary,? set", fault.text)[0]
    notes = ["the query is valid, but a record of the input makes it fail"]
    if fault.reason is not None and fault.reason not in text:
        notes.append(fault.reason)
    return QueryError(
        text.removeprefix(f"[{fault.condition}] ").rstrip(". "),
        code=Code.FAILING_RECORD,
        location=place_at_run_time(error, [step.query for step in steps]),
        dataset=dataset,
        notes=tuple(notes),
        help=_MALFORMED
        if (fault.condition or "").startswith("MALFORMED_RECORD")
        else "filter such records out, or use a form that gives NULL, such as try_cast",
    )


_MALFORMED = (
    "leave out the option 'mode' (what cannot be read is NULL then), use try_parse_json in place "
    "of parse_json, or filter such records out"
)
