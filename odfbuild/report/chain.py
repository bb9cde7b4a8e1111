"""A metadata chain, newest block first: `log`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import AddData, ExecuteTransform, MetadataBlock, SetDataSchema, SetTransform
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.yaml_form import to_data
from odfbuild.report.forms.visible import visible
from odfbuild.report.forms.words import paint
from odfbuild.report.forms.yaml_text import yaml_lines
from odfbuild.wording import count

Blocks = Sequence[tuple[Multihash, MetadataBlock]]
Names = Callable[[DatasetId], str | None]
"""The name of a dataset here; `None`: it is not here."""

_IDENTITY = re.compile(r"^(\s*(?:- )?dataset(?:Ref|Id): )(did:odf:\w+)$")


def _nameless(_: DatasetId) -> str | None:
    return None


def render_log(blocks: Blocks, names: Names = _nameless, *, color: bool = False) -> str:
    """Blocks with their events, in the order given, an empty line between them.

    Behind identities of datasets stand the `names` that they have here.
    """
    if not blocks:
        return "There are no blocks."
    return "\n\n".join("\n".join(_block(block, name, names, color)) for name, block in blocks)


def render_oneline(blocks: Blocks, names: Names = _nameless, *, color: bool = False) -> str:
    """A line for each block: the end of its hash, number, time, event, and what it brings."""
    if not blocks:
        return "There are no blocks."
    width = len(str(blocks[0][1].sequence_number))
    return "\n".join(
        f"{paint(name.short, 'yellow', on=color)} #{block.sequence_number:<{width}} "
        f"{block.system_time} {block.event.KIND}{_brings(block, names)}"
        for name, block in blocks
    )


def _brings(block: MetadataBlock, names: Names) -> str:
    event = block.event
    if isinstance(event, SetTransform):
        refs = [each.dataset_ref for each in event.inputs]
        known = [(names(ref) if isinstance(ref, DatasetId) else None) or str(ref) for ref in refs]
        return f": {visible(', '.join(known))}"
    if isinstance(event, AddData | ExecuteTransform):
        new = event.new_data
        number = 0 if new is None else new.offset_interval.end - new.offset_interval.start + 1
        return f": {count(number, 'record')}"
    return ""


def log_to_data(blocks: Blocks) -> list[dict[str, Any]]:
    """The same as plain values, in the form of the YAML manifests, with the hash of each block."""
    return [{"blockHash": str(name), **to_data(block)} for name, block in blocks]


def _block(block: MetadataBlock, name: Multihash, names: Names, color: bool) -> list[str]:
    head = f"Block #{block.sequence_number}: {name}"
    return [
        paint(head, "yellow", on=color),
        f"Date: {block.system_time}",
        f"Event: {block.event.KIND}",
        *(_named(line, names) for line in yaml_lines(_details(block), indent=2)),
    ]


def _named(line: str, names: Names) -> str:
    """A line with the name of the dataset whose identity it gives."""
    found = _IDENTITY.match(line)
    name = names(DatasetId.parse(found[2])) if found else None
    return line if name is None else f"{line} ({visible(name)})"


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
