"""Steps whose slices are made where the data is: what executors are asked for, and what they tell.

A step of a query that handles each record alone is cut into pieces by the slices of its input. Each
piece is a step of its own, with a block of its own, and one task makes its slice: it reads objects
from the project's storage and writes one there. Of any other query, a step is one piece: tasks read
the objects of all inputs, and one task writes the slice. Of all that, only hashes and counts come
back.

A step that was committed is carried out again in the same way (`Recorded`): then a task compares
what it wrote with what the chain has, and keeps nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path

import pyarrow as pa

from odfbuild.engine.contract import IngestTask, Request
from odfbuild.odf.chain.step import PromisedSlice
from odfbuild.odf.model import DataSlice, TransformSql
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.records.first_difference import RecordDifference
from odfbuild.records.intact import Damage
from odfbuild.sql.mode import Choice
from odfbuild.store.remote_object import RemoteObject
from odfbuild.values import Value


class StorageAddress(Value):
    """The storage of a project as tasks find it; `root` is the folder of relative addresses."""

    address: str
    root: Path


class WrittenPiece(Value):
    """The slice of one step, which lies in the storage; `data` is `None` where it has no records.

    `max_event_time` is the largest event time in it. Of one that was only compared, `difference`
    is the first record that is not as it was recorded.
    """

    data: DataSlice | None
    max_event_time: Timestamp | None = None
    difference: RecordDifference | None = None


class Recorded(Value):
    """A step that was committed at `system_time`, whose result is `data` from `first_offset` on."""

    data: DataSlice | None
    first_offset: int
    system_time: Timestamp


class StoredInput(Value, kw_only=True):
    """One input of a step, whose objects are all in the storage.

    `slices` are those of the step, `earlier` those before them, both oldest first. `watermark` is
    that of the input at the end of the step.
    """

    alias: str
    schema: pa.Schema
    vocab: Vocabulary
    slices: tuple[PromisedSlice, ...]
    earlier: tuple[PromisedSlice, ...]
    watermark: Timestamp | None

    @property
    def all_slices(self) -> tuple[PromisedSlice, ...]:
        """All of them, oldest first."""
        return (*self.earlier, *self.slices)


class WrittenStep(Value):
    """The slice of a step in the mode of `choice`; `late` are records behind windows, by alias."""

    piece: WrittenPiece
    choice: Choice
    late: Mapping[str, int] = field(default_factory=dict)


class WrittenRoot(Value):
    """Slices of the pieces of an object, or else `why` it has to be read by an `IngestTask`."""

    pieces: tuple[WrittenPiece, ...] = ()
    why: str = ""


class PiecesTask(Request[Sequence[WrittenPiece] | None], kw_only=True):
    """Carry out several steps of `dataset`, in which each record is handled alone.

    The query knows its one input as `alias`, with `input_schema` and `input_vocab`. Each of
    `pieces` are the slices of one step, the oldest first. The first record of the first step gets
    `first_offset`, all get `system_time`, and `schema` is that of data files of the dataset.
    Tasks write the slices to the storage. `None`: the steps have to be carried out as one
    `TransformTask`, also where that will raise an error.

    With `recorded`, one for each piece, they are only compared.
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
    recorded: tuple[Recorded, ...] = ()


class WholeTask(Request[WrittenStep | None], kw_only=True):
    """Carry out one step of `dataset`, of a query that does not handle each record alone.

    `previous` are the slices of the result so far. Its watermark is `watermark_before` the step.
    One task writes the slice, or compares it with what is `recorded`. All else is as for
    `PiecesTask`.
    """

    dataset: str
    transform: TransformSql
    inputs: tuple[StoredInput, ...]
    vocab: Vocabulary
    schema: pa.Schema
    previous: tuple[DataSlice, ...]
    storage: StorageAddress
    first_offset: int
    system_time: Timestamp
    watermark_before: Timestamp | None
    recorded: Recorded | None = None


class CheckTask(Request[Sequence[Damage | None] | None], kw_only=True):
    """Check `slices` of `dataset`, each with the name of its column of offsets, in the storage.

    Tasks read them and tell of each what `records.intact` finds; `logical` as for `check_slice`.
    `None`: it has to be done here.
    """

    dataset: str
    slices: tuple[tuple[DataSlice, str], ...]
    storage: StorageAddress
    logical: bool


class RootTask(Request[WrittenRoot], kw_only=True):
    """Append the records of `source` to `dataset`, read as `ingest` says, whose file is not there.

    It is cut into pieces of up to `piece_bytes`, each in the order of its event times.
    `schema_of` gives the schema of data files for that of a result.
    """

    dataset: str
    ingest: IngestTask
    source: RemoteObject
    storage: StorageAddress
    piece_bytes: int
    first_offset: int
    system_time: Timestamp
    schema_of: Callable[[pa.Schema], pa.Schema]
