"""The data slices that a dataset has committed up to a head."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.values import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

    from odfbuild.odf.model import DataSlice
    from odfbuild.odf.multihash import Multihash
    from odfbuild.store.dataset import DatasetStore


@dataclass(frozen=True, slots=True)
class CommittedSlice:
    """A slice of the dataset in `store`, and what its block says about it."""

    store: DatasetStore
    data: DataSlice

    @property
    def file(self) -> Path:
        """The data file, brought from the storage if need be; `IntegrityError` as `bring`."""
        return self.store.bring("data", self.data.physical_hash)

    @property
    def records(self) -> int:
        """Number of records in the file."""
        return self.data.offset_interval.end - self.data.offset_interval.start + 1


@dataclass(frozen=True, slots=True)
class Committed:
    """What the dataset in `store` has committed up to `head` (`None`: nothing yet).

    `side_cars` is the folder for side-cars of the dataset (see `side_cars`), `None` for none.
    """

    store: DatasetStore
    head: Multihash | None
    side_cars: Path | None = None

    def slices(self, after: Multihash | None = None) -> tuple[CommittedSlice, ...]:
        """Slices of the blocks in `(after, head]`, or of the whole chain, oldest first.

        Reads these blocks only. `ChainError` E0610 when `after` is not in the history of `head`.
        """
        if self.head is None or self.head == after:
            return ()
        from odfbuild.odf.model import AddData, ExecuteTransform

        found = [
            block.event.new_data
            for _, block in self.store.walk(self.head, after)
            if isinstance(block.event, AddData | ExecuteTransform) and block.event.new_data
        ]
        found.reverse()
        return tuple(CommittedSlice(self.store, data) for data in found)

    def files(self) -> tuple[Path, ...]:
        """All data files, oldest first."""
        return files_of(self.slices())

    def newest(self, count: int | None = None) -> pa.Table | None:
        """The last `count` records (`None`: all) in order of offset, reading no more than needed.

        `None` when there are none. Columns that older slices lack are null there.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        tables: list[pa.Table] = []
        missing = count
        for piece in reversed(self.slices()):
            table = pq.read_table(piece.file)
            if missing is not None:
                table = table.slice(max(0, table.num_rows - missing))
                missing -= table.num_rows
            tables.insert(0, table)
            if missing == 0:
                break
        return pa.concat_tables(tables, promote_options="permissive") if tables else None


def files_of(slices: Sequence[CommittedSlice]) -> tuple[Path, ...]:
    """Data files of slices of one dataset, fetched several at a time where that is needed."""
    if not slices:
        return ()
    return slices[0].store.bring_all("data", (each.data.physical_hash for each in slices))
