"""Definitions in canonical form: what a formatter changes, and what it never touches.

Keys come in the order of the specification, indentation is two spaces, lists stand under their
keys, quotes only where YAML needs them, no more than one blank line in a row. Comments, block
scalars (SQL among them) and the spelling of everything else stay. The data never changes: a text
for which that cannot be promised is left as it is. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from odfbuild.odf import model
from odfbuild.odf.introspect import FieldType, Table, Union, Vector, fields_of
from odfbuild.odf.yaml_form import spellings
from odfbuild.project.rewrite import text_diff
from odfbuild.project.yaml.source import read_documents
from odfbuild.project.yaml.tree import (
    Document,
    Entry,
    File,
    Flow,
    Item,
    Map,
    Node,
    Scalar,
    Seq,
    UnsupportedYaml,
    lines_of,
    parse,
)
from odfbuild.project.yaml.version_1_1 import text_as_yaml
from odfbuild.values import Value


class Formatted(Value):
    """A file before and after; `kept` says why it was left as it is, though it may not be."""

    file: str
    before: str
    after: str
    kept: str | None = None

    @property
    def is_changed(self) -> bool:
        """Whether the file was in another form."""
        return self.before != self.after

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        return text_diff(self.before, self.after, self.file)


def format_text(text: str, file: str) -> Formatted:
    """The text in canonical form; `ProjectError` when it is not YAML."""
    data = read_documents(text, file)
    try:
        tree = parse(text, file)
    except UnsupportedYaml as reason:
        return Formatted(file, text, text, kept=f"{reason} cannot be formatted")
    after = _written(tree)
    if after == text:
        return Formatted(file, text, text)
    if read_documents(after, file) != data:
        return Formatted(file, text, text, kept="its data would change, maybe at a |+ block")
    return Formatted(file, text, after)


def _written(tree: File) -> str:
    lines: list[str] = []
    for document in tree.documents:
        put_in_order(document.root)
        _tidy(document.root)
        lines += _single_blanks(_before(document))
        lines += lines_of(document.root)
    lines += _single_blanks(line.strip(" \t") for line in tree.after)
    text = "\n".join(lines).strip("\n")
    return f"{text}\n" if text else ""


def _before(document: Document) -> Iterable[str]:
    return (line.strip(" \t") for line in document.before)


def _tidy(node: Node) -> None:
    """Bring blank lines, quotes and flow collections below `node` into their one form."""
    if isinstance(node, Scalar):
        node.text = _requoted(node)
        return
    node.tail = _single_blanks(node.tail)
    if node.flow is not None:
        node.flow = _spaced(node, node.flow)
        return
    if isinstance(node, Map):
        for entry in node.entries:
            entry.lead = _single_blanks(entry.lead)
            _tidy(entry.value)
        return
    node.indented = True
    for item in node.items:
        _tidy(item.value)
        # What stands above the first line of an item stands above its dash.
        item.lead = _single_blanks([*item.lead, *_taken_lead(item.value)])


def _taken_lead(node: Node) -> list[str]:
    if isinstance(node, Scalar) or node.flow is not None:
        return []
    parts: Sequence[Entry | Item] = node.entries if isinstance(node, Map) else node.items
    first = next(iter(parts), None)
    if first is None:
        return []
    lead, first.lead = first.lead, []
    return lead


def _single_blanks(lines: Iterable[str]) -> list[str]:
    listed = list(lines)
    return listed[:1] + [line for before, line in pairwise(listed) if line or before]


def _requoted(scalar: Scalar) -> list[str]:
    value = scalar.value
    if len(scalar.text) != 1 or not isinstance(value, str) or scalar.text[0][:1] not in ("'", '"'):
        return scalar.text
    text = text_as_yaml(value)
    # Where quotes alone do not do, people know best: '...' or escapes in "...".
    return [text] if text == value or text.startswith('"') else scalar.text


def _spaced(node: Map | Seq, flow: Flow) -> Flow:
    """A collection on one line, with one space where there may be any number."""
    if len(flow.text) != 1:
        return flow
    return Flow([_flow_text(node)], flow.value, flow.note)


def _flow_text(node: Node) -> str:
    if isinstance(node, Scalar):
        return node.text[0]
    if isinstance(node, Map):
        pairs = (f"{entry.text}: {_flow_text(entry.value)}".rstrip() for entry in node.entries)
        return f"{{{', '.join(pairs)}}}"
    return f"[{', '.join(_flow_text(item.value) for item in node.items)}]"


# --- The order of keys ---


# Works on the tree of a file, so that comments go where their keys go. Keys that the specification
# does not know stay behind those that it knows, in the order in which they were written.

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
