"""A few records of a dataset and statistics of its columns, as far as `show` lets them out.

Reads what is here only: nothing is fetched for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from odfbuild.errors import OdfbuildError
from odfbuild.project.settings.showing import ShownColumns
from odfbuild.values import Value

if TYPE_CHECKING:
    import pyarrow as pa

    from odfbuild.odf.chain.projection import Projection
    from odfbuild.store.workspace import Workspace

NEWEST = 10
"""So many records are shown."""

_COUNTED = 100_000
"""Statistics are those of so many records at most, the newest."""


class Statistics(Value):
    """Of a column: how many records lack a value, the least and most value, how many there are."""

    column: str
    missing: int
    least: Any
    most: Any
    distinct: int | None


class Sample(Value):
    """The newest records, the offset of each, and statistics of the newest `counted` ones.

    `problem` says why there are none.
    """

    records: pa.Table | None = None
    counted: int = 0
    statistics: tuple[Statistics, ...] = ()
    problem: str | None = None


def sample_of(
    workspace: Workspace, name: str, state: Projection, shown: ShownColumns
) -> Sample | None:
    """What may be shown of the current state of a dataset; `None` when it has no records."""
    if not state.records or state.schema is None:
        return None
    if find_spec("pyarrow") is None:
        return Sample(problem="PyArrow is not installed")
    from odfbuild.records.records import records_of
    from odfbuild.records.stored import path_of

    try:
        records = records_of(workspace, name, state, audience="public")
        columns = shown.of(records.schema.names)
        if not columns:
            return None
        if not all(path_of(each).exists() for each in records.stored.slices):
            return Sample(problem="the records are not in this clone")
        newest = records.last(_COUNTED, columns)
    except OdfbuildError as error:
        return Sample(problem=f"the records cannot be read ({error.code})")
    return Sample(
        records=newest.slice(max(0, newest.num_rows - NEWEST)),
        counted=newest.num_rows,
        statistics=tuple(_statistics(newest)),
    )


def _statistics(table: pa.Table) -> Iterator[Statistics]:
    import pyarrow as pa
    import pyarrow.compute as pc

    for field, values in zip(table.schema, table.columns, strict=True):
        least = most = distinct = None
        if not pa.types.is_nested(field.type):
            distinct = len(pc.unique(values.drop_null()))
            with suppress(pa.ArrowNotImplementedError):  # a type without an order
                least, most = pc.min_max(values).as_py().values()
        yield Statistics(field.name, values.null_count, least, most, distinct)
