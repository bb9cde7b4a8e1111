"""Totals of the groups of a query, kept beside the chain of its result.

A record has the columns of a group's key, and its totals over all records of the inputs in some
slices, whose names are kept, too. So it can be looked at only by a step that begins behind exactly
these. The groups that a step changes are a segment, whose records stand in place of earlier ones of
the same key. That segment stays apart until the next step, because a step may be repeated. What
is damaged, foreign or behind counts as not there: it is made again when all records are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa

from odfbuild.fallbacks import falling_back
from odfbuild.records.key_hash import Hashes, comparable_type, hash_rows
from odfbuild.records.segments import Segment, Segments
from odfbuild.store.disposable import prepare_cache_folder
from odfbuild.store.files import folder_lock
from odfbuild.store.side_cars import SideCar, SideCarFolder

_FORM = b"totals of groups 1\n"
_AT = "__odfbuild_at"
_MICROS = pa.timestamp("us", "UTC")


class KeptGroups:
    """What `folder` holds of the totals over the records in `slices`; `keys` name the columns.

    `name` tells the query.
    """

    def __init__(self, folder: Path, name: str, keys: Sequence[str], slices: Set[str]) -> None:
        self.keys = list(keys)
        side_cars = SideCarFolder(folder, _FORM + name.encode())
        self._segments = Segments(side_cars, self._places, wanted=self._newest)
        self._files: Sequence[SideCar] = ()
        self._opened: Sequence[Segment] = ()
        with falling_back(__name__, "totals are computed again", OSError, pa.ArrowException):
            files = self._kept(slices)
            self._opened = [self._segments.open(each) for each in files]
            self._files = files

    @property
    def are_held(self) -> bool:
        """Whether the totals over the records in these slices are there."""
        return bool(self._files)

    def like(self, groups: Iterable[pa.Table]) -> pa.Table:
        """The totals of the groups with the keys of those, as far as there are any."""
        asked = pa.concat_tables(map(_plain, groups))
        hashes = np.unique(self._places(asked))
        found = (t for each in self._opened for t in each.between(hashes, hashes))
        return self._newest(pa.concat_tables([asked.slice(0, 0), *found]))

    def all(self, changed: Sequence[pa.Table] = ()) -> pa.Table:
        """The totals of all groups; those that are `changed` stand in place of earlier ones."""
        held = (each.all() for each in self._opened)
        return self._newest(pa.concat_tables([*held, *map(_plain, changed)]))

    def keep(
        self, groups: Sequence[pa.Table], slices: Sequence[str], *, instead: bool = False
    ) -> None:
        """Let `groups` stand in place of earlier ones, for the records in further `slices`.

        With `instead`, they are all that there is. Whatever prevents that costs time, nothing else.
        """
        with falling_back(__name__, "totals are not kept", OSError, pa.ArrowException):
            segments, folder = self._segments, self._segments.folder
            prepare_cache_folder(folder.folder)
            with folder_lock(folder.folder, wait=False):
                files = [] if instead else list(self._files)
                if files:
                    last = files.pop()
                    names = last.notes[1]
                    files = segments.grown(
                        files, [self._opened[-1].all()], lambda _: names, _joined
                    )
                whole = pa.concat_tables(map(_plain, groups))
                folder.save(None, [*files, segments.written(whole, tuple(slices))])

    def _kept(self, slices: Set[str]) -> list[SideCar]:
        kept = self._segments.folder.load()
        if kept is None:
            return []
        files = list(kept.files)
        if files and not slices >= {*files[-1].notes[1]}:
            files.pop()  # of this step, which is repeated
        return files if {*_joined([each.notes[1] for each in files])} == slices else []

    def _places(self, groups: pa.Table) -> Hashes:
        """Hashes of the keys, as far as these have any."""
        found = []
        for name in self.keys:
            kind = comparable_type(groups.schema.field(name).type)
            if kind is not None:
                found.append(groups[name].cast(kind))
        if not found:
            return np.zeros(len(groups), np.uint64)
        return hash_rows(pa.table(found, names=[str(n) for n in range(len(found))]))

    def _newest(self, groups: pa.Table) -> pa.Table:
        """The last one of each key among these, in their order."""
        if not self.keys:
            return groups.slice(max(0, len(groups) - 1))
        at = groups.append_column(_AT, pa.array(range(len(groups)), pa.int64()))
        last = at.group_by(self.keys, use_threads=False).aggregate([(_AT, "max")])[_AT + "_max"]
        return groups.take(last.combine_chunks().sort())


def _joined(names: Iterable[Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(names)))


def _plain(groups: pa.Table) -> pa.Table:
    """The same in types that do not depend on who wrote the file."""
    fields = []
    for field in groups.schema:
        kind = field.type
        if pa.types.is_timestamp(kind):
            kind = _MICROS
        fields.append(pa.field(field.name, kind))
    return groups.cast(pa.schema(fields))
