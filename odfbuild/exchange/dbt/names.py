"""Names of datasets for tables of dbt: `order_lines` becomes `order-lines`.

Names that were given stay, so that another run gives the same; they are kept in `dbt-names.yaml`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from odfbuild.exchange.dbt.model import Node
from odfbuild.odf.identity import is_name, name_like

FILE = "dbt-names.yaml"
HEAD = (
    "# Names of datasets by the ids of dbt. `odfbuild migrate dbt` keeps them when it runs again:\n"
    "# change a name here first to give a table another one.\n"
)


def dataset_names(
    nodes: Iterable[Node], kept: Mapping[str, str], *, schemas: bool
) -> dict[str, str]:
    """A name for each table by its id; those in `kept` stay.

    With `schemas`, a table in a schema of its own has that in front: `marts.orders`.
    """
    nodes = sorted(nodes, key=lambda node: (_ORDER.index(node.kind), node.id))
    names = {node.id: kept[node.id] for node in nodes if is_name(kept.get(node.id, ""))}
    taken = {name.lower() for name in names.values()}
    for node in nodes:
        if node.id in names:
            continue
        parts = [node.schema] if schemas and node.schema else []
        name = nearest([*parts, node.name])
        number = 1
        while name.lower() in taken:
            number += 1
            first = node.group or node.kind
            name = nearest([first, *parts, node.name] if number == 2 else [f"{node.name}-{number}"])
        taken.add(name.lower())
        names[node.id] = name
    return names


_ORDER = ("model", "seed", "source", "snapshot")


def nearest(parts: Iterable[str]) -> str:
    """The name of a dataset that is nearest to these parts, with dots between them."""
    text = ".".join(part.replace(".", "-") for part in parts)
    return text if is_name(text) else name_like(text) or "table"
