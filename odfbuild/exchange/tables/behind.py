"""Whether a table holds what its dataset has, and if not, what has to be written. Pure.

Looks at a pin and a chain, whoever knows the pin: the table itself, or what was remembered of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from odfbuild.errors import ChainError
from odfbuild.exchange.tables.contract import TablePin, changed_parts, layout_of
from odfbuild.exchange.tables.rules import shown_columns

if TYPE_CHECKING:
    from odfbuild.odf.chain.projection import Projection
    from odfbuild.project.tables import Table
    from odfbuild.store.dataset import DatasetStore


EARLY = "it has retractions of records that are not there"


@dataclass(frozen=True, slots=True)
class Behind:
    """What a table lacks: new records, or, for the reason `anew`, all of them."""

    anew: str | None = None


def pin_of(table: Table, state: Projection, store: DatasetStore) -> TablePin:
    """What a table holds once it has everything that the dataset in `store` has at `state`.

    What its owner says of records that are gone is part of that: a table is written anew then.
    """
    return TablePin(
        dataset_id=state.dataset_id,
        block=state.head,
        last_offset=state.last_offset,
        view=table.view,
        layout=layout_of(table, shown_columns(table, state), store.statements()),
    )


def behind(
    pin: TablePin, wanted: TablePin, state: Projection, store: DatasetStore
) -> Behind | None:
    """What a table with `pin` lacks of `wanted`, the pin of the dataset at `state`.

    `None`: nothing. Blocks without records do not count. Reads the blocks since the pin.
    """
    if pin.dataset_id != wanted.dataset_id:
        return Behind("it holds another dataset")
    parts = changed_parts(pin.layout, wanted.layout)
    if parts:
        return Behind(f"its {_spelled(parts)} changed")
    if pin.block == wanted.block:
        return None
    try:
        # All of them: only who meets the pin knows that it is part of the history.
        events = [block.event for _, block in store.walk(state.head, pin.block)]
    except ChainError:
        return Behind(f"the history of '{store.name}' was rewritten")
    news = (getattr(each, "new_data", None) for each in events)
    if all(each is None for each in news):
        return None
    return Behind(EARLY if pin.early else None)


_NAMES = {
    "columns": "columns",
    "view": "`view`",
    "partitionBy": "`partitionBy`",
    "indices": "`indices`",
    "sort": "`sort`",
    "personal": "form of personal columns",
    "gone": "withdrawn or erased records",
}


def _spelled(parts: tuple[str, ...]) -> str:
    return " and ".join(_NAMES.get(each, each) for each in parts)
