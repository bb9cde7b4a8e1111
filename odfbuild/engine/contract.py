"""The interface between odfbuild (the coordinator) and an engine.

The engine reads, queries and merges; the coordinator orders, numbers, hashes and commits. Requests
name everything that may change the result, so that the same request gives the same records. Results
are Parquet parts in a scratch folder, in record order; `apply` finalises them into one data file.
Source: Open Data Fabric, "Engine Contract".
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Protocol, Self, TypeVar

from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.sql.lineage import Lineage
from odfbuild.sql.mode import Choice
from odfbuild.store.merged_copies import NO_COPIES, MergedCopies
from odfbuild.values import Value

if TYPE_CHECKING:
    import pyarrow as pa

    from odfbuild.errors import Location
    from odfbuild.odf.identity import DatasetId
    from odfbuild.odf.model import MergeStrategy, ReadStep, SqlQueryStep, TransformSql
    from odfbuild.odf.model.messages import Watermark
    from odfbuild.odf.timestamp import Timestamp
    from odfbuild.records.personal.values import Convert
    from odfbuild.records.ranges import Ranges
    from odfbuild.store.committed import Committed


Done = TypeVar("Done")


class SliceFile(Value):
    """A data file of an input. `promised`: the input's watermark just before the file came.

    Its records of an earlier time came late.
    """

    path: Path
    promised: Timestamp | None = None


def _no_slices() -> tuple[SliceFile, ...]:
    return ()


def _no_files() -> tuple[Path, ...]:
    return ()


def _no_checkpoint() -> Path | None:
    return None


class InputSlices(Value, kw_only=True):
    """One input of a transformation: `slices` hold at least the records of `[first, last]`.

    `first`/`last` are inclusive offsets, `None` when there are no new records (`slices` is empty
    then); `schema` is the input's whole schema, system columns included. The watermark moved from
    `watermark_before` to `watermark`, by those that its blocks set (`watermarks`). `earlier()`
    lists the slices of all records before `first`, oldest first; it may read the whole chain.
    `dataset` and `dataset_id` tell which dataset it is. Where each record is all that matters, few
    files may stand in for many slices: `copies`. With `is_exact` no record of it retracts one that
    is not there.
    """

    alias: str
    schema: pa.Schema
    vocab: Vocabulary
    slices: tuple[SliceFile, ...] = ()
    first: int | None = None
    last: int | None = None
    watermark_before: Timestamp | None = None
    watermark: Timestamp | None = None
    watermarks: tuple[Watermark, ...] = ()
    dataset: str = ""
    dataset_id: DatasetId | None = None
    earlier: Callable[[], tuple[SliceFile, ...]] = _no_slices
    copies: MergedCopies = NO_COPIES
    is_exact: bool = False

    @property
    def files(self) -> tuple[Path, ...]:
        """Where the new records are."""
        return self.copies.instead_of([each.path for each in self.slices])

    def all_files(self) -> tuple[Path, ...]:
        """Where all records are, the new ones last."""
        return self.copies.instead_of([each.path for each in (*self.earlier(), *self.slices)])


class Request(Value, Generic[Done]):
    """What an engine is asked for, and what it answers: a value of type `Done`."""

    def afresh(self) -> Self:
        """The same, with a scratch folder that holds nothing of an earlier attempt."""
        scratch = getattr(self, "scratch", None)
        changed = {} if scratch is None else {"scratch": Path(tempfile.mkdtemp(dir=scratch))}
        return replace(self, **changed)


class ValidateTask(Request["pa.Schema | None"], kw_only=True):
    """Tell the columns of a transformation's result (data and event time) from input schemas alone.

    No slice of `inputs` is read. `None` where only the first records can tell.
    Raises `Errors` of `QueryError`s, whose `location` is within the text of a query
    (`InDefinition.query`); the caller maps it to the project's file.
    `preprocess`: the one input is `input` and an event time column is not required.
    """

    dataset: str
    transform: TransformSql
    inputs: tuple[InputSlices, ...]
    vocab: Vocabulary
    preprocess: bool = False


class ScreenTask(Request[None], kw_only=True):
    """Check what of queries can be told before any column of their inputs is known.

    That is whether they can be read, call functions that they may call, and read nothing but the
    relations `inputs`. Raises as `ValidateTask` does.
    """

    dataset: str
    transform: TransformSql
    inputs: tuple[str, ...]


class TransformTask(Request["TransformResult"], kw_only=True):
    """Bring the result of `transform` up to what `inputs` hold now.

    `watermark_before` is that of the dataset itself, and `previous()` lists its data files, oldest
    first, for which few files may stand in: `copies`. An engine that is a program also gets the
    time of the step, the offset of its first record, and by `checkpoint()` what its last step kept.
    `continued`: the records so far are what the same transformation gave for all records of the
    inputs before the new ones. A changelog that needs more than `most_records` fails, and one that
    needs all of many although few are new, if that may `never` happen (`never_full`).
    """

    dataset: str
    transform: TransformSql
    inputs: tuple[InputSlices, ...]
    vocab: Vocabulary
    scratch: Path
    watermark_before: Timestamp | None = None
    previous: Callable[[], tuple[Path, ...]] = _no_files
    copies: MergedCopies = NO_COPIES
    dataset_id: DatasetId | None = None
    system_time: Timestamp | None = None
    first_offset: int = 0
    checkpoint: Callable[[], Path | None] = _no_checkpoint
    continued: bool = False
    most_records: int | None = None
    never_full: bool = False

    def result_files(self) -> tuple[Path, ...]:
        """Where all records of the dataset are, the newest last."""
        return self.copies.instead_of(self.previous())


class BadRecord(Value):
    """A record of a source that does not fit its schema: why, and where it stands.

    `flaw` is what it is counted by, such as `column 'celsius'`.
    """

    reason: str
    location: Location
    flaw: str = "the form of the record"


class Skipped(Value):
    """Bad records that were left out: how many by flaw, and the first few of each flaw."""

    EXAMPLES: ClassVar[int] = 3

    counts: Mapping[str, int] = field(default_factory=dict)
    examples: tuple[BadRecord, ...] = ()

    @property
    def total(self) -> int:
        """How many were left out."""
        return sum(self.counts.values())

    def and_then(self, other: Skipped) -> Skipped:
        """These, and those that came later."""
        counts = dict(self.counts)
        kept = list(self.examples)
        for flaw, count in other.counts.items():
            counts[flaw] = counts.get(flaw, 0) + count
        for found in other.examples:
            if sum(each.flaw == found.flaw for each in kept) < self.EXAMPLES:
                kept.append(found)
        return Skipped(counts, tuple(kept))


NONE_SKIPPED = Skipped()


OnSchemaChange = Literal["fail", "ignore", "append_new_columns"]
"""What becomes of a source whose columns are not the expected ones: `fail` is an error, `ignore`
leaves new columns out, `append_new_columns` takes them in; both leave missing ones empty."""


class Drift(Value):
    """How the columns of a source differ from those that were expected, where that is tolerated."""

    new: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    retyped: tuple[str, ...] = ()

    def and_then(self, other: Drift) -> Drift:
        """Both together, each column once."""
        return Drift(
            tuple(dict.fromkeys((*self.new, *other.new))),
            tuple(dict.fromkeys((*self.missing, *other.missing))),
            tuple(dict.fromkeys((*self.retyped, *other.retyped))),
        )


NO_DRIFT = Drift()


DuplicateKeys = Literal["fail", "warn", "last"]
"""What becomes of a snapshot in which a key has several records: `fail` is an error, `warn` takes
them all, `last` the last one."""


BlankEventTimes = Literal["fail", "fill"]
"""What becomes of records whose event time is blank though their source has such a column: `fail`
takes them for bad records, `fill` gives them the event time of the file."""


LocalTimes = Literal["fail", "earlier"]
"""What becomes of times with the name of a zone whose clocks never showed them, or showed them
twice: `fail` takes them for bad values, `earlier` moves the one forward by what the clocks were put
forward, and takes the earlier instant of the other."""


class ReadPolicies(Value, kw_only=True):
    """What a project says about how data is read.

    Records that do not fit the schema are an error, or with `skip_bad_records` left out and
    counted. With `line_breaks`, quoted values of CSV may hold some; otherwise a record is a line.
    `shapefile_encoding` is that of the attributes of shapefiles (`None`: as the archive says).
    """

    skip_bad_records: bool = False
    on_schema_change: OnSchemaChange = "fail"
    duplicate_keys: DuplicateKeys = "fail"
    blank_event_times: BlankEventTimes = "fail"
    local_times: LocalTimes = "fail"
    shapefile_encoding: str | None = None
    line_breaks: bool = False

    def policies(self) -> dict[str, Any]:
        """These by name, for another value that has them."""
        return {name: getattr(self, name) for name in ReadPolicies.__struct_fields__}


class IngestTask(Request["EngineResult"], ReadPolicies, kw_only=True):
    """Read `file`, preprocess, merge with what was committed.

    `file` is prepared (decompressed) data, `source_name` what it is called in messages (path or
    URL, with the path inside an archive). `history` is what was committed so far and
    `history_schema` its schema (`None`: nothing committed yet). Records without event time get
    `event_time`, unless `blank_event_times` refuses those that a column leaves blank. Where files
    are read together, `event_times` are those of all of them; if they are `apart`, each one enters
    a dataset of its own. Records `of_changes` of a database say which rows were taken back, and not
    their event times. `seal` encrypts personal columns where new values are compared with committed
    ones.
    """

    dataset: str
    file: Path
    source_name: str
    read: ReadStep
    preprocess: TransformSql | None
    merge: MergeStrategy
    vocab: Vocabulary
    history: Committed
    history_schema: pa.Schema | None
    event_time: Timestamp
    scratch: Path
    event_times: tuple[Timestamp, ...] = ()
    apart: bool = False
    of_changes: bool = False
    seal: Convert | None = None

    def is_like(self, other: IngestTask) -> bool:
        """Whether they differ in nothing but dataset and file."""
        return self._kind() == other._kind()

    def _kind(self) -> tuple[object, ...]:
        source = (self.read, self.preprocess, self.merge, self.vocab, self.history_schema)
        return (*source, self.of_changes, self.policies())

    @property
    def another_way(self) -> str:
        """Help for a source that has changed its columns."""
        if self.preprocess is not None or self.on_schema_change != "fail":
            return f"define a new dataset, '{self.dataset}.v2'"
        return (
            f"let `ingest.onSchemaChange: {{{self.dataset}: ignore}}` in odfbuild.yaml convert it, "
            f"or define a new dataset, '{self.dataset}.v2'"
        )


class EngineResult(Value, kw_only=True):
    """Parquet files whose concatenation is the result, in record order; a few as `rows` instead.

    Without a column for the event time, that of all records is `event_time`.
    With `order`, each is in the order of these columns, and the result is what merging them gives
    (`sorted_runs`).

    Columns: `op` (int32, optional: absent means all appended), the event time column, then data
    columns in order; others that the parts may hold do not count. No offset and no system time: the
    coordinator adds them. `schema` is the result's schema also when there are no records;
    nullability in it is the declared one. It is `None` when a source has neither records nor a
    schema: there is nothing to know about it yet.
    `sealed`: personal columns are encrypted already.
    `skipped` are the bad records that were left out, `warnings` what else is to be told. `stayed`
    says why a server that should have computed it did not; empty where all went as asked.
    """

    parts: tuple[Path, ...]
    schema: pa.Schema | None
    order: tuple[str, ...] = ()
    rows: pa.Table | None = None
    event_time: Timestamp | None = None
    sealed: bool = False
    skipped: Skipped = NONE_SKIPPED
    drift: Drift = NO_DRIFT
    warnings: tuple[str, ...] = ()
    stayed: str = ""

    @property
    def note(self) -> str:
        """`stayed` for people; empty when there is nothing to tell."""
        return f"computed beside odfbuild, not by the server: {self.stayed}" if self.stayed else ""


class Told(Value):
    """What a program that is an engine says beside the records: its watermark, and its state."""

    watermark: Timestamp | None = None
    checkpoint: Path | None = None


class Extent(Value):
    """How many `records` of inputs a step was computed over, of `total`, and why over all of them.

    `why` is empty where it was computed over new records, or those of the keys that these have.
    """

    records: int
    total: int
    why: str = ""

    @property
    def note(self) -> str:
        """The same for people."""
        if self.why:
            return f"computed over all {self.total:,} records of its inputs: {self.why}"
        return f"computed over {self.records:,} of {self.total:,} records of its inputs"


class TransformResult(EngineResult, kw_only=True):
    """The records of one step, the mode that made them, and why it is that one.

    `read` are the data files of inputs that it read, and `extent` how much of long histories a
    result was computed over that needs more than the new records. `told` is what an engine that is
    a program said; of the built-in one the coordinator knows it all.
    """

    choice: Choice
    read: frozenset[Path] = frozenset()
    extent: Extent | None = None
    told: Told | None = None


class ProvenanceTask(Request["Provenance"], kw_only=True):
    """Tell where records of a step come from that was recorded in a chain.

    `step` is the request that made them, and `file` the slice that it gave, with `schema`. Each of
    the sets of offsets in `asked` is a question of its own. With `columns`, also tell which columns
    of the inputs its columns are made of. The step is recomputed with an extended query; nothing is
    stored for it.
    """

    step: TransformTask
    file: Path
    schema: pa.Schema
    asked: tuple[Ranges, ...]
    columns: bool = False

    def afresh(self) -> Self:
        """See `Request`."""
        return replace(self, step=self.step.afresh())


class Origin(Value):
    """The records of the inputs that records need to come out as they do (why-provenance).

    `records` are their offsets by the alias of the input. Of the inputs in `whole` no single
    records can be told, and why: all that the step read of them counts. An input in neither
    contributed nothing. `before`: there is a record that takes another one back; what the other one
    came from, just before the step, is among the records.
    """

    records: Mapping[str, Ranges]
    whole: Mapping[str, str] = field(default_factory=dict)
    before: bool = False


class Provenance(Value):
    """Where records come from, an origin for each question, and the mode that made them.

    `lineage` tells of their columns, by aliases of the inputs; `None`: not asked, or not known.
    """

    choice: Choice
    origins: tuple[Origin, ...]
    lineage: Lineage | None = None


class Together(Request["Sequence[Done] | None"]):
    """Carry out several tasks in one job; each result is what the task alone gives.

    Steps (`TransformTask`) are of one dataset; they have the same transformation, and inputs with
    the same columns. Files (`IngestTask`) enter one dataset one after the other, each as if those
    before were committed, or each of them a dataset of its own.
    `None`: they have to be carried out one by one, also where that will raise an error.
    """

    tasks: tuple[Request[Done], ...]

    def afresh(self) -> Self:
        """See `Request`."""
        return replace(self, tasks=tuple(each.afresh() for each in self.tasks))


class ViolationsTask(Request[tuple[int, str]], kw_only=True):
    """How many records a query over the view `slice` finds, and the first of them as text.

    `files` are data files of `dataset` with `schema`. Raises `CheckError` E0543 for a query that is
    wrong, or that is none.
    """

    dataset: str
    query: str
    files: tuple[Path, ...]
    schema: pa.Schema
    vocab: Vocabulary


class QueryTask(Request["EngineResult"]):
    """A question over `inputs`, whose aliases are the relations that `sql` may read.

    They show what their records amount to, without system columns; with `history` all records. At
    most `limit` rows are wanted. With `repeatable`, the same rows must come whenever it is asked.
    An input in `chosen` shows the records whose offsets are in that Parquet file, instead. `steps`
    are views, each for the steps behind it and for `sql`.
    Raises `QueryError`s as `ValidateTask` does. A query that need not be repeatable may ask for
    what a transformation must not, such as any ten records; it sees nothing but its inputs all the
    same.
    """

    sql: str
    inputs: tuple[InputSlices, ...]
    scratch: Path
    history: bool = False
    limit: int | None = None
    repeatable: bool = False
    chosen: Mapping[str, Path] = field(default_factory=dict)
    steps: tuple[SqlQueryStep, ...] = ()


class EngineInfo(Value):
    """Where an engine runs: address, release, fences of the operating system and why others lack.

    The texts are for people.
    """

    master: str
    version: str
    fences: str
    lacking: tuple[str, ...] = ()
    name: str = "Spark runs"


class StepProgress(Value, kw_only=True):
    """How far an engine is with a dataset: of what it knows of so far, which grows as it goes on.

    `records_read` counts what its tasks read, of inputs and of what it put aside itself.
    """

    stages_done: int
    stages: int
    tasks_done: int
    tasks: int
    records_read: int = 0


class Engine(Protocol):
    """An engine in a running session. Methods may be called from several threads at once."""

    def run(self, request: Request[Done]) -> Done:
        """Carry out a request; its class says what it gives and raises."""
        ...

    def progress(self, dataset: str) -> StepProgress | None:
        """How far it is with what it does for `dataset` now; `None` when that is unknown."""
        ...

    def about(self) -> EngineInfo:
        """Where it runs, and what keeps it in."""
        ...

    def stop(self) -> None:
        """End the session."""
        ...


EngineFactory = Callable[[], Engine]
"""Starts a session; slow, called at most once per apply and in the background."""


def in_one_job(engine: Engine, tasks: Sequence[Request[Done]]) -> Sequence[Done | None]:
    """What each of several tasks gives in one job; nothing where they go one by one."""
    done = engine.run(Together(tuple(tasks))) if len(tasks) > 1 else None
    return done or [None] * len(tasks)
