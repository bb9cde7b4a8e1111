"""The engine that `apply` talks to: requests in, Parquet parts out."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from odfbuild.engine.contract import (
    EngineInfo,
    EngineResult,
    IngestTask,
    InputSlices,
    Provenance,
    ProvenanceTask,
    QueryTask,
    StepProgress,
    TransformResult,
    TransformTask,
)
from odfbuild.engine.in_pieces import PiecesTask, WrittenPiece
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
from odfbuild.odf.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from odfbuild.odf.model import TransformSql


Task = TypeVar("Task", TransformTask, IngestTask, QueryTask)
Done = TypeVar("Done")


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

    def validate(
        self,
        dataset: str,
        transform: TransformSql,
        inputs: Sequence[InputSlices],
        vocab: Vocabulary,
        *,
        preprocess: bool = False,
    ) -> pa.Schema:
        """See `contract.Engine`."""

        def work(again: bool) -> pa.Schema:
            if not preprocess:
                return result_columns(self.request, dataset, transform, inputs, vocab)
            with self.request(dataset) as spark:
                for each in inputs:
                    empty_view(spark, each)
                frame = _preprocess(spark, dataset, transform)
                micros = micros_of_step(frame.columns, inputs)
                return to_arrow_schema(frame, (), micros, marked_uuids(frame))

        return self._recovery.carry_out(work)

    def screen(self, dataset: str, transform: TransformSql, inputs: Sequence[str]) -> None:
        """See `contract.Engine`."""

        def work(again: bool) -> None:
            with self.request(dataset) as spark:
                screen(spark, dataset, transform, inputs)

        self._recovery.carry_out(work)

    def transform(self, task: TransformTask) -> TransformResult:
        """See `contract.Engine`."""

        def work(again: bool) -> TransformResult:
            with self.request(task.dataset, task.transform) as spark:
                self._session.check_workers(_files_of(task.inputs))
                result = derive(spark, _afresh(task) if again else task)
                return replace(result, stayed=why_here(spark))

        return self._recovery.carry_out(work)

    def transform_together(
        self, tasks: Sequence[TransformTask]
    ) -> Sequence[TransformResult] | None:
        """See `contract.Engine`."""
        if self._session.remote is not None:
            return None

        def work(again: bool) -> Sequence[TransformResult] | None:
            with self.request(tasks[0].dataset) as spark:
                self._session.check_workers(_files_of([e for t in tasks for e in t.inputs]))
                return None if again else derive_together(spark, tasks)

        return _or_none(lambda: self._recovery.carry_out(work))

    def write_in_pieces(self, task: PiecesTask) -> Sequence[WrittenPiece] | None:
        """See `contract.Engine`."""
        session = self._session
        if session.settings.embedded and session.fences.network:
            raise EngineProblem(
                "tasks run Python, which the sandbox around Spark does not allow",
                code="E1684",
                dataset=task.dataset,
                help="leave `slices: executors` out below `engine` in odfbuild.yaml, or write "
                "`sandbox: off` there, and run only what people whom you trust have defined",
            )

        def work(again: bool) -> Sequence[WrittenPiece] | None:
            from odfbuild.engine.spark.pieces.run import write_in_pieces

            with self.request(task.dataset, task.transform) as spark:
                now = self._session
                do = partial(write_in_pieces, spark, task, now.scratch, now.settings.address)
                return do() if now.remote is None else now.remote.carry_out(task.dataset, do)

        return self._recovery.carry_out(work)

    def provenance(self, task: ProvenanceTask) -> Provenance:
        """See `contract.Engine`."""

        def work(again: bool) -> Provenance:
            with self.request(task.step.dataset) as spark:
                self._session.check_workers(_files_of(task.step.inputs))
                step = _afresh(task.step) if again else task.step
                return trace(spark, replace(task, step=step))

        return self._recovery.carry_out(work)

    def ingest(self, task: IngestTask) -> EngineResult:
        """See `contract.Engine`."""
        done = merge_in_memory(task) if self._session.remote is None else None
        if done is not None:
            return done
        reached = replace(task, file=self._session.within_reach(task.file, task.scratch))

        def work(again: bool) -> EngineResult:
            with self.request(task.dataset) as spark:
                self._session.check_workers([reached.file])
                now = _afresh(reached) if again else reached
                bad = BadRecords(now)
                set_up(spark, [now])
                found = read_source(spark, now, bad)
                if found is None:
                    return EngineResult(parts=(), schema=None)
                result = merge(spark, *found, now, bad)
                return replace(result, stayed=why_here(spark))

        return self._recovery.carry_out(work)

    def ingest_together(self, tasks: Sequence[IngestTask]) -> Sequence[EngineResult] | None:
        """See `contract.Engine`."""
        session = self._session
        if session.remote is not None or not can_be_together(tasks):
            return None
        if tasks[0].dataset != tasks[-1].dataset:
            done = [merge_in_memory(each) for each in tasks]
            if all(done):
                return [each for each in done if each is not None]
        reached = [replace(e, file=session.within_reach(e.file, e.scratch)) for e in tasks]

        def work(again: bool) -> Sequence[EngineResult] | None:
            with self.request(tasks[0].dataset) as spark:
                session.check_workers([each.file for each in reached])
                return None if again else merge_together(spark, reached)

        return _or_none(lambda: self._recovery.carry_out(work))

    def violations(
        self, dataset: str, query: str, files: Sequence[Path], schema: pa.Schema, vocab: Vocabulary
    ) -> tuple[int, str]:
        """See `contract.Engine`."""

        def work(again: bool) -> tuple[int, str]:
            with self.request(dataset) as spark:
                return violations(spark, dataset, query, files, schema, vocab)

        return self._recovery.carry_out(work)

    def query(self, task: QueryTask) -> EngineResult:
        """See `contract.Engine`."""

        def work(again: bool) -> EngineResult:
            with self.request("query") as spark:
                return answer(spark, _afresh(task) if again else task)

        return self._recovery.carry_out(work)

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


def _or_none(work: Callable[[], Done | None]) -> Done | None:
    """What is wrong with work done together is told by the one part of it that is to blame."""
    try:
        return work()
    except Exception as error:
        fell_back(__name__, "the parts of a job are done one by one", error)
        return None


def _files_of(inputs: Iterable[InputSlices]) -> set[Path]:
    return {file for each in inputs for file in each.files}


def _afresh(task: Task) -> Task:
    """`task` with a scratch folder that holds nothing of an earlier attempt."""
    return replace(task, scratch=Path(tempfile.mkdtemp(dir=task.scratch)))


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


def _preprocess(spark: SparkSession, dataset: str, transform: TransformSql) -> DataFrame:
    return preprocess(spark, dataset, transform)[0]


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
