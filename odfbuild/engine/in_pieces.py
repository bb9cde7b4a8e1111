"""Steps whose slices are made where the data is: what executors are asked for, and what they tell.

A step of a query that handles each record alone is cut into pieces by the slices of its input. Each
piece is a step of its own, with a block of its own, and one task makes its slice: it reads objects
from the project's storage and writes one there. Of all that, only hashes and counts come back.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from odfbuild.engine.contract import Request
from odfbuild.odf.model import DataSlice, TransformSql
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.values import Value


class StorageAddress(Value):
    """The storage of a project as tasks find it; `root` is the folder of relative addresses."""

    address: str
    root: Path


class WrittenPiece(Value):
    """The slice of one step, which lies in the storage; `data` is `None` where it has no records.

    `max_event_time` is the largest event time in it.
    """

    data: DataSlice | None
    max_event_time: Timestamp | None = None


class PiecesTask(Request[Sequence[WrittenPiece] | None], kw_only=True):
    """Carry out several steps of `dataset`, in which each record is handled alone.

    The query knows its one input as `alias`, with `input_schema` and `input_vocab`. Each of
    `pieces` are the slices of one step, the oldest first. The first record of the first step gets
    `first_offset`, all get `system_time`, and `schema` is that of data files of the dataset.
    Tasks write the slices to the storage. `None`: the steps have to be carried out as one
    `TransformTask`, also where that will raise an error.
    """

    dataset: str
    transform: TransformSql
    alias: str
    input_schema: pa.Schema
    input_vocab: Vocabulary
    vocab: Vocabulary
    schema: pa.Schema
    pieces: tuple[tuple[DataSlice, ...], ...]
    storage: StorageAddress
    first_offset: int
    system_time: Timestamp
