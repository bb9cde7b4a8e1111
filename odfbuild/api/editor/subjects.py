"""What stands at a place of a file: a dataset, a column, a function, a key, a variable. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property

from odfbuild.api.editor.keys import is_known
from odfbuild.api.editor.outline import Entry, Outline, outline_of
from odfbuild.api.editor.queries import (
    Inputs,
    ReadQuery,
    read_query,
    result_names,
    word_at,
)
from odfbuild.api.editor.sql_parts import SqlPart, part_of_file, sql_parts
from odfbuild.errors import Path
from odfbuild.odf.model import SetTransform
from odfbuild.odf.schema.ddl import ddl_of
from odfbuild.plan.columns.known import KnownColumns
from odfbuild.plan.queries.subjects import subjects_of
from odfbuild.project.config import FILE
from odfbuild.project.load import is_unit_test_file
from odfbuild.project.model import Definition
from odfbuild.sql.columns.of_query import Columns, Reader
from odfbuild.sql.parsed import parsed
from odfbuild.survey.definitions import Definitions
from odfbuild.values import Value

_VARIABLE = re.compile(r"[A-Za-z_]\w*")
_JINJA = re.compile(r"(?<!\$)\{\{(.*?)(?:\}\}|$)|\{%(.*?)(?:%\}|$)", re.M)


class Span(Value):
    """A place in a file: its path below the root, and indices of its text."""

    file: str
    start: int
    end: int


class Dataset(Value):
    """The name of a dataset. `alias` is what a query calls it, where that stands there."""

    name: str
    span: Span
    alias: str | None = None


class NamedColumn(Value):
    """A column. `dataset` has it, where it is one; `type` and `nullable` as far as known."""

    name: str
    dataset: str | None
    relation: str
    type: str | None
    span: Span


class Function(Value):
    """A function that a query calls."""

    name: str
    span: Span


class Key(Value):
    """A key of a document of some kind."""

    kind: str
    document: int
    path: Path
    span: Span


class Variable(Value):
    """A name in an expression of a template."""

    name: str
    span: Span


Subject = Dataset | NamedColumn | Function | Key | Variable


class Opened(Value, dict=True):
    """A file of a project as it is now; `file` is its path below the root.

    `beside` is the definition file of which this is the query.
    """

    file: str
    text: str
    beside: Opened | None = None

    @property
    def defined_in(self) -> Opened:
        """The definition file: this one, or the one beside it."""
        return self.beside or self

    @cached_property
    def outline(self) -> Outline:
        """Its keys; a query has none."""
        return outline_of(self.text) if self.beside is None else Outline(self.text, ())

    @cached_property
    def parts(self) -> list[SqlPart]:
        """Its queries."""
        if self.beside is None:
            return sql_parts(self.outline)
        part = part_of_file(self.beside.outline, self.text)
        return [part] if part is not None else []

    @property
    def is_template(self) -> bool:
        """Whether it is rendered."""
        return self.file.endswith(".j2")

    def part_at(self, index: int) -> SqlPart | None:
        """The query at a place."""
        return next((each for each in self.parts if each.holds(index)), None)

    def kind(self, document: int) -> str:
        """The kind of a document, that which belongs into such a file where it says none."""
        said = self.outline.value(document, ("kind",))
        if said is not None and is_known(said):
            return said
        if self.file == FILE:
            return "Project"
        return "UnitTests" if is_unit_test_file(self.file) else "DatasetSnapshot"

    def kinds(self, document: int) -> Mapping[Path, str]:
        """Values of a document by path."""
        return {e.path: e.plain for e in self.outline.entries if e.document == document}

    def jinja_at(self, index: int) -> tuple[int, str] | None:
        """Index and text of the expression or statement of a template around a place."""
        if not self.is_template:
            return None
        for found in _JINJA.finditer(self.text):
            group = 1 if found[1] is not None else 2
            if found.start(group) <= index <= found.end(group):
                return found.start(group), found[group]
        return None


class View(Value, dict=True):
    """A file within its project: what is known there of datasets, by what is not saved, too."""

    found: Definitions
    opened: Opened

    @cached_property
    def columns(self) -> KnownColumns:
        """Columns of datasets."""
        return self.found.columns()

    @cached_property
    def names(self) -> Mapping[str, str]:
        """Names of all datasets that may be read, by their lower case."""
        listed = [*self.found.projections, *self.found.external(), *self.found.wrong]
        listed += [each.name for each in self.found.project.definitions]
        return {name.lower(): name for name in listed}

    def spelt(self, name: str) -> str | None:
        """The name of a dataset as it is written where it is defined; `None`: there is none."""
        found = self.found.by_name.get(name.lower())
        return found.name if found is not None else self.names.get(name.lower())

    @cached_property
    def definitions(self) -> list[Definition]:
        """What the file defines, as far as it is right."""
        return list(self.found.by_file.get(self.opened.defined_in.file, ()))

    def definitions_of(self, document: int) -> Iterator[Definition]:
        """What a document defines; of a template, all its instances."""
        return (each for each in self.definitions if each.document == document - self.shift)

    def definition_at(self, document: int) -> Definition | None:
        """What a document defines; of a template, its first instance."""
        return next(self.definitions_of(document), None)

    @property
    def shift(self) -> int:
        """How many documents of the file are before the first that is rendered: its matrix."""
        first = self.opened.defined_in.outline.entries[:1]
        has_matrix = bool(first) and first[0].path[0] in ("matrix", "include", "exclude")
        return 1 if self.opened.is_template and has_matrix else 0

    def aliases(self, part: SqlPart) -> dict[str, str]:
        """Datasets that a query reads, by what it calls them, in lower case."""
        found: dict[str, str] = {}
        outline = self.opened.defined_in.outline
        transform = self._transform(part.document)
        for number, item in enumerate(outline.items(part.document, (*part.owner, "inputs"))):
            name = outline.value(part.document, (*item, "datasetRef"))
            alias = outline.value(part.document, (*item, "alias"))
            if name is None:
                continue
            if "{" in name and transform is not None and number < len(transform.inputs):
                name = str(transform.inputs[number].dataset_ref)
            found[(alias or name).lower()] = name
        return found

    def called(self, part: SqlPart, dataset: str) -> set[str]:
        """What a query calls a dataset, in lower case."""
        return {alias for alias, of in self.aliases(part).items() if of.lower() == dataset.lower()}

    def _transform(self, document: int) -> SetTransform | None:
        definition = self.definition_at(document)
        events = definition.snapshot.metadata if definition is not None else ()
        return next((each for each in events if isinstance(each, SetTransform)), None)

    def inputs(self, part: SqlPart) -> Inputs:
        """Columns of all that a query may read, by what it calls it; earlier steps included."""
        aliases = self.aliases(part)
        inputs: dict[str, Columns | None] = {
            alias: self.columns.relation(name) for alias, name in aliases.items()
        }
        if not aliases:
            inputs = dict(self._of_source(part))
        for other in self.opened.parts:
            if (other.document, other.owner) == (part.document, part.owner) and (
                other.step < part.step
            ):
                alias = self.opened.outline.value(other.document, (*other.path[:-1], "alias"))
                if alias:
                    inputs[alias.lower()] = _columns_of(other.sql, inputs)
        return inputs

    def _of_source(self, part: SqlPart) -> Inputs:
        definition = self.definition_at(part.document)
        if definition is None or not isinstance(part.owner[-1], int):
            return {}
        name, engines = definition.name, self.found.project.config.engines
        events = definition.snapshot.metadata[part.owner[-1] : part.owner[-1] + 1]
        relation, vocab = self.columns.relation, self.columns.vocabulary(name)
        for subject in subjects_of(name, events, relation, vocab, engines):
            return subject.inputs
        return {}

    def read(self, part: SqlPart) -> ReadQuery | None:
        """What a query names."""
        return read_query(part.sql, self.inputs(part))

    def subject_at(self, index: int) -> Subject | None:
        """What stands at a place of the file; `None`: nothing that is known."""
        jinja = self.opened.jinja_at(index)
        if jinja is not None:
            return _variable(self.opened, *jinja, index)
        part = self.opened.part_at(index)
        if part is not None:
            return self._in_query(part, index)
        entry = self.opened.outline.at(index)
        if entry is None:
            return None
        if entry.key is not None and entry.key[0] <= index <= entry.key[1]:
            return self._of_key(entry)
        if entry.value[0] <= index <= entry.value[1]:
            return self._of_value(entry)
        return None

    def _in_query(self, part: SqlPart, index: int) -> Subject | None:
        at = part.within(index)
        file = self.opened.file
        aliases = self.aliases(part)
        read = self.read(part)
        for table in read.tables if read else ():
            if table.start <= at <= table.end and table.name.lower() in aliases:
                span = span_in(file, part, table.start, table.end)
                name = aliases[table.name.lower()]
                return Dataset(self.spelt(name) or name, span, table.name)
        for column in read.columns if read else ():
            if column.start <= at <= column.end:
                owner = aliases.get(column.table)
                return NamedColumn(
                    column.column.name,
                    None if owner is None else self.spelt(owner) or owner,
                    column.relation,
                    None if column.column.type is None else ddl_of(column.column.type),
                    span_in(file, part, column.start, column.end),
                )
        own = self.definition_at(part.document)
        for name, start, end in result_names(part.sql):
            if start <= at <= end and own is not None and self._is_last(part):
                return self._own_column(own, name, span_in(file, part, start, end))
        start, end = word_at(part.sql, at)
        word = part.sql[start:end]
        if word and part.sql[end:].lstrip().startswith("("):
            return Function(word.lower(), span_in(file, part, start, end))
        if word.strip("`").lower() in aliases and not part.sql[end:].startswith("("):
            name = aliases[word.strip("`").lower()]
            span = span_in(file, part, start, end)
            return Dataset(self.spelt(name) or name, span, word.strip("`"))
        return None

    def _is_last(self, part: SqlPart) -> bool:
        here = (part.document, part.owner)
        others = [e.step for e in self.opened.parts if (e.document, e.owner) == here]
        return part.step == max(others)

    def _own_column(self, own: Definition, name: str, span: Span) -> NamedColumn:
        columns = self.columns.relation(own.name) or ()
        found = next((each for each in columns if each.name.lower() == name.lower()), None)
        kind = None if found is None or found.type is None else ddl_of(found.type)
        return NamedColumn(name, own.name, own.name, kind, span)

    def _of_key(self, entry: Entry) -> Subject:
        opened = self.opened
        assert entry.key is not None, "asked before"
        span = Span(opened.file, *entry.key)
        name = str(entry.path[-1])
        kind = opened.kind(entry.document)
        if kind == "UnitTests" and len(entry.path) > 1 and entry.path[-2] == "given":
            found = self._given(entry, name)
            if found is not None:
                return Dataset(found, span, name)
        if entry.path[:-1] in (("matrix",), ("content", "vars")):
            return Variable(name, span)
        return Key(kind, entry.document, entry.path, span)

    def _given(self, entry: Entry, name: str) -> str | None:
        """The input that a unit test calls so."""
        dataset = self.opened.outline.value(entry.document, ("content", "dataset")) or ""
        definition = self.found.by_name.get(dataset.lower())
        for event in definition.snapshot.metadata if definition is not None else ():
            for given in event.inputs if isinstance(event, SetTransform) else ():
                reference = str(given.dataset_ref)
                if name.lower() in ((given.alias or "").lower(), reference.lower()):
                    return reference
        return self.spelt(name)

    def _of_value(self, entry: Entry) -> Subject | None:
        kind = self.opened.kind(entry.document)
        column = schema_name(entry)
        own = self.definition_at(entry.document)
        if column is not None and own is not None:
            return self._own_column(own, column[0], Span(self.opened.file, *column[1]))
        if not names_dataset(kind, entry.path):
            return None
        name: str | None = self.spelt(entry.plain)
        start, end = entry.value
        quoted = entry.text != entry.plain
        span = Span(self.opened.file, start + quoted, end - quoted)
        if name is None and entry.path == ("content", "name"):
            name = self._name_of_document(entry)
        return Dataset(name, span) if name is not None else None

    def _name_of_document(self, entry: Entry) -> str | None:
        definition = self.definition_at(entry.document)
        return definition.name if definition is not None else None


_COLUMN = re.compile(r"`[^`]+`|\w+")


def schema_name(entry: Entry) -> tuple[str, tuple[int, int]] | None:
    """The name of a column in a line of the schema of a source, and its place."""
    path = entry.path
    if len(path) < 2 or "read" not in path or not isinstance(path[-1], int):
        return None
    name = _COLUMN.match(entry.plain) if path[-2] in ("schema", "ddlSchema") else None
    if name is None:
        return None
    start = entry.value[0] + (entry.text != entry.plain)
    return name.group().strip("`"), (start, start + name.end())


def names_dataset(kind: str, path: Path) -> bool:
    """Whether a value at a path is the name of a dataset, or a pattern of names."""
    if kind == "DatasetSnapshot":
        return path == ("content", "name") or path[-1] == "datasetRef"
    if kind == "UnitTests":
        return path == ("content", "dataset")
    if path[:2] == ("content", "moved"):
        return len(path) == 3
    return "match" in path[-2:-1] or path[-1] == "to"


def span_in(file: str, part: SqlPart, start: int, end: int) -> Span:
    """A place in a query as a place in the file."""
    return Span(file, part.offsets[start], part.offsets[end - 1] + 1 if end > start else start)


def _columns_of(sql: str, inputs: Inputs) -> Columns | None:
    tree = parsed(sql)
    return None if tree is None else Reader(inputs, meanings=False).step(tree, None)


def _variable(opened: Opened, start: int, text: str, index: int) -> Variable | None:
    for found in _VARIABLE.finditer(text):
        if start + found.start() <= index <= start + found.end():
            place = Span(opened.file, start + found.start(), start + found.end())
            return Variable(found.group(), place)
    return None


def matrix_names(opened: Opened) -> Iterator[Entry]:
    """The names that the matrix of a template gives values."""
    for entry in opened.defined_in.outline.entries:
        if entry.document == 0 and entry.path[:1] == ("matrix",) and len(entry.path) == 2:
            yield entry
