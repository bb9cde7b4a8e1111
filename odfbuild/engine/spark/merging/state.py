"""The current state of a dataset, kept beside its chain.

A side-car holds the state at a block; what came after it is merged in while reading. When that has
become a good part of the whole, a new side-car is written, so that writing costs no more than the
records did.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.engine.contract import IngestTask
from odfbuild.engine.spark.merging.changes import latest, project, unseen
from odfbuild.engine.spark.results.executor import KEPT, write_parts
from odfbuild.engine.spark.results.frames import quote, read_slices
from odfbuild.fallbacks import fell_back
from odfbuild.odf.operation import RETRACT
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.store.committed import Committed, files_of
from odfbuild.store.disposable import prepare_cache_folder
from odfbuild.store.side_cars import SideCarFolder, SideCars

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WORTH_KEEPING = 100_000
"""Fewer records than this are read faster than a state is written."""


def current_state(
    spark: SparkSession, task: IngestTask, schema: pa.Schema, key: Sequence[str]
) -> DataFrame | None:
    """The latest record of each key, unless that is a retraction; `None` without any records.

    Columns are those of `schema`, the dataset's.
    """
    folder = _folder(task.history, task.vocab, key)
    kept, slices = task.history.behind(folder) if folder else (None, task.history.slices())
    if kept is None and not slices:
        return None
    recent = files_of(slices, task.history.copies())
    state = _updated(spark, schema, task.vocab, key, folder, kept, recent)
    known = sum(file.records for file in kept.files) if kept else 0
    new = sum(each.records for each in slices)
    if folder is None or new < WORTH_KEEPING or 2 * new < known:
        return state
    try:
        kept = _keep(state, folder, task.history)
    except Exception as error:  # the merge itself meets it, or can do without a side-car
        fell_back(__name__, "the state of a dataset is not kept", error)
        return state
    return _updated(spark, schema, task.vocab, key, folder, kept, ())


def _folder(committed: Committed, vocab: Vocabulary, key: Sequence[str]) -> SideCarFolder | None:
    if committed.side_cars is None:
        return None
    name = hashlib.sha256(repr((vocab, tuple(key))).encode()).hexdigest()
    return SideCarFolder(committed.side_cars / f"state-{name[:16]}", name.encode())


def _updated(
    spark: SparkSession,
    schema: pa.Schema,
    vocab: Vocabulary,
    key: Sequence[str],
    folder: SideCarFolder | None,
    kept: SideCars | None,
    files: Sequence[Path],
) -> DataFrame:
    """The state in `kept` with the records of `files` on top."""
    recent = read_slices(spark, files, schema, vocab)
    if kept is None or folder is None:
        return project(recent, key, vocab)
    state = read_slices(spark, [folder.path(file) for file in kept.files], schema, vocab)
    if not files:
        return state
    newest = latest(recent, key, vocab)
    status = newest.where(f"{quote(vocab.operation_type)} != {RETRACT}")
    return unseen(state, newest, key).unionAll(status)


def _keep(state: DataFrame, folder: SideCarFolder, committed: Committed) -> SideCars:
    prepare_cache_folder(folder.folder)
    name = secrets.token_hex(8)
    write_parts(state, folder.folder / name, KEPT)
    files = [
        folder.describe(f"{name}/{part.name}", pq.read_metadata(part).num_rows)
        for part in sorted((folder.folder / name).glob("part-*"))
    ]
    assert committed.head is not None
    return folder.save(committed.head, files)
