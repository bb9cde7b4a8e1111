"""Which records the current state leaves out.

A retraction takes away one equal record, and is no record of the state itself; a correction is a
retraction and the record that follows it. This is the only place that says so for readers without
Spark; `engine/spark/queries/inputs.py` says the same for Spark, and tests compare both. Sources:
Open Data Fabric, "Retractions and corrections"; RFC-015.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from odfbuild.odf.operation import APPEND, CORRECT_FROM, CORRECT_TO, RETRACT
from odfbuild.records.live import only_appends
from odfbuild.records.operations import has_operations
from odfbuild.store.disposable import read_disposable, write_disposable
from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.records.stored import Stored

_STAMP = b"odfbuild retracted records 1\n"


class Retracted(Value):
    """`offsets` of records that were taken back, and the number of retractions that did it."""

    offsets: pa.Array
    retractions: int = 0

    @property
    def count(self) -> int:
        """How many records the current state lacks."""
        return len(self.offsets) + self.retractions

    @property
    def early(self) -> bool:
        """Whether retractions found no record, and take away one that comes later."""
        return self.retractions > len(self.offsets)


def retracted(stored: Stored) -> Retracted:
    """What is left out of `stored`; found once for each head, and kept beside the chain."""
    if not stored.slices:
        return _NOTHING
    folder, head = stored.committed.side_cars, stored.committed.head
    assert head is not None
    file = folder and folder / "retracted.bin"
    stamp = _STAMP + head.binary + repr(stored.vocab).encode() + b"\n"
    kept = read_disposable(file, stamp, tuple[int, memoryview]) if file else None
    if kept is not None:
        retractions, data = kept
        offsets = pa.Array.from_buffers(pa.int64(), len(data) // 8, [None, pa.py_buffer(data)])
        return Retracted(offsets, retractions)
    appends = only_appends(stored.committed, stored.state)
    found = _NOTHING if appends else _found(stored)
    if file:
        write_disposable(file, stamp, (found.retractions, _bytes(found.offsets)))
    return found


# Made of no buffers: `pa.array` would load pandas.
_NOTHING = Retracted(pa.Array.from_buffers(pa.int64(), 0, [None, None]))


def _found(stored: Stored) -> Retracted:
    if not has_operations(stored.files, stored.vocab.operation_type):
        return _NOTHING
    from odfbuild.records.duckdb_views import connect, history_sql, quote

    vocab = stored.vocab
    operation, offset = quote(vocab.operation_type), quote(vocab.offset)
    names = list(map(quote, stored.data_columns))
    same = " AND ".join(f"r.{name} IS NOT DISTINCT FROM t.{name}" for name in names)
    by_value = ", ".join(f"r.{name}" for name in names)
    with connect() as connection:
        connection.execute(
            f"CREATE VIEW records AS {history_sql(stored, connection)};"
            f"CREATE TEMP TABLE taken AS SELECT {', '.join(names)}, count(*) AS __odf_taken"
            f" FROM records WHERE {operation} IN ({RETRACT}, {CORRECT_FROM}) GROUP BY ALL"
        )
        # Of equal records the newest ones stay, so that the oldest are left out.
        found = connection.sql(
            f"SELECT {offset} AS __odf_offset FROM (SELECT r.{offset}, t.__odf_taken, row_number()"
            f" OVER (PARTITION BY {by_value} ORDER BY r.{offset}) AS __odf_rank"
            f" FROM records r JOIN taken t ON {same}"
            f" WHERE r.{operation} IN ({APPEND}, {CORRECT_TO})) WHERE __odf_rank <= __odf_taken"
            " ORDER BY ALL"
        ).to_arrow_table()
        (taken,) = connection.sql("SELECT sum(__odf_taken)::BIGINT FROM taken").fetchall()[0]
    offsets = pa.concat_arrays(found["__odf_offset"].chunks or [_NOTHING.offsets])
    return Retracted(offsets.cast(pa.int64()), taken or 0)


def _bytes(offsets: pa.Array) -> bytes:
    return bytes(offsets.to_numpy(zero_copy_only=False).tobytes()) if len(offsets) else b""
