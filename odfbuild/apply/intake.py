"""Commit records that are pushed to a server: requests for a dataset together, in one block.

The engine reads them in one job, each with the result that it would have alone behind those before
it; these results are one slice, and one block records the keys of all. If anything is wrong with
one of them, each is committed by itself, so that the wrong one fails alone. The engine is kept
between batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from threading import Lock

import numpy as np
import pyarrow as pa

from odfbuild.apply.attempt import begin
from odfbuild.apply.audit import Audit, Audits
from odfbuild.apply.ingest import (
    Arrival,
    keep_side_cars,
    stage_ingest,
    task_for,
)
from odfbuild.apply.ingest_request import IngestRequest, arrival_of, state_of
from odfbuild.apply.refuse_external import check_own
from odfbuild.apply.transaction import Transaction
from odfbuild.engine.contract import Engine, EngineFactory, EngineResult, in_one_job
from odfbuild.engine.lazy import LazyEngine
from odfbuild.engine.slice import records_of
from odfbuild.errors import (
    CheckError,
    Errors,
    IngestError,
    OdfbuildError,
    PlanError,
    QueryError,
    RepositoryError,
    StaleHeadError,
)
from odfbuild.exchange.repositories.serve.handed import Handed, Receipt, in_format
from odfbuild.ingest.file_kind import refuse_other_kind
from odfbuild.ingest.idempotency_keys import blocks_of_keys, request_of_key
from odfbuild.ingest.push_sources import Counted, attribute_of, choose_source, key_state
from odfbuild.ingest.secrets import scrub_error
from odfbuild.ingest.unexpected_errors import unforeseen
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import AddPushSource, DatasetKind, ReadStepJson, SourceState
from odfbuild.odf.vocabulary import Vocabulary, vocabulary_of
from odfbuild.project.model import Config
from odfbuild.records.arrays import of_numbers
from odfbuild.store.claims import Waiting, held_elsewhere
from odfbuild.store.disposable import scratch_folder
from odfbuild.store.workspace import Workspace

Answer = Receipt | OdfbuildError

_WAITING = Waiting(seconds=20)
_OF_DATA = (
    CheckError,
    Errors,
    IngestError,
    PlanError,
    QueryError,
    RepositoryError,
    StaleHeadError,
)
"""Errors after which the engine is as good as before."""
_CALLED = "the request"


class Intake:
    """Takes requests for the datasets of a project, for as long as a server runs."""

    def __init__(
        self,
        workspace: Workspace,
        config: Config,
        factory: EngineFactory,
        *,
        waiting: Waiting = _WAITING,
    ) -> None:
        self._workspace = workspace
        self._config = config
        self._factory = factory
        self._waiting = waiting
        self._lock = Lock()
        self._lazy: LazyEngine | None = None
        self._stack = ExitStack()
        self._folder: Path | None = None

    def __enter__(self) -> Intake:
        scratch = scratch_folder(self._workspace.cache, "pushed")
        self._folder = self._stack.enter_context(scratch)
        return self

    def __exit__(self, *_: object) -> None:
        self._end_engine()
        self._stack.close()

    @property
    def folder(self) -> Path:
        """See `handed.Taker`; only within the context."""
        if self._folder is None:
            raise AssertionError("an intake is a context")
        return self._folder

    def take(self, dataset: str, batch: Sequence[Handed]) -> Sequence[Answer]:
        """See `handed.Taker`."""
        answers: list[Answer | None] = [None] * len(batch)
        try:
            with self._workspace.claim([dataset], self._waiting) as claim:
                if dataset in claim.held:
                    raise held_elsewhere(dataset, claim.held[dataset])
                check_own(self._workspace, dataset)
                for _, alike in groupby(enumerate(batch), lambda e: (e[1].source, e[1].format)):
                    self._take_alike(dataset, list(alike), answers)
        except Exception as error:
            failed = self._failed(error, dataset)
            return [each or failed for each in answers]
        return [each for each in answers if each is not None]

    def _end_engine(self) -> None:
        with self._lock:
            lazy, self._lazy = self._lazy, None
        if lazy is not None:
            lazy.stop()

    def _take_alike(
        self, dataset: str, batch: Sequence[tuple[int, Handed]], answers: list[Answer | None]
    ) -> None:
        """Requests for one source, in one format: an answer for each, by its number."""
        try:
            source = self._source(dataset, batch[0][1])
        except OdfbuildError as error:
            for number, _ in batch:
                answers[number] = scrub_error(error)
            return
        new: list[tuple[int, Handed]] = []
        again: list[tuple[int, Handed]] = []
        seen: set[str] = set()
        known = self._known(dataset, source)
        for number, handed in batch:
            answers[number] = known(handed)
            if answers[number] is None and seen.isdisjoint(handed.keys):
                new.append((number, handed))
                seen.update(handed.keys)
            elif answers[number] is None:
                again.append((number, handed))
        receipts = self._together(dataset, source, [handed for _, handed in new])
        for (number, _), receipt in zip(new, receipts, strict=False):
            answers[number] = receipt
        for number, handed in again if receipts else [*new, *again]:
            # One with the same key may have been committed just now.
            earlier = self._known(dataset, source)(handed) if again else None
            answers[number] = earlier or self._alone(dataset, source, handed)

    def _source(self, dataset: str, handed: Handed) -> AddPushSource:
        """The push source of a request, which reads the format in which its records come."""
        source = choose_source(dataset, state_of(self._workspace, dataset), handed.source)
        read = in_format(source.read, handed.format)
        if read is None:
            raise RepositoryError(
                f"records of '{dataset}' cannot come as {handed.format}: its push source reads "
                f"{source.read.KIND}",
                code="E1055",
                dataset=dataset,
                help="send them as the source reads them, without a `Content-Type`",
            )
        return replace(source, read=read)

    def _known(self, dataset: str, source: AddPushSource) -> Callable[[Handed], Receipt | None]:
        """What came of an earlier request with one of the same keys, as the chain says now."""
        committed = self._workspace.committed(dataset, state_of(self._workspace, dataset))
        blocks = blocks_of_keys(committed)

        def receipt(handed: Handed) -> Receipt | None:
            for key in handed.keys:
                number = blocks.get((source.source_name, key))
                if number is None:
                    continue
                found = request_of_key(committed, key_state(source, key), number)
                if found is not None:
                    block, counted = found
                    return Receipt(
                        block=str(block),
                        number=number,
                        records=counted.records or 0,
                        skipped=counted.skipped,
                        repeated=True,
                    )
            return None

        return receipt

    def _together(
        self, dataset: str, source: AddPushSource, batch: Sequence[Handed]
    ) -> Sequence[Receipt]:
        """Commit all of them in one block; nothing where each has to be committed by itself."""
        base = state_of(self._workspace, dataset)
        # What comes of the first records of all decides how others are read.
        if len(batch) < 2 or base.schema is None:
            return ()
        try:
            with scratch_folder(self._workspace.cache, "ingest") as scratch:
                return self._in_one_block(dataset, source, batch, base, scratch)
        except _OF_DATA:
            return ()
        except Exception as error:
            self._failed(error, dataset)
            return ()

    def _in_one_block(
        self,
        dataset: str,
        source: AddPushSource,
        batch: Sequence[Handed],
        base: Projection,
        scratch: Path,
    ) -> Sequence[Receipt]:
        warnings: list[str] = []
        transaction = begin(
            self._workspace, dataset, DatasetKind.Root, base, audit=self._audit(dataset, warnings)
        )
        last = next((each.keys[0] for each in reversed(batch) if each.keys), None)
        state = base.source_state if last is None else key_state(source, last)
        tasks = []
        for position, handed in enumerate(batch):
            arrival = self._arrival(dataset, source, handed, state)
            folder = scratch / str(position)
            folder.mkdir()
            tasks.append(task_for(transaction, arrival, folder))
        engine = self._engine()
        results = [each for each in in_one_job(engine, tasks) if each is not None]
        if len(results) < len(batch) or any(each.schema != results[0].schema for each in results):
            return ()
        joined, records = _joined(results, vocabulary_of(base.vocab))
        counts = [
            Counted(keys=handed.keys, records=rows, skipped=result.skipped.total)
            for handed, rows, result in zip(batch, records, results, strict=True)
        ]
        arrival = replace(arrival, recorded=attribute_of(counts))
        stage_ingest(transaction, lambda: engine, arrival, scratch, joined)
        block, number = self._commit(transaction, source, sum(records))
        return [
            Receipt(
                block=block if each.keys or each.records else None,
                number=number if each.keys or each.records else None,
                records=each.records or 0,
                skipped=each.skipped,
                warnings=(*result.warnings, *warnings),
            )
            for each, result in zip(counts, results, strict=True)
        ]

    def _alone(self, dataset: str, source: AddPushSource, handed: Handed) -> Answer:
        """Commit one request."""
        try:
            with scratch_folder(self._workspace.cache, "ingest") as scratch:
                return self._in_a_block(dataset, source, handed, scratch)
        except _OF_DATA as error:
            return scrub_error(error)

    def _in_a_block(
        self, dataset: str, source: AddPushSource, handed: Handed, scratch: Path
    ) -> Receipt:
        base = state_of(self._workspace, dataset)
        warnings: list[str] = []
        transaction = begin(
            self._workspace, dataset, DatasetKind.Root, base, audit=self._audit(dataset, warnings)
        )
        state = key_state(source, handed.keys[0]) if handed.keys else base.source_state
        arrival = self._arrival(dataset, source, handed, state)
        engine = self._engine()
        result = engine.run(task_for(transaction, arrival, scratch))
        skipped = result.skipped.total
        if len(handed.keys) > 1 or skipped:
            counted = Counted(keys=handed.keys, records=None, skipped=skipped)
            arrival = replace(arrival, recorded=attribute_of([counted]))
        found = stage_ingest(transaction, lambda: engine, arrival, scratch, result)
        block, number = self._commit(transaction, source, found.records)
        return Receipt(
            block=block,
            number=number,
            records=found.records,
            skipped=skipped,
            warnings=(*found.warnings, *warnings),
        )

    def _commit(
        self, transaction: Transaction, source: AddPushSource, records: int
    ) -> tuple[str | None, int | None]:
        """The block that the transaction ends with; nothing where it is empty."""
        if not transaction.commit():
            return None, None
        state = state_of(self._workspace, transaction.alias)
        if records:
            keep_side_cars(self._workspace, transaction.alias, source.merge)
        return str(state.head), state.blocks - 1

    def _arrival(
        self, dataset: str, source: AddPushSource, handed: Handed, state: SourceState | None
    ) -> Arrival:
        request = IngestRequest(
            dataset=dataset, source=handed.source, data=handed.file, event_time=handed.event_time
        ).under(self._config)
        refuse_other_kind(handed.file, source.read, _CALLED, dataset)
        if isinstance(source.read, ReadStepJson) and source.read.sub_path is None:
            _put_into_list(handed.file)
        return arrival_of(request, source, handed.file, state, _CALLED, self._config)

    def _audit(self, dataset: str, warnings: list[str]) -> Audit | None:
        audits = Audits(self._config.root, self._config.checks, self._workspace, self._engine)
        return audits.of(dataset, lambda *found: warnings.extend(map(str, found)))

    def _engine(self) -> Engine:
        with self._lock:
            if self._lazy is None:
                self._lazy = LazyEngine(self._factory)
            lazy = self._lazy
        return lazy.get()

    def _failed(self, error: Exception, dataset: str) -> OdfbuildError:
        """What a failure is told as; after one that is not about data, a new engine is used."""
        if not isinstance(error, _OF_DATA):
            self._end_engine()
        if isinstance(error, OdfbuildError):
            return scrub_error(error)
        return unforeseen(error, self._workspace.cache, f"working on '{dataset}'", dataset)


def _put_into_list(file: Path) -> None:
    """Make an object in JSON a list of one, which is what can be read."""
    data = file.read_bytes()
    if data.lstrip()[:1] == b"{":
        file.write_bytes(b"[%s]" % data)


def _joined(
    results: Sequence[EngineResult], vocab: Vocabulary
) -> tuple[EngineResult, Sequence[int]]:
    """The results behind each other as one, and how many records each of them has."""
    found = [list(records_of(each, vocab)) for each in results]
    operation = vocab.operation_type
    some = any(operation in batch.schema.names for batches in found for batch in batches)
    joined = [_with_operation(b, operation) if some else b for batches in found for b in batches]
    rows = pa.Table.from_batches(joined) if joined else None
    first = results[0]
    whole = EngineResult(parts=(), schema=first.schema, rows=rows, sealed=first.sealed)
    return whole, [sum(batch.num_rows for batch in batches) for batches in found]


def _with_operation(batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
    """The same with a column of operations: records without one are appended."""
    if name in batch.schema.names:
        return batch
    zeros = of_numbers(np.zeros(batch.num_rows, np.int32), pa.int32())
    return pa.RecordBatch.from_arrays([zeros, *batch.columns], names=[name, *batch.schema.names])
