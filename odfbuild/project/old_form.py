"""Definitions in the forms of earlier specifications, and how each part is written today.

Known are the early metadata reference and version 0.15 (`id`, `source`, `vocab`, inputs by name,
`JsonLines`, columns of observations) and what lies between them and today. A definition is taken
as a tree and edited in place, so that what people wrote around it stays. Nothing is guessed: what
has no equivalent is taken out and named.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from odfbuild.project.yaml.tree import Entry, Item, Map, Node, Scalar, Seq, tree_of
from odfbuild.values import Value

Path = tuple[str | int, ...]


class Change(Value):
    """One edit: where in the old definition, and what. `lost`: a person has to look at it."""

    path: Path
    message: str
    lost: bool = False


def old_parts(data: Any) -> tuple[Change, ...]:
    """What of a definition (plain data) is in an old form; empty when nothing is."""
    return modernise(tree_of(data))


_EARLY_BLOCK = frozenset(
    ("blockHash", "outputSlice", "outputWatermark", "inputSlices", "source", "vocab")
)


def is_early_block(data: Any) -> bool:
    """Whether a document is a block of a chain of version 0.15 or before: such had no events."""
    content = data.get("content") if isinstance(data, dict) else None
    return (
        isinstance(content, dict)
        and data.get("kind") == "MetadataBlock"
        and "event" not in content
        and not _EARLY_BLOCK.isdisjoint(content)
    )


def modernise(document: Node) -> tuple[Change, ...]:
    """Edit a definition into today's form; returns what was done, in order of the document."""
    content = document.get("content") if isinstance(document, Map) else None
    if not isinstance(document, Map) or not isinstance(content, Map):
        return ()
    if document.text("kind") != "DatasetSnapshot":
        return ()
    found = _Changes()
    _content(content, found)
    if found.changes:
        _manifest(document, found)
    return tuple(found.changes)


@dataclass(slots=True)
class _Changes:
    changes: list[Change] = field(default_factory=list)
    operation_column: str | None = None

    def rewritten(self, path: Path, message: str) -> None:
        """Said in another way today."""
        self.changes.append(Change(path, message))

    def lost(self, path: Path, message: str) -> None:
        """Has no equivalent."""
        self.changes.append(Change(path, message, lost=True))


def _manifest(document: Map, found: _Changes) -> None:
    if "apiVersion" in document and "version" not in document:
        document.rename("apiVersion", "version")
        found.rewritten(("apiVersion",), "`apiVersion` is called `version`")
    if "version" not in document:
        document.put("version", 1, 1)


def _content(content: Map, found: _Changes) -> None:
    path: Path = ("content",)
    if "id" in content and "name" not in content:
        content.rename("id", "name")
        found.rewritten((*path, "id"), "`id` is called `name`; identity is made with the dataset")
    elif "id" in content:
        content.pop("id")
        found.lost((*path, "id"), "`id` is left out: identity is made with the dataset")
    events = content.get("metadata")
    if events is None and ("source" in content or "vocab" in content):
        events = Seq()
    if not isinstance(events, Seq):
        return
    for index, item in enumerate(events.items):
        _event(item.value, (*path, "metadata", index), found)
    _source(content, events, path, found)
    _vocab(content, events, path, found)
    if found.operation_column is not None:
        _operation_column(events, found.operation_column)


def _source(content: Map, events: Seq, path: Path, found: _Changes) -> None:
    entry = content.entry("source")
    if entry is None or not isinstance(entry.value, Map):
        return
    source = entry.value
    kind = source.pop("kind")
    named = kind.value.value if kind is not None and isinstance(kind.value, Scalar) else None
    derived = str(named).lower() == "derivative" if named else "inputs" in source
    dataset, event = ("Derivative", "SetTransform") if derived else ("Root", "SetPollingSource")
    lead = kind.lead if kind is not None else []
    source.entries.insert(0, Entry("kind", tree_of(event), lead))
    found.rewritten((*path, "source"), f"`source` is the event {event} of a {dataset} dataset")
    _event(source, (*path, "source"), found)
    events.items.insert(0, Item(source))
    position = content.entries.index(entry)
    if "metadata" in content:
        content.entries.remove(entry)
    else:
        content.entries[position] = Entry("metadata", events, entry.lead, entry.note)
    if "kind" not in content:
        content.put("kind", dataset, min(position, 1))


def _vocab(content: Map, events: Seq, path: Path, found: _Changes) -> None:
    entry = content.entry("vocab")
    if entry is None:
        return
    if "metadata" not in content:
        content.entries[content.entries.index(entry)] = Entry("metadata", events)
    else:
        content.entries.remove(entry)
    vocab = entry.value if isinstance(entry.value, Map) else Map()
    if vocab.entries:
        vocab.entries.insert(0, Entry("kind", tree_of("SetVocab")))
        events.items.append(Item(vocab, entry.lead))
    found.rewritten((*path, "vocab"), "`vocab` is the event SetVocab in `metadata`")


