"""Plain values for a step, and encrypted ones in its result.

Engines know nothing of keys: the coordinator decrypts the slices that a step reads into its scratch
folder, which is gone after the step, and encrypts the result while it writes the slice. So every
way to compute a result is right for personal columns, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pyarrow as pa

from odfbuild.engine.contract import InputSlices, SliceFile
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import (
    TransformSql,
)
from odfbuild.odf.vocabulary import vocabulary_of
from odfbuild.records.personal.files import converted
from odfbuild.records.personal.values import Convert, opening, sealing
from odfbuild.sql.columns.query_lineage import lineage_of
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.merged_copies import NO_COPIES
from odfbuild.store.personal import PersonalColumns
from odfbuild.store.stewardship import erasures

PLAIN = "plain"
"""The folder, in that of a step, of files with plain values."""


def scope_of(store: DatasetStore, state: Projection) -> PersonalColumns | None:
    """The personal columns of the dataset in `store`, whether it has them yet or not."""
    return store.personal.of(store.name, state.dataset_id) if store.personal is not None else None


def sealing_of(store: DatasetStore, state: Projection) -> Convert | None:
    """What encrypts new records of a dataset; `None` where nothing of it is personal.

    `PersonalDataError` E1604 without keys.
    """
    scope = scope_of(store, state)
    if scope is None or store.personal is None:
        return None
    return sealing(store.personal, scope, vocabulary_of(state.vocab).operation_type)


def is_erased_from(stores: Iterable[DatasetStore]) -> bool:
    """Whether persons were erased from any of these datasets.

    Their records are not what a query gives now, so its result is compared as a whole.
    """
    return any(erasures(each.statements()) for each in stores if each.personal is not None)


def read_columns(
    transform: TransformSql, inputs: Mapping[str, pa.Schema]
) -> Callable[[str, str], bool]:
    """Tells of an alias and a column whether a query reads it; of one in doubt it says so."""
    lineage = lineage_of(transform, {alias: tuple(each.names) for alias, each in inputs.items()})
    if lineage is None:
        return lambda alias, column: True
    read = {(alias, column) for alias, column, _ in lineage.records}
    read |= {(a, c) for origins in lineage.columns.values() for a, c, _ in origins}
    return lambda alias, column: (alias.lower(), column.lower()) in read


def plain_input(
    each: InputSlices, store: DatasetStore, scope: PersonalColumns, scratch: Path
) -> InputSlices:
    """An input whose personal columns are decrypted when somebody asks for its files.

    `PersonalDataError` E1604 without keys.
    """
    opened = _opened(store, scope, scratch)

    def plain(slices: tuple[SliceFile, ...]) -> tuple[SliceFile, ...]:
        return tuple(replace(one, path=opened(one.path)) for one in slices)

    return replace(
        each,
        slices=plain(each.slices),
        earlier=cache(lambda: plain(each.earlier())),
        copies=NO_COPIES,
    )


def plain_files(
    files: Callable[[], tuple[Path, ...]],
    store: DatasetStore,
    scope: PersonalColumns,
    scratch: Path,
) -> Callable[[], tuple[Path, ...]]:
    """The same for records that a dataset has already; what nobody can read stays as it is."""
    opened = _opened(store, scope, scratch, keep=True)
    return cache(lambda: tuple(map(opened, files())))


def committed_files(files: Iterable[Path], stores: Sequence[DatasetStore]) -> frozenset[Path]:
    """The files of slices that were read, whether they were decrypted for that or not."""
    found = set()
    for file in files:
        own = [each.path / "data" / file.name for each in stores if PLAIN in file.parts]
        found.add(next((each for each in own if each.exists()), file))
    return frozenset(found)


def _opened(
    store: DatasetStore, scope: PersonalColumns, scratch: Path, *, keep: bool = False
) -> Callable[[Path], Path]:
    assert store.personal is not None, "it has personal columns"
    convert = opening(store.personal, scope, keep=keep)
    folder = scratch / PLAIN / scope.dataset_id.multibase
    return lambda file: converted(file, scope, convert, folder)
