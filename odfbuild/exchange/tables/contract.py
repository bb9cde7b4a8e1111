"""What publishing asks of a format of tables, and the values that go to and fro.

A format knows files and their metadata. It knows nothing of chains but the `TablePin`, which it
keeps with each state and gives back. `publish.py` decides what to write.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol, cast

from odfbuild.odf.identity import DatasetId
from odfbuild.odf.multihash import Multihash
from odfbuild.project.tables import Table

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from odfbuild.odf.schema import arrow
    from odfbuild.odf.stewardship import Signed
    from odfbuild.records.pin import View

Key = tuple[Any, ...]
"""Values of the partition columns, in their order, as PyArrow's `as_py` gives them.

`()` where a table has no partition columns: then all records are one partition."""

PIN = "odfbuild.pin"
"""The name under which formats keep a pin among the metadata of a state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePin:
    """What a state of a table holds: a dataset up to a block.

    `last_offset` is that of the newest record (`None`: there is none); `layout` stands for how the
    table is laid out (`layout_of`). With `early`, retractions wait for records that may come later,
    which the state does not tell.
    """

    dataset_id: DatasetId
    block: Multihash
    last_offset: int | None
    view: View
    layout: str
    early: bool = False

    def to_text(self) -> str:
        """One line of JSON, the same for equal pins."""
        data = {
            "datasetId": str(self.dataset_id),
            "block": str(self.block),
            "lastOffset": self.last_offset,
            "view": self.view,
            "layout": self.layout,
            **({"early": True} if self.early else {}),
        }
        return json.dumps(data, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str | None) -> TablePin | None:
        """A pin as `to_text` wrote it; `None`: it is none, so the state is of somebody else."""
        try:
            data = json.loads(text or "")
            return cls(
                dataset_id=DatasetId.parse(data["datasetId"]),
                block=Multihash.parse(data["block"]),
                last_offset=data["lastOffset"],
                view=cast("View", data["view"]),
                layout=str(data["layout"]),
                early=bool(data.get("early")),
            )
        except (ValueError, KeyError, TypeError):
            return None


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table whose columns are known.

    `schema` has the columns of its view, partition columns included, in the order of the dataset.
    `scratch` is a folder of this process for files that are made before they are where they belong.
    Metadata that outlives data files has no values of `personal` columns.
    """

    table: Table
    schema: pa.Schema
    scratch: Path
    personal: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """The present state of a table.

    `token` is another one after any change, whoever made it: a version, a snapshot, a digest of the
    metadata. `pin` is what the state says that it holds. `changed_by` tells, in a few words for
    people, what was done since odfbuild wrote the table, or that it never did (`None`: nothing).
    Numbers are those of the metadata; `None` where reading them would mean to open files.
    """

    token: str
    pin: TablePin | None
    changed_by: str | None = None
    partitions: int | None = None
    files: int | None = None
    records: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Touched:
    """The new content of one partition: at least one record, in the order of files.

    `batches` has the columns of `TableSpec.schema`, partition columns too. It can be read once, and
    has to be read before the next partition is asked for. Batches may be of any size.
    """

    key: Key
    batches: Iterable[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Garbage:
    """Files that `collect` removed, or would remove: names below the table's address, and bytes."""

    files: tuple[str, ...] = ()
    bytes: int = 0


def grouped(keys: Iterable[Key]) -> Iterator[tuple[list[Any], ...]]:
    """Keys as few products of values: each column's values, any of them with any other.

    Keys that differ in the last column only are one product; formats choose partitions by them.
    """
    groups: dict[Key, list[Any]] = {}
    for key in keys:
        groups.setdefault(key[:-1], []).append(key[-1])
    for head, values in groups.items():
        yield *([value] for value in head), values


class TableMoved(Exception):
    """Somebody else committed a state since the one that was expected; nothing was changed."""


class TableFormat(Protocol):
    """One table in one format. Faults of places are errors of `store/place.py`, as they come."""

    def read_state(self) -> TableState | None:
        """The present state; `None`: nothing is there.

        Where something is there that cannot be understood, `changed_by` says what, so that a table
        can be written anew; `TableError` only where even that cannot be (E13xx of the format).
        """
        ...

    def content_of(self, state: TableState, keys: Sequence[Key] | None) -> Iterator[pa.RecordBatch]:
        """The records of these partitions in `state`, which is the present one; `None`: all.

        Columns are those of `TableSpec.schema`, in that order and those types. A key without
        records is left out. Opens only files of these partitions.
        """
        ...

    def commit(
        self,
        expected: TableState | None,
        pin: TablePin,
        replaced: Sequence[Key] | None,
        content: Iterable[Touched],
    ) -> TableState:
        """Make one new state, as a whole or not at all, and give it back.

        The present content of the partitions `replaced` goes away (`None`: of all partitions, and
        the layout may change), then `content` is added; its keys are among `replaced`. Other
        partitions keep their files, untouched.

        `expected` is the present state as `read_state` told it (`None`: nothing is there), which
        may be of somebody else. `TableMoved` where another one is there by now. A process can be
        killed anywhere: readers then have the old state or the new one.
        """
        ...

    def collect(self, keep: timedelta, *, dry_run: bool = False) -> Garbage:
        """Remove what no state names that was current within `keep`, and what else is left over.

        Never a file younger than `keep`, which a running writer may be about to name.
        """
        ...

    def missing(self, state: TableState) -> Iterator[str]:
        """Names of files that the state needs and that are not there, or not as it says."""
        ...


def layout_of(table: Table, columns: Iterable[arrow.Field], gone: Iterable[Signed] = ()) -> str:
    """A text that stands for how a table is laid out: a digest of each part; needs no PyArrow.

    `gone` are statements about records that are no longer there.

    Where it differs from that of the pin, the table is written anew (`changed_parts`).
    """
    parts = {
        "columns": [[each.name, str(each.type), each.nullable] for each in columns],
        "view": table.view,
        "partitionBy": table.partition_by,
        "indices": sorted(table.indices),
        "sort": table.sort,
    }
    if table.personal:
        parts["personal"] = table.personal
    if said := [each.line.decode() for each in gone]:
        parts["gone"] = said
    return ",".join(f"{name}:{_short_digest(part)}" for name, part in parts.items())


def changed_parts(old: str, new: str) -> tuple[str, ...]:
    """Names of the parts in which two layouts differ, as odfbuild.yaml spells them."""
    before, after = old.split(","), new.split(",")
    other = [each for each in after if each not in before]
    other += [each for each in before if each not in after]
    return tuple(dict.fromkeys(each.partition(":")[0] for each in other))


def _short_digest(part: Any) -> str:
    return hashlib.sha256(json.dumps(part).encode()).hexdigest()[:12]
