"""Steps of a root dataset: from source files to `AddData`, one transaction a file.

Source: Open Data Fabric, "Data Ingestion", "Merge Strategies"; reference behaviour, data writer.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from odfbuild.apply.history import slices_between
from odfbuild.apply.schema import check_compatible
from odfbuild.apply.staging import stage_slice
from odfbuild.apply.transaction import Transaction
from odfbuild.engine.contract import Engine, IngestTask, vocabulary_of
from odfbuild.engine.slice import dataset_schema
from odfbuild.ingest.fetch import Fetched
from odfbuild.ingest.prepare import prepare
from odfbuild.odf.arrow_schema import from_odf, schema_of
from odfbuild.odf.ddl import parse_ddl
from odfbuild.odf.model import AddData, ReadStep
from odfbuild.odf.timestamp import Timestamp


def stage_ingest(transaction: Transaction, engine: Engine, fetched: Fetched, scratch: Path) -> int:
    """Prepare, read and merge one fetched file; add the resulting events; returns the records.

    Adds nothing when the source holds nothing new and its state is the same.
    """
    state = transaction.state
    source = state.polling_source
    if source is None:
        raise AssertionError("only a dataset with a polling source is ingested")
    vocab = vocabulary_of(state.vocab)
    file, name = prepare(source.prepare or (), fetched.file, fetched.display_name, scratch)
    base = transaction.base
    history: tuple[Path, ...] = ()
    if base is not None:
        store = transaction.workspace.dataset(transaction.alias)
        history = tuple(
            store.object_path("data", s.physical_hash)
            for s in slices_between(store, None, base.head)
        )
    result = engine.ingest(
        IngestTask(
            dataset=transaction.alias,
            file=file,
            source_name=name,
            read=source.read,
            preprocess=source.preprocess,
            merge=source.merge,
            vocab=vocab,
            history=history,
            history_schema=schema_of(state.schema) if state.schema else None,
            event_time=fetched.event_time or transaction.system_time,
            scratch=scratch,
        )
    )
    staged = stage_slice(transaction, result, vocab, scratch)
    watermark = _later(state.watermark, staged.max_event_time if staged else None)
    if staged is not None or fetched.state != state.source_state:
        event = AddData(
            prev_checkpoint=state.last_checkpoint,
            prev_offset=state.last_offset,
            new_data=staged.data if staged else None,
            new_watermark=watermark,
            # Carried in every block, because a peer resumes from the last one only.
            new_source_state=fetched.state,
        )
        if event.new_data or event.new_watermark or event.new_source_state:
            transaction.add(event)
    return staged.records if staged else 0


def validate_source(transaction: Transaction, get_engine: Callable[[], Engine]) -> None:
    """Check a changed source against the committed schema, from its declared columns alone.

    Without declared columns only the data can tell, and then the next ingestion checks. Raises
    `QueryError`.
    """
    state = transaction.state
    source = state.polling_source
    if source is None or state.schema is None:
        return
    columns = _declared_columns(source.read)
    if columns is None:
        return
    vocab = vocabulary_of(state.vocab)
    if source.preprocess is not None:
        columns = get_engine().validate(
            transaction.alias, source.preprocess, [("input", columns)], vocab, preprocess=True
        )
    committed = schema_of(state.schema)
    if vocab.event_time not in columns.names:
        columns = columns.append(committed.field(vocab.event_time))
    check_compatible(transaction.alias, committed, dataset_schema(columns, vocab))


def _declared_columns(read: ReadStep) -> pa.Schema | None:
    if read.schema is not None:
        return from_odf(read.schema)
    return parse_ddl(read.ddl_schema) if read.ddl_schema else None


def _later(one: Timestamp | None, other: Timestamp | None) -> Timestamp | None:
    if one is None or other is None:
        return one or other
    return max(one, other)
