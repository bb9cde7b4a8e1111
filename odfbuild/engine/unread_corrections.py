"""Corrections among new records that change no column which a query reads.

What such a correction takes back is there (`store.corrections`), so the parts of its keys stay as
they are, unless another new record has the same keys.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from odfbuild.engine.contract import InputSlices, TransformTask
from odfbuild.odf.operation import CORRECT_FROM, CORRECT_TO
from odfbuild.records.corrected import differing
from odfbuild.sql.columns.query_lineage import lineage_of
from odfbuild.sql.columns.used import EVERY, columns_read, names_to_follow
from odfbuild.store.corrections import kept_corrections
from odfbuild.values import Value


class Unread(Value):
    """Of an input: the new `files` whose corrections are known, and the `columns` that are read."""

    files: frozenset[str]
    columns: tuple[str, ...]
    operation: str

    def left_out(self, table: pa.Table) -> pa.Table:
        """The records of such a file, with all of these columns, that change something."""
        operations = table[self.operation].to_numpy()
        old = np.flatnonzero(
            (operations[:-1] == CORRECT_FROM) & (operations[1:] == CORRECT_TO)
        ).astype(np.int64)
        changed = np.zeros(len(old), bool)
        for name in self.columns:
            if name in table.column_names:
                changed |= differing(table[name], old, old + 1)
        stays = np.ones(len(table), bool)
        stays[old] = stays[old + 1] = changed
        return table.filter(pa.array(stays))


NOTHING_UNREAD: Mapping[str, Unread] = {}


def unread_corrections(task: TransformTask) -> Mapping[str, Unread]:
    """What is known of inputs with corrections, by alias."""
    known = {each.alias: files for each in task.inputs if (files := _known_files(each))}
    if not known:
        return {}
    names = {each.alias: each.schema.names for each in task.inputs}
    read = columns_read(task.transform, lineage_of(task.transform, names_to_follow(names)))
    if read is None:
        return {}
    found = {}
    for each in task.inputs:
        used, vocab = read.get(each.alias.lower(), frozenset()), each.vocab
        system = (vocab.offset, vocab.operation_type, vocab.system_time)
        # What odfbuild adds to a record is another one in each correction.
        if each.alias in known and used.isdisjoint((EVERY, *map(str.lower, system))):
            columns = tuple(name for name in each.schema.names if name.lower() in used)
            found[each.alias] = Unread(known[each.alias], columns, vocab.operation_type)
    return found


def _known_files(each: InputSlices) -> frozenset[str]:
    kept = kept_corrections(each.copies.side_cars) if each.slices else None
    names = (one.path.name for one in each.slices)
    return frozenset(names).intersection(kept.slices) if kept is not None else frozenset()
