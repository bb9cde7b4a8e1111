"""What may follow at a place of a file: keys, values, datasets, columns, functions, variables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from itertools import islice

from odfbuild.api.editor.explanations import dataset as explain_dataset
from odfbuild.api.editor.explanations import function as explain_function
from odfbuild.api.editor.explanations import type_of
from odfbuild.api.editor.keys import keys_at, values_at
from odfbuild.api.editor.outline import Entry, outline_of
from odfbuild.api.editor.queries import names_relation, relations_at, word_at
from odfbuild.api.editor.sql_parts import SqlPart
from odfbuild.api.editor.subjects import Span, View, matrix_names, names_dataset, span_in
from odfbuild.errors import Path
from odfbuild.odf.model import SetTransform
from odfbuild.sql.columns.of_query import Column
from odfbuild.sql.function_list import AGGREGATES, ALLOWED, arity_of
from odfbuild.sql.functions import TABLE_FUNCTIONS
from odfbuild.values import Value

_WORD_BEFORE = re.compile(r"[\w./*-]*$")
_WORDS = """SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT JOIN LEFT ON USING UNION ALL WITH AS AND
    OR NOT IN EXISTS IS NULL CASE WHEN THEN ELSE END DISTINCT BETWEEN LIKE CAST OVER PARTITION"""
_MARK = "caret__"


class Kind(Enum):
    """What an item is."""

    key = "key"
    value = "value"
    dataset = "dataset"
    column = "column"
    function = "function"
    keyword = "keyword"
    variable = "variable"


class Item(Value):
    """Something that may be written at `span`, and what it is; `rank` puts some before others."""

    label: str
    kind: Kind
    span: Span
    insert: str
    detail: str = ""
    about: str = ""
    rank: int = 1


MOST = 300
"""Items that are offered at once; an editor asks again when more is typed."""


def completions(view: View, index: int) -> tuple[list[Item], bool]:
    """What may stand at a place, in place of what was begun there, and whether that is all of it.

    What does not have the letters that were typed, in their order, is left out.
    """
    fitting = (each for each in _all(view, index) if _fits(each, view.opened.text, index))
    found = list(islice(fitting, MOST + 1))
    return found[:MOST], len(found) <= MOST


def _all(view: View, index: int) -> Iterator[Item]:
    opened = view.opened
    if opened.jinja_at(index) is not None:
        return _in_template(view, index)
    part = opened.part_at(index)
    return _in_query(view, part, index) if part is not None else _in_yaml(view, index)


def _fits(item: Item, text: str, index: int) -> bool:
    left = iter(item.label.lower())
    typed = text[item.span.start : index].lower().strip("`")
    return all(letter in left for letter in typed)


# --- YAML ---


def _in_yaml(view: View, index: int) -> Iterator[Item]:
    opened = view.opened
    text = opened.text
    start = text.rfind("\n", 0, index) + 1
    end = text.find("\n", index)
    end = len(text) if end < 0 else end
    begun = _WORD_BEFORE.search(text, start, index)
    begin = begun.start() if begun is not None else index
    if "#" in text[start:index].partition(" #")[1] or text[start:index].lstrip().startswith("#"):
        return
    following = re.compile(r"[\w./*-]*").match(text, index, end)
    span = Span(opened.file, begin, following.end() if following else index)
    # A key that is begun is read as if it were whole, whatever stands around it.
    rest = "" if re.match(r"\s*:", text[span.end : end]) else ": "
    is_flow = text[span.end : end].lstrip()[:1] in ("}", "]", ",")
    tail = text[span.end : end] if is_flow or not rest else ""
    marked = outline_of(f"{text[:begin]}{_MARK}{rest}{tail}{text[end:]}")
    found = next((e for e in marked.entries if e.path and e.path[-1] == _MARK), None)
    listed = list(_keys(view, found, span, has_colon=not rest)) if found is not None else []
    yield from listed
    if listed:
        return
    marked = outline_of(f"{text[:begin]}{_MARK}{text[span.end :]}")
    held = [each for each in marked.entries if each.plain.strip("[]{}, ") == _MARK]
    if held:
        here = held[-1]  # the innermost
        values = {e.path: e.plain for e in marked.entries if e.document == here.document}
        yield from _values(view, opened.kind(here.document), here.path, values, span)


def _keys(view: View, found: Entry, span: Span, *, has_colon: bool) -> Iterator[Item]:
    opened = view.opened
    around = found.path[:-1]
    document = found.document
    kind = opened.kind(document)
    values = opened.kinds(document)
    if kind == "UnitTests" and around[-1:] == ("given",):
        yield from _given(view, document, span, has_colon=has_colon)
        return
    present = {e.path[-1] for e in opened.outline.below(document, around)}
    typed = opened.text[span.start : span.end]
    indent = " " * (found.column + 2)
    for number, each in enumerate(keys_at(kind, around, values.get)):
        if each.name in present and each.name != typed:
            continue
        after = {"object": f":\n{indent}", "list": f":\n{indent}- "}.get(each.shape, ": ")
        if found.column >= 1 << 16:
            after = ": "
        yield Item(
            each.name,
            Kind.key,
            span,
            each.name if has_colon else each.name + after,
            f"{each.type}{', required' if each.required else ''}",
            each.markdown,
            0 if each.required else 1 + number // 100,
        )


def _given(view: View, document: int, span: Span, *, has_colon: bool) -> Iterator[Item]:
    dataset = view.opened.outline.value(document, ("content", "dataset")) or ""
    definition = view.found.by_name.get(dataset.lower())
    for event in definition.snapshot.metadata if definition is not None else ():
        for each in event.inputs if isinstance(event, SetTransform) else ():
            name = each.alias or str(each.dataset_ref)
            about = explain_dataset(view, str(each.dataset_ref)) or ""
            insert = name if has_colon else f"{name}:\n"
            yield Item(name, Kind.dataset, span, insert, str(each.dataset_ref), about)


def _values(
    view: View, kind: str, path: Path, values: Mapping[Path, str], span: Span
) -> Iterator[Item]:
    if names_dataset(kind, path) and path != ("content", "name"):
        yield from _datasets(view, span)
        return
    columns = _columns_here(view, kind, path, span)
    if columns is not None:
        yield from columns
        return
    if path[-1] == "engine" and kind == "DatasetSnapshot":
        names = dict.fromkeys(("spark", *view.found.project.config.engines))
        for name in names:
            yield Item(name, Kind.value, span, name, "engine of the query")
    for each in values_at(kind, path, values.get):
        yield Item(each.name, Kind.value, span, each.name, each.about.split("\n")[0], each.about)


_OF_COLUMNS = ("primaryKey", "compareColumns", "orderColumn")
_OF_TABLES = ("partitionBy", "indices", "sort", "notNull", "unique")


def _columns_here(view: View, kind: str, path: Path, span: Span) -> Iterable[Item] | None:
    """Columns where a key or a setting names some."""
    key = next((part for part in reversed(path) if isinstance(part, str)), "")
    if kind == "DatasetSnapshot" and "merge" in path and key in _OF_COLUMNS:
        definition = next(iter(view.definitions), None)
        names = [definition.name] if definition is not None else []
    elif kind == "Project" and key in _OF_TABLES and len(path) > 3:
        entry = view.opened.outline.below(0, (*path[:3], "match"))
        names = [view.names[e.plain.lower()] for e in entry if e.plain.lower() in view.names]
    else:
        return None
    return [
        Item(each.name, Kind.column, span, each.name, type_of(each), f"Column of `{name}`.")
        for name in names
        for each in view.columns.relation(name) or ()
    ]


def _datasets(view: View, span: Span) -> Iterator[Item]:
    own = {each.name for each in view.definitions}
    for name in sorted(view.names.values()):
        if name not in own:
            yield Item(name, Kind.dataset, span, name, "dataset")


# --- SQL ---


def _in_query(view: View, part: SqlPart, index: int) -> Iterator[Item]:
    sql, at = part.sql, part.within(index)
    start, end = word_at(sql, at)
    span = Span(view.opened.file, index, index)
    if start < end:
        span = span_in(view.opened.file, part, start, end)
    if names_relation(sql, at):
        yield from _relations(view, part, span)
        return
    relations = relations_at(sql, at, view.inputs(part))
    before = sql[:start].rstrip()
    if before.endswith("."):
        owner, _ = word_at(sql, len(before) - 1)
        name = sql[owner : len(before) - 1].strip("`").lower()
        yield from _columns(name, relations.get(name) or (), span)
        return
    found = {
        item.label: item
        for name, columns in reversed(relations.items())
        for item in _columns(name, columns or (), span)
    }
    yield from found.values()
    if len(relations) > 1:
        for name in relations:
            yield Item(name, Kind.dataset, span, name, "relation of this query", rank=2)
    yield from _functions(span)
    for word in _WORDS.split():
        yield Item(word, Kind.keyword, span, word, rank=4)


def _relations(view: View, part: SqlPart, span: Span) -> Iterator[Item]:
    aliases = view.aliases(part)
    for alias in view.inputs(part):
        name = aliases.get(alias)
        about = (explain_dataset(view, name) or "") if name else ""
        yield Item(alias, Kind.dataset, span, _quoted(alias), name or "step of this query", about)


def _functions(span: Span) -> Iterator[Item]:
    operators = ("and", "or", "not", "in", "between", "like", "when")
    for name in sorted(ALLOWED | TABLE_FUNCTIONS):
        if name[0].isalpha() and name not in operators:
            detail = f"takes {arity_of(name)}" if name in ALLOWED else "gives a table"
            kind = "aggregate, " if name in AGGREGATES else ""
            yield Item(name, Kind.function, span, f"{name}(", kind + detail, rank=3)


def _quoted(name: str) -> str:
    return name if name.replace("_", "a").isalnum() else f"`{name}`"


def _columns(relation: str, columns: Iterable[Column], span: Span) -> Iterator[Item]:
    for each in columns:
        about = f"Column of `{relation}`."
        yield Item(each.name, Kind.column, span, _quoted(each.name), type_of(each), about, 0)


def documented(view: View, label: str, kind: Kind) -> str:
    """What is shown of an item that is chosen from a long list."""
    if kind is Kind.dataset:
        return explain_dataset(view, label) or ""
    return (explain_function(label) or "") if kind is Kind.function else ""


# --- Templates ---


def _in_template(view: View, index: int) -> Iterator[Item]:
    text = view.opened.text
    begun = re.compile(r"\w*$").search(text, 0, index)
    span = Span(view.opened.file, begun.start() if begun else index, index)
    for entry in matrix_names(view.opened):
        yield Item(str(entry.path[-1]), Kind.variable, span, str(entry.path[-1]), "matrix", rank=0)
    for name, value in view.found.project.config.vars.items():
        yield Item(name, Kind.variable, span, name, f"{value}", "From `vars` in odfbuild.yaml.")
    for file, name in macros_of(view):
        yield Item(name, Kind.function, span, f"{name}(", f"macro of {file}", rank=2)


_MACRO = re.compile(r"\{%-?\s*macro\s+(\w+)\s*\(")


def macros_of(view: View) -> Iterator[tuple[str, str]]:
    """Macros that the files of `macros/` define: file and name."""
    from odfbuild.errors import OdfbuildError
    from odfbuild.project.source import read_text

    folder = view.found.project.config.root / "macros"
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if not path.is_file():
            continue
        file = str(path.relative_to(view.found.project.config.root))
        try:
            text = read_text(path, file)
        except OdfbuildError:
            continue
        for found in _MACRO.finditer(text):
            yield file, found[1]
