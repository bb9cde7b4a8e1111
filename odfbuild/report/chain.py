"""A metadata chain, newest block first: `log`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from odfbuild.odf.model import MetadataBlock, SetDataSchema
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.yaml_form import to_data
from odfbuild.report.forms.words import paint
from odfbuild.report.forms.yaml_text import yaml_lines

Blocks = Sequence[tuple[Multihash, MetadataBlock]]


def render_log(blocks: Blocks, *, color: bool = False) -> str:
    """Blocks with their events, in the order given, an empty line between them."""
    if not blocks:
        return "There are no blocks."
    return "\n\n".join("\n".join(_block(block, name, color)) for name, block in blocks)


def log_to_data(blocks: Blocks) -> list[dict[str, Any]]:
    """The same as plain values, in the form of the YAML manifests, with the hash of each block."""
    return [{"blockHash": str(name), **to_data(block)} for name, block in blocks]


def _block(block: MetadataBlock, name: Multihash, color: bool) -> list[str]:
    head = f"Block #{block.sequence_number}: {name}"
    return [
        paint(head, "yellow", on=color),
        f"Date: {block.system_time}",
        f"Event: {block.event.KIND}",
        *yaml_lines(_details(block), indent=2),
    ]


def _details(block: MetadataBlock) -> dict[str, Any]:
    event = block.event
    if isinstance(event, SetDataSchema) and event.raw_arrow_schema is not None:
        # The bytes of an Arrow schema tell people nothing.
        from odfbuild.odf.schema.arrow_form import read_schema

        return {
            "columns": {
                field.name: f"{field.type}{'' if field.nullable else ' not null'}"
                for field in read_schema(event)
            }
        }
    plain: dict[str, Any] = to_data(event)
    plain.pop("kind")
    return plain
