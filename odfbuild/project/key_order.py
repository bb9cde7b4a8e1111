"""The order of keys in a definition: that of the specification.

Works on the tree of a file, so that comments go where their keys go. Keys that the specification
does not know stay behind those that it knows, in the order in which they were written.
"""

from __future__ import annotations

from typing import Any

from odfbuild.odf import model
from odfbuild.odf.introspect import FieldType, Table, Union, Vector, fields_of
from odfbuild.odf.yaml_form import spellings
from odfbuild.project.yaml.tree import Map, Node, Seq

_MANIFEST = ("kind", "version", "content")


def put_in_order(root: Node) -> None:
    """Sort the keys of a document that is a `DatasetSnapshot`; of others nothing is known."""
    if isinstance(root, Map) and root.text("kind") == model.DatasetSnapshot.__name__:
        _sort(root, _MANIFEST)
        content = root.get("content")
        if content is not None:
            _object(content, model.DatasetSnapshot)


def _object(node: Node, cls: Any, tagged: bool = False) -> None:
    if not isinstance(node, Map):
        return
    fields = {field.key: field.type for field in fields_of(cls)}
    # Of read steps, `schema` as a list is `ddlSchema`: a list is nothing to go into.
    _sort(node, (*(["kind"] if tagged else []), *fields))
    for entry in node.entries:
        kind = fields.get(entry.key)
        if kind is not None:
            _value(entry.value, kind)


def _value(node: Node, kind: FieldType) -> None:
    match kind:
        case Vector(item) if isinstance(node, Seq):
            for each in node.items:
                _value(each.value, item)
        case Table(cls):
            _object(node, cls)
        case Union(members) if isinstance(node, Map):
            by_kind: dict[str, Any] = {member.KIND: member for member in members}  # type: ignore[attr-defined]
            name = spellings(tuple(by_kind)).get(node.text("kind") or "")
            if name is not None:
                _object(node, by_kind[name], tagged=True)


def _sort(node: Map, order: tuple[str, ...]) -> None:
    places = {key: place for place, key in enumerate(order)}
    node.entries.sort(key=lambda entry: places.get(entry.key, len(order)))
