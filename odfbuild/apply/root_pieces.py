"""Let executors read the object of a source that lies in a store, and write its slices.

Several `AddData` come of one object. Only the last one moves the state of the source, so that a
peer never takes the object for read that is not, and the watermark, so that no record of the object
is late for another one of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from odfbuild.apply.data_event import data_event
from odfbuild.apply.in_pieces import may_use_executors
from odfbuild.apply.schema import ensure_schema
from odfbuild.apply.transaction import Transaction
from odfbuild.engine.contract import Engine, IngestTask
from odfbuild.engine.in_pieces import RootTask, StorageAddress, WrittenPiece, WrittenRoot
from odfbuild.engine.personal import scope_of
from odfbuild.engine.settings import EngineSettings, bytes_of, in_force
from odfbuild.odf.model import SetPollingSource, SourceState
from odfbuild.odf.schema.arrow_schema import declared_columns
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import vocabulary_of
from odfbuild.project.model import Config
from odfbuild.project.settings.watermarks import WatermarkRule, rule_of
from odfbuild.records.links import link_columns
from odfbuild.store.remote_object import RemoteObject


def stays(transaction: Transaction, config: Config, source: RemoteObject) -> bool:
    """Whether executors may read an object where it is, as far as definition and settings tell."""
    settings, state = in_force(config.engine), transaction.state
    polling, name = state.polling_source, transaction.alias
    if polling is None or settings.remote or not may_use_executors(transaction):
        return False
    columns = declared_columns(polling.read)
    return (
        settings.by_executors(source.size)
        and columns is not None
        and not link_columns(columns)
        and _is_simple(polling)
        and scope_of(transaction.workspace.dataset(name), state) is None
        and rule_of(config.watermarks, name).max_ahead is None
    )


def _is_simple(source: SetPollingSource) -> bool:
    return not source.prepare and source.preprocess is None and source.merge.KEEPS_ALL


def written_by_executors(
    transaction: Transaction,
    engine: Callable[[], Engine],
    ingest: IngestTask,
    source: RemoteObject,
    settings: EngineSettings,
) -> WrittenRoot:
    """The slices of an object, piece by piece. Adds nothing but the schema."""
    storage = transaction.workspace.storage
    assert storage is not None, "asked by `stays`"
    state = transaction.state
    last = state.last_offset
    vocab = vocabulary_of(state.vocab)
    task = RootTask(
        dataset=transaction.alias,
        ingest=ingest,
        source=source,
        storage=StorageAddress(storage.address, storage.root),
        piece_bytes=bytes_of(in_force(settings).slice_size),
        first_offset=0 if last is None else last + 1,
        system_time=transaction.system_time,
        schema_of=partial(ensure_schema, transaction, vocab=vocab),
    )
    return engine().run(task)


def add_pieces(
    transaction: Transaction,
    pieces: Sequence[WrittenPiece],
    source_state: SourceState | None,
    rule: WatermarkRule,
) -> None:
    """Add the events of slices that executors wrote of an object."""
    known = transaction.state.source_state
    latest: Timestamp | None = None
    for number, piece in enumerate(pieces, 1):
        is_last = number == len(pieces)
        times = [each for each in (latest, piece.max_event_time) if each is not None]
        latest = max(times, default=None)
        state, newest = (source_state, latest) if is_last else (known, None)
        transaction.add(data_event(transaction, piece.data, newest, state, rule))
