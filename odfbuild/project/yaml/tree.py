"""YAML as a tree that keeps its text: comments, blank lines, quotes, the style of scalars.

For what rewrites files that people maintain. `parse` reads, the classes are edited in place,
`render` writes. Indentation comes out as two spaces; everything else that was not edited comes out
as it was. Anchors, tags and other things outside the JSON-compatible part of YAML are not kept:
`parse` says so with `UnsupportedYaml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from odfbuild.odf.yaml_text import dump_yaml
from odfbuild.project.yaml.source import compose, construct

_STEP = 2
# What YAML takes for space: Python strips more.
_SPACE = " \t"
_ITEM_COMMENT = re.compile(r"#\s*- ")
_KEY_ONLY = re.compile(r"\s*:(\s+#.*)?\s*$")


class UnsupportedYaml(ValueError):
    """The text uses a part of YAML that a tree cannot keep; the message names it."""


@dataclass(slots=True)
class Scalar:
    """A value in its own spelling.

    `text` are its lines without indentation (of a block scalar the header first), `note` the
    comment behind it with the space between.
    """

    value: Any
    text: list[str]
    note: str = ""


@dataclass(slots=True)
class Entry:
    """A key with its value; `lead` are comments and blank lines above, `note` behind the key."""

    key: str
    value: Node
    lead: list[str] = field(default_factory=list)
    note: str = ""
    text: str = ""

    def __post_init__(self) -> None:
        self.text = self.text or _scalar_text(self.key)


@dataclass(slots=True)
class Flow:
    """How a collection in braces or brackets was written, and what was in it then."""

    text: list[str]
    value: Any
    note: str = ""


@dataclass(slots=True)
class Map:
    """An object, its keys in order; `tail` are comments and blank lines behind the last one."""

    entries: list[Entry] = field(default_factory=list)
    flow: Flow | None = None
    tail: list[str] = field(default_factory=list)

    def __contains__(self, key: str) -> bool:
        return any(entry.key == key for entry in self.entries)

    def entry(self, key: str) -> Entry | None:
        """The entry of that key."""
        return next((entry for entry in self.entries if entry.key == key), None)

    def get(self, key: str) -> Node | None:
        """The value of that key."""
        entry = self.entry(key)
        return entry.value if entry is not None else None

    def text(self, key: str) -> str | None:
        """The value of that key when it is text."""
        value = self.get(key)
        found = value.value if isinstance(value, Scalar) else None
        return found if isinstance(found, str) else None

    def pop(self, key: str) -> Entry | None:
        """Take the entry of that key out."""
        entry = self.entry(key)
        if entry is not None:
            self.entries.remove(entry)
        return entry

    def rename(self, key: str, new: str) -> None:
        """Give a key another name; its value and comments stay."""
        entry = self.entry(key)
        if entry is None:
            raise KeyError(key)
        entry.key, entry.text = new, _scalar_text(new)

    def put(self, key: str, value: Any, position: int | None = None) -> None:
        """Set the value of a key, where it is or at `position` (else at the end)."""
        node = value if isinstance(value, Scalar | Map | Seq) else tree_of(value)
        entry = self.entry(key)
        if entry is not None:
            entry.value = _with_note(node, entry.value)
            return
        index = len(self.entries) if position is None else position
        self.entries.insert(index, Entry(key, node))


@dataclass(slots=True)
class Item:
    """An item of a list with the comments and blank lines above."""

    value: Node
    lead: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Seq:
    """A list; `indented` when its dashes stand further right than the key above."""

    items: list[Item] = field(default_factory=list)
    flow: Flow | None = None
    indented: bool = True
    tail: list[str] = field(default_factory=list)


Node = Scalar | Map | Seq


@dataclass(slots=True)
class Document:
    """A document of a file: its tree, the lines before it, and its own lines as they were."""

    root: Node
    before: list[str]
    lines: list[str]
    value: Any


@dataclass(slots=True)
class File:
    """All documents of a text, and the lines behind the last one."""

    documents: list[Document]
    after: list[str]


def parse(text: str, file: str) -> File:
    """The trees of a text; `ProjectError` as of `read_documents`, or `UnsupportedYaml`."""
    nodes = compose(text, file)
    _refuse_what_is_not_kept(text)
    reader = _Reader(text, file)
    documents = []
    for node in nodes:
        start = node.start_mark
        before = reader.between(start.line)
        if lead := reader.lines[start.line][: start.column].rstrip():
            before.append(lead)
        root = reader.node(node)
        lines = reader.lines[start.line : reader.done + 1]
        lines[0] = lines[0][start.column :] if lead else lines[0]
        documents.append(Document(root, before, lines, construct(node, text, file)))
    return File(documents, reader.between(len(reader.lines)))


def render(file: File) -> str:
    """The text of a file: documents that are as they were come out byte for byte."""
    lines: list[str] = []
    for document in file.documents:
        lines += document.before
        if plain(document.root) == document.value:
            lines += document.lines
        else:
            lines += lines_of(document.root)
    return "\n".join([*lines, *file.after]).rstrip("\n") + "\n"


def plain(node: Node) -> Any:
    """The data of a tree."""
    if isinstance(node, Map):
        return {entry.key: plain(entry.value) for entry in node.entries}
    if isinstance(node, Seq):
        return [plain(item.value) for item in node.items]
    return node.value


def tree_of(value: Any) -> Node:
    """A tree of plain data."""
    if isinstance(value, dict):
        return Map([Entry(key, tree_of(each)) for key, each in value.items()])
    if isinstance(value, list):
        return Seq([Item(tree_of(each)) for each in value])
    return Scalar(value, _scalar_text(value).splitlines())


# --- Reading ---


def _refuse_what_is_not_kept(text: str) -> None:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for token in yaml.scan(text, Loader=loader):
        if isinstance(token, yaml.AnchorToken | yaml.AliasToken):
            raise UnsupportedYaml("anchors and aliases (& and *)")
        if isinstance(token, yaml.TagToken):
            raise UnsupportedYaml("tags (!)")


class _Reader:
    """Nodes to trees; `done` is the index of the last line that was read."""

    def __init__(self, text: str, file: str) -> None:
        self.text, self.file = text, file
        # Not splitlines: YAML knows fewer line breaks than Python.
        self.lines = text.replace("\r\n", "\n").split("\n")
        self.done = -1

    def between(self, line: int) -> list[str]:
        """The lines that were not read yet, up to `line`."""
        found = self.lines[self.done + 1 : line]
        self.done = max(self.done, line - 1)
        return found

    def lead(self, line: int) -> list[str]:
        """Comments and blank lines above `line`, without indentation."""
        stripped = (each.strip(_SPACE) for each in self.between(line))
        return [each for each in stripped if not each or each.startswith("#")]

    def tail(self, column: int, *, under_key: bool = False) -> list[str]:
        """Comments below what was read that stand at `column` or further right, as `lead`.

        Below dashes right under their key, a comment in their column is about the next key, unless
        it looks like an item.
        """
        last = self.done
        for number in range(self.done + 1, len(self.lines)):
            line = self.lines[number].lstrip(_SPACE)
            behind = len(self.lines[number]) - len(line) - column
            if line and (line[0] != "#" or behind < 0):
                break
            if line and under_key and behind == 0 and not _ITEM_COMMENT.match(line):
                break
            last = number if line else last
        return self.lead(last + 1)

    def node(self, node: Any, above: int = -1) -> Node:
        """The tree of a node; `above` is the column of the key that it belongs to."""
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        flow = self._flow(node) if node.flow_style else None
        column = node.start_mark.column
        if isinstance(node, yaml.MappingNode):
            entries = [self._entry(*pair, in_flow=flow is not None) for pair in node.value]
            return Map(entries, flow, [] if flow else self.tail(column))
        items = []
        for each in node.value:
            lead = [] if flow else self.lead(each.start_mark.line)
            items.append(Item(self.node(each), lead))
        is_indented = column > above
        tail = [] if flow else self.tail(column, under_key=not is_indented)
        return Seq(items, flow, is_indented, tail)

    def _entry(self, key: Any, value: Any, *, in_flow: bool) -> Entry:
        line, end = key.start_mark.line, key.end_mark
        if not isinstance(key, yaml.ScalarNode) or end.line != line:
            raise UnsupportedYaml("keys that are not plain text on one line")
        if in_flow:
            written = self.text[key.start_mark.index : key.end_mark.index]
            return Entry(str(key.value), self.node(value), text=written)
        before = self.lines[line][: key.start_mark.column].strip()
        if before.strip("- "):
            raise UnsupportedYaml("keys with a question mark")
        lead = self.lead(line)
        text = self.lines[line][key.start_mark.column : end.column]
        behind = _KEY_ONLY.match(self.lines[line][end.column :])
        note = (behind.group(1) or "").rstrip() if behind else ""
        self.done = max(self.done, line)
        found = self.node(value, key.start_mark.column)
        if isinstance(found, Scalar) and not any(found.text):
            found.note = ""
        return Entry(str(key.value), found, lead, note, text)

    def _scalar(self, node: Any) -> Scalar:
        value = construct(node, self.text, self.file)
        if node.style in ("|", ">"):
            return Scalar(value, self._block(node))
        text, note = self._span(node)
        return Scalar(value, text, note)

    def _flow(self, node: Any) -> Flow:
        text, note = self._span(node)
        return Flow(text, construct(node, self.text, self.file), note)

    def _span(self, node: Any) -> tuple[list[str], str]:
        """The lines from the first to the last character of a node, and the comment behind it."""
        start, end = node.start_mark, node.end_mark
        lines = self.lines[start.line : end.line + 1]
        behind = lines[-1][end.column :].rstrip(_SPACE)
        lines[-1] = lines[-1][: end.column]
        lines[0] = lines[0][start.column :]
        self.done = max(self.done, end.line)
        is_comment = behind.lstrip(_SPACE).startswith("#")
        return [each.strip(_SPACE) for each in lines], behind if is_comment else ""

    def _block(self, node: Any) -> list[str]:
        first = node.start_mark.line
        header = self.lines[first][node.start_mark.column :].rstrip(_SPACE)
        if re.match(r"[|>][-+]?[0-9]", header):
            raise UnsupportedYaml("block scalars with a digit for their indentation")
        body: list[str] = []
        indent: int | None = None
        for line in self.lines[first + 1 :]:
            column = len(line) - len(line.lstrip(" "))
            if line.strip(_SPACE):
                if indent is None:
                    # A comment that stands further left than the key ends an empty scalar.
                    indent = column if node.value.strip("\n") else 0
                if column < indent or not indent:
                    break
            body.append(line[indent:] if indent else "")
        while body and not body[-1].strip(_SPACE):
            body.pop()
        self.done = max(self.done, first + len(body))
        return [header, *body]


# --- Writing ---


def lines_of(node: Node, indent: int = 0) -> list[str]:
    """The lines of a tree in block style."""
    return list(_block_lines(node, indent))


def _block_lines(node: Node, indent: int) -> Iterator[str]:
    pad = " " * indent
    if isinstance(node, Map) and node.entries and not _is_flow(node):
        for entry in node.entries:
            yield from _lead(entry.lead, pad)
            yield from _value_lines(f"{pad}{entry.text}:", entry.value, indent, entry.note)
        yield from _lead(node.tail, pad)
    elif isinstance(node, Seq) and node.items and not _is_flow(node):
        for item in node.items:
            yield from _lead(item.lead, pad)
            yield from _item_lines(item.value, indent)
        yield from _lead(node.tail, pad)
    else:
        text, note = _inline(node)
        yield pad + text[0] + note
        yield from (pad + each if each else "" for each in text[1:])


def _value_lines(head: str, value: Node, indent: int, note: str) -> Iterator[str]:
    if isinstance(value, Map | Seq) and _is_block(value):
        yield head + note
        deeper = isinstance(value, Map) or value.indented
        yield from _block_lines(value, indent + _STEP if deeper else indent)
        return
    text, own = _inline(value)
    yield (f"{head} {text[0]}" if text[0] else head) + (own or note)
    pad = " " * (indent + _STEP)
    yield from (pad + each if each else "" for each in text[1:])


def _item_lines(value: Node, indent: int) -> Iterator[str]:
    pad = " " * indent
    if not isinstance(value, Map | Seq) or not _is_block(value):
        yield from _value_lines(f"{pad}-", value, indent, "")
        return
    dash = f"{pad}- "
    for line in _block_lines(value, indent + _STEP):
        if dash and line.strip() and not line.lstrip().startswith("#"):
            yield dash + line[len(dash) :]
            dash = ""
        else:
            yield line


def _lead(lead: list[str], pad: str) -> Iterator[str]:
    return (pad + each if each else "" for each in lead)


def _is_block(node: Map | Seq) -> bool:
    return bool(node.entries if isinstance(node, Map) else node.items) and not _is_flow(node)


def _is_flow(node: Map | Seq) -> bool:
    return node.flow is not None and plain(node) == node.flow.value


def _inline(node: Node) -> tuple[list[str], str]:
    if isinstance(node, Scalar):
        return node.text or [""], node.note
    if node.flow is not None and _is_flow(node):
        return node.flow.text, node.flow.note
    return ["{}" if isinstance(node, Map) else "[]"], ""


def _with_note(node: Node, old: Node) -> Node:
    if isinstance(node, Scalar) and isinstance(old, Scalar):
        node.note = old.note
    return node


def _scalar_text(value: Any) -> str:
    return dump_yaml(value).rstrip("\n")
