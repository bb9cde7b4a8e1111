"""Corrections among new records that change no column which a query reads.

What such a correction retracts is there (`store.corrections`), so the parts of its keys stay as
they are, unless another new record has the same keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa

from odfbuild.engine.contract import InputSlices, TransformTask
from odfbuild.odf.operation import CORRECT_FROM, CORRECT_TO
from odfbuild.records.corrected import differing
from odfbuild.sql.columns.query_lineage import lineage_of
from odfbuild.sql.columns.used import EVERY, columns_read, names_to_follow
from odfbuild.store.corrections import Corrections, changes_of, kept_corrections
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


def without_unread(task: TransformTask) -> tuple[TransformTask, Mapping[str, Unread]]:
    """The step without new records in inputs that bring nothing to the query.

    And what is known of corrections in the others, by alias.
    """
    kept = {each.alias: known for each in task.inputs if (known := _kept(each)) is not None}
    if not kept:
        return task, {}
    names = {each.alias: each.schema.names for each in task.inputs}
    read = columns_read(task.transform, lineage_of(task.transform, names_to_follow(names)))
    if read is None:
        return task, {}
    inputs: list[InputSlices] = []
    found: dict[str, Unread] = {}
    for each in task.inputs:
        used, vocab = read.get(each.alias.lower(), frozenset()), each.vocab
        known = kept.get(each.alias)
        system = (vocab.offset, vocab.operation_type, vocab.system_time)
        # What odfbuild adds to a record is another one in each correction.
        if known is None or not used.isdisjoint((EVERY, *map(str.lower, system))):
            inputs.append(each)
            continue
        files = [one.path.name for one in each.slices]
        changed = changes_of(known, files, vocab)
        if changed is not None and used.isdisjoint(map(str.lower, changed)):
            inputs.append(_without_news(each))
            continue
        columns = tuple(name for name in each.schema.names if name.lower() in used)
        told = frozenset(files).intersection(known.slices)
        found[each.alias] = Unread(told, columns, vocab.operation_type)
        inputs.append(each)
    return replace(task, inputs=tuple(inputs)), found


def _kept(each: InputSlices) -> Corrections | None:
    """What is known of an input that may have corrections among its new records."""
    kept = kept_corrections(each.copies.side_cars) if each.slices else None
    known = kept is not None and any(one.path.name in kept.slices for one in each.slices)
    return kept if known else None


def _without_news(each: InputSlices) -> InputSlices:
    """An input at its newest state, without new records."""
    return replace(
        each,
        slices=(),
        first=None,
        last=None,
        earlier=cache(lambda: (*each.earlier(), *each.slices)),
    )