def _event(event: Node, path: Path, found: _Changes) -> None:
    if not isinstance(event, Map):
        return
    _part(event, "read", path, found, _read)
    _part(event, "merge", path, found, _merge)
    for name in ("preprocess", "transform"):
        _part(event, name, path, found, _transform)
    inputs = event.get("inputs")
    if isinstance(inputs, Seq):
        for index, item in enumerate(inputs.items):
            item.value = _input(item.value, (*path, "inputs", index), found)


def _part(
    event: Map, key: str, path: Path, found: _Changes, edit: Callable[[Map, Path, _Changes], None]
) -> None:
    part = event.get(key)
    if isinstance(part, Map):
        edit(part, (*path, key), found)


# --- Reading ---

_TRIM = "trim the columns in `preprocess`"
_REPLACE = "replace it in `preprocess`"
_NOT_READ: dict[str, dict[str, str]] = {
    "csv": {
        "comment": "leave such lines out with a `Pipe` in `prepare`",
        "enforceSchema": "columns are found by name when there is a header, else by position",
        "ignoreLeadingWhiteSpace": _TRIM,
        "ignoreTrailingWhiteSpace": _TRIM,
        "emptyValue": _REPLACE,
        "nanValue": _REPLACE,
        "positiveInf": _REPLACE,
        "negativeInf": _REPLACE,
        "multiLine": "look at records that span lines",
    },
    "ndjson": {
        "multiLine": "a file that is one array of objects is read by `kind: Json`",
        "primitivesAsString": "declare the columns as STRING in `schema`",
    },
}


def _read(read: Map, path: Path, found: _Changes) -> None:
    kind = (read.text("kind") or "").lower()
    if kind == "jsonlines":
        kind = "ndjson"
        read.put("kind", "NdJson")
        found.rewritten((*path, "kind"), "`JsonLines` is called `NdJson`")
    for key, advice in _NOT_READ.get(kind, {}).items():
        if read.pop(key) is not None:
            found.lost((*path, key), f"`{key}`: no equivalent, {advice}")
    for key in ("dateFormat", "timestampFormat"):
        pattern = read.text(key)
        if pattern is not None and pattern.lower() != "rfc3339":
            from odfbuild.sql.time_patterns import instead_of_format

            read.pop(key)
            advice = instead_of_format(key, pattern)
            found.lost((*path, key), f"`{key}: {pattern}`: no equivalent, {advice}")


# --- Transformations ---


def _transform(transform: Map, path: Path, found: _Changes) -> None:
    engine = transform.text("engine")
    if engine is not None and engine.lower() == "sparksql":
        transform.put("engine", "spark")
        found.rewritten((*path, "engine"), f"the engine `{engine}` is called `spark`")


def _input(item: Node, path: Path, found: _Changes) -> Node:
    if isinstance(item, Scalar) and isinstance(item.value, str):
        found.rewritten(path, "an input is an object with a `datasetRef`")
        return Map([Entry("datasetRef", item)])
    if isinstance(item, Map) and "datasetRef" not in item and ("id" in item or "name" in item):
        if "id" not in item:
            item.rename("name", "datasetRef")
        else:
            item.rename("id", "datasetRef")
            if "name" in item and "alias" not in item:
                item.rename("name", "alias")
        found.rewritten(path, "an input is named by its `datasetRef`")
    return item


# --- Merging ---

_OBSERVATIONS = ("obsvAdded", "obsvChanged", "obsvRemoved")
_OPERATIONS = (
    "operations are numbers, 0 for added, 1 for removed, 2 and 3 for the values before and after "
    "a change; adapt the queries that compare them"
)


def _merge(merge: Map, path: Path, found: _Changes) -> None:
    """Columns of observations: their name is part of the vocabulary, their values are fixed."""
    column = merge.pop("observationColumn")
    if column is not None and isinstance(column.value, Scalar):
        found.operation_column = str(column.value.value)
        found.rewritten(
            (*path, "observationColumn"), "`observationColumn` is `operationTypeColumn` of SetVocab"
        )
    values = [key for key in _OBSERVATIONS if merge.pop(key) is not None]
    if values:
        names = ", ".join(f"`{key}`" for key in values)
        found.lost((*path, values[0]), f"{names}: no equivalent, {_OPERATIONS}")
    is_old = column is not None or path[1] == "source"
    if is_old and not values and (merge.text("kind") or "").lower() == "snapshot":
        name = found.operation_column or "op"
        found.lost((*path, "kind"), f"the values of column `{name}` are others: {_OPERATIONS}")


def _operation_column(events: Seq, name: str) -> None:
    for item in events.items:
        if isinstance(item.value, Map) and (item.value.text("kind") or "").lower() == "setvocab":
            item.value.put("operationTypeColumn", name)
            return
    events.items.append(Item(tree_of({"kind": "SetVocab", "operationTypeColumn": name})))
