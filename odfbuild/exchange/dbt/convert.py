"""Decide what becomes of each part of a dbt project, and write it as text.

Reads samples of local data files, writes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from odfbuild.errors import IngestError, ProjectError
from odfbuild.exchange.dbt import checks, roots
from odfbuild.exchange.dbt.files import DbtFiles
from odfbuild.exchange.dbt.model import DbtProject, GenericTest, Node, Note, Place, Query
from odfbuild.exchange.dbt.names import FILE, HEAD, dataset_names, nearest
from odfbuild.exchange.dbt.result import Item, Migrated, Status
from odfbuild.exchange.dbt.spark_query import NoQuery, SparkQuery, Types, spark_query
from odfbuild.exchange.dbt.usage import used_columns
from odfbuild.project.editor import GITIGNORE, schema_comment
from odfbuild.project.format import format_text
from odfbuild.project.yaml.tree import lines_of, tree_of

_NO_TIME = "it has no event time, so all records have the same; `event_time` in its config sets it"
_MULTILINE = re.compile(r"\{[{#][^}]*\n")
_CHECK_KEYS = ("notNull", "unique", "acceptedValues", "relationships", "sql")


def convert(
    project: DbtProject,
    folder: Path,
    target: Path,
    kept_names: Mapping[str, str],
    *,
    schemas: bool,
) -> Migrated:
    """The project at `folder` as files of a project at `target`."""
    nodes = sorted(project.nodes, key=lambda each: (each.kind, each.place.file, each.name))
    project = replace(project, nodes=tuple(nodes))
    return _Conversion(project, folder, target, kept_names, schemas=schemas).result()


class _Conversion:
    """Collects files and items, tables before what is about tables."""

    def __init__(
        self,
        project: DbtProject,
        folder: Path,
        target: Path,
        kept_names: Mapping[str, str],
        *,
        schemas: bool,
    ) -> None:
        self.project, self.folder, self.target = project, folder, target
        self.by_id = {node.id: node for node in project.nodes}
        loaded = _loaded_by_seeds(project.nodes)
        self.same = loaded | _histories(project.nodes, loaded)
        """Tables that are no datasets of their own, with the ids of those that they are."""
        own = [node for node in project.nodes if node.id not in self.same]
        self.names = dataset_names(own, kept_names, schemas=schemas)
        self.keys = {node.id: self._key(node) for node in own}
        self.columns: dict[str, Types] = {}
        """Columns of what was moved, with types in the dialect of the project."""
        self.queries: dict[str, Query] = {}
        self.waits: dict[str, set[str]] = {}
        """What each table is built after."""
        self.texts: dict[str, str] = {}
        self.copies: dict[str, Path] = {}
        self.definitions: dict[str, str] = {}
        self.items: list[Item] = []
        self.line_breaks: list[str] = []

    def result(self) -> Migrated:
        """All files, and what became of each part."""
        for node in _in_order(self.project.nodes):
            self._table(node)
        settings = self._settings()
        self._unit_tests()
        for other in self.project.others:
            note = Note(f"odfbuild has no equivalent for this kind ({other.kind})", other.place)
            self._item(other.kind, other.name, other.place, "not moved", notes=[note])
        self.texts["odfbuild.yaml"] = schema_comment(
            self.target, self.target / "odfbuild.yaml"
        ) + _yaml({"kind": "Project", "version": 1, "content": settings})
        self.texts[".gitignore"] = GITIGNORE
        moved = {id_: self.names[id_] for id_ in sorted(self.definitions)}
        self.texts[FILE] = HEAD + _yaml(moved)
        return Migrated(
            project=self.project.name,
            read_from=self.project.read_from,
            texts=self.texts,
            copies=self.copies,
            items=tuple(self.items),
            definitions=self.definitions,
        )

    def _item(
        self,
        kind: str,
        name: str,
        place: Place,
        status: Status,
        target: str | None = None,
        notes: Iterable[Note] = (),
    ) -> None:
        self.items.append(
            Item(
                kind=kind, name=name, place=place, status=status, target=target, notes=tuple(notes)
            )
        )

    def _node_item(
        self, node: Node, status: Status, notes: Iterable[Note] = (), target: str | None = None
    ) -> None:
        name = f"{node.group}.{node.name}" if node.group else node.name
        self._item(node.kind, name, node.place, status, target, notes)

    # --- Tables ---

    def _key(self, node: Node) -> tuple[str, ...]:
        """The key of a table; a snapshot knows that of what it follows."""
        return roots.key_of(node) or next(
            (
                roots.key_of(self.by_id[id_])
                for id_, of in self.same.items()
                if of == node.id and roots.key_of(self.by_id[id_])
            ),
            (),
        )

    def _table(self, node: Node) -> None:
        if node.id in self.same:
            of = self.same[node.id]
            said = f"it is the seed {self.by_id[of].name}, which dbt loads into its schema"
            if node.kind == "snapshot":
                said = "the chain of the dataset has its history: the merge strategy is Snapshot"
            target = self.names[of] if of in self.definitions else None
            status: Status = "moved" if target else "not moved"
            self._node_item(node, status, [Note(said, node.place)], target)
        elif node.kind == "snapshot":
            why = node.problem or Note(
                "odfbuild keeps the history of each dataset in its chain: make a derivative of its "
                "query, and read the history with `odfbuild log` or `FOR SYSTEM_TIME AS OF`",
                node.place,
            )
            self._node_item(node, "not moved", [why])
        elif node.kind == "model":
            self._model(node)
        else:
            self._root(node)

    def _root(self, node: Node) -> None:
        key, dialect = self.keys[node.id], self.project.dialect
        try:
            if node.kind == "seed":
                root = roots.seed(node, self.folder, dialect, key)
            else:
                root = roots.source(node, self.folder, self.target, dialect, key, self._used(node))
        except (IngestError, OSError) as error:
            self._node_item(node, "not moved", [Note(str(error), node.place)])
            return
        folder = "seeds" if node.kind == "seed" else "sources"
        self._define(node, PurePosixPath(folder), "Root", root.events)
        self.columns[node.id] = {
            name: roots.type_in(kind, dialect) for name, kind in root.columns.items()
        }
        if root.data and root.text is not None:
            self.texts[root.data] = root.text
        elif root.data and root.copy:
            self.copies[root.data] = root.copy
        if root.line_breaks:
            self.line_breaks.append(self.names[node.id])
        notes = [Note(text, node.place) for text in (*root.missing, *root.notes)]
        status: Status = "by hand" if root.missing else "moved"
        self._node_item(node, status, notes, self.names[node.id])

    def _used(self, node: Node) -> list[str]:
        """Columns of a source that queries name, where the project declares none."""
        if node.columns:
            return []
        queries = [each.query for each in self.project.nodes if each.query is not None]
        return used_columns(queries, node.id, self.project.dialect) or []

    def _model(self, node: Node) -> None:
        if node.query is None:
            why = node.problem or Note("its text is not in the project", node.place)
            self._node_item(node, "not moved", [why])
            return
        query = self._with_own_inputs(node.query)
        time = node.config.get("event_time")
        time = time if isinstance(time, str) else None
        try:
            found = self._spark_query(query, time)
        except NoQuery as error:
            line = error.line if error.line and self._keeps_lines(node) else None
            self._node_item(node, "not moved", [Note(error.why, Place(node.place.file, line))])
            return
        self.queries[node.id] = query
        self.waits[node.id] = {*query.inputs}
        self.columns[node.id] = found.columns
        parts = PurePosixPath(node.place.file).parts[1:-1]
        events = [self._transform(query, found)]
        if time and time != "event_time":
            events.append({"kind": "SetVocab", "eventTimeColumn": time})
        self._define(node, PurePosixPath(*parts), "Derivative", events)
        said = [*found.notes]
        if not query.inputs:
            said.append("it reads no table: keep its records as a seed, or in a file of a root")
        if found.made_time:
            said.append(_NO_TIME)
        if node.config.get("materialized") == "ephemeral":
            said.append("it is ephemeral in dbt, and a dataset here")
        notes = [*query.notes, *(Note(each, node.place) for each in said)]
        self._node_item(node, "moved", notes, self.names[node.id])

    def _spark_query(self, query: Query, event_time: str | None) -> SparkQuery:
        for id_ in query.inputs:
            node = self.by_id.get(id_)
            if node is None:
                raise NoQuery(f"it reads {id_.rpartition('.')[2]}, which is disabled")
            if node.kind == "snapshot":
                raise NoQuery(f"it reads the history of the snapshot {node.name}")
        return spark_query(
            query,
            self.project.dialect,
            [self.by_id[id_].name for id_ in query.inputs],
            [self.columns.get(id_) for id_ in query.inputs],
            event_time,
        )

    def _keeps_lines(self, node: Node) -> bool:
        """Whether lines of the rendered text are those of the file."""
        try:
            text = DbtFiles(self.folder).text(node.place.file)
        except ProjectError:
            return False
        return "{%" not in text and _MULTILINE.search(text) is None

    def _with_own_inputs(self, query: Query) -> Query:
        return Query(query.sql, tuple(self._dataset_of(id_) for id_ in query.inputs), query.notes)

    def _dataset_of(self, id_: str) -> str:
        """The table that is a dataset for one that is none; a snapshot has other columns."""
        node = self.by_id.get(id_)
        is_history = node is not None and node.kind == "snapshot"
        return id_ if is_history else self.same.get(id_, id_)

    def _transform(self, query: Query, found: SparkQuery) -> dict[str, Any]:
        inputs = [
            {"datasetRef": self.names[id_], "alias": alias}
            for id_, alias in zip(query.inputs, found.aliases, strict=True)
        ]
        return {
            "kind": "SetTransform",
            "inputs": inputs,
            "transform": {"kind": "Sql", "engine": "spark", "query": found.text + "\n"},
        }

    def _define(
        self, node: Node, folder: PurePosixPath, kind: str, events: Iterable[Mapping[str, Any]]
    ) -> None:
        name = self.names[node.id]
        metadata = [*events]
        about = " ".join(node.description.split())
        if about or node.tags:
            info = {"description": about} if about else {}
            tags = {"keywords": [*node.tags]} if node.tags else {}
            metadata.append({"kind": "SetInfo", **info, **tags})
        if any(column.description for column in node.columns):
            items = [{"path": "README.md", "content": _readme(node)}]
            metadata.append(
                {"kind": "SetAttachments", "attachments": {"kind": "Embedded", "items": items}}
            )
        manifest = {
            "kind": "DatasetSnapshot",
            "version": 1,
            "content": {"name": name, "kind": kind, "metadata": metadata},
        }
        file = str(PurePosixPath("datasets") / folder / f"{name}.yaml")
        head = schema_comment(self.target, self.target / file)
        self.texts[file] = f"{head}# From dbt: {node.place.file}\n{_yaml(manifest)}"
        self.definitions[node.id] = file

    # --- What is about tables ---

    def _find(self) -> dict[tuple[str, ...], str]:
        """Ids by `ref` and `source`."""
        found: dict[tuple[str, ...], str] = {}
        for node in self.project.nodes:
            if node.kind == "source":
                found["source", node.group or "", node.name] = node.id
                continue
            found["ref", node.name] = found["ref", node.id.split(".")[1], node.name] = node.id
        return found

    def _settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = {"name": nearest([self.project.name])}
        if self.line_breaks:
            reads = dict.fromkeys(self.line_breaks, "read")
            settings["ingest"] = {"quotedLineBreaks": reads}
        selectors = dict(self._selectors())
        entries = [*self._checks()]
        ages = [
            {"match": [self.names[node.id].lower()], "maxAge": node.max_age}
            for node in self.project.nodes
            if node.id in self.definitions and node.max_age
        ]
        owners: dict[tuple[str, ...], list[str]] = {}
        for node in self.project.nodes:
            if node.id in self.definitions and node.owners:
                owners.setdefault(node.owners, []).append(self.names[node.id].lower())
        owned = [{"match": match, "owners": [*who]} for who, match in owners.items()]
        parts = (
            ("selectors", selectors),
            ("checks", entries),
            ("freshness", ages),
            ("owners", owned),
        )
        settings |= {key: value for key, value in parts if value}
        return settings

    def _selectors(self) -> Iterator[tuple[str, str]]:
        """A selection for each exposure: what it reads, and everything upstream."""
        for each in self.project.exposures:
            read = [self._dataset_of(id_) for id_ in each.reads]
            names = [self.names[id_] for id_ in read if id_ in self.definitions]
            if not names:
                why = Note("none of what it reads was moved", each.place)
                self._item("exposure", each.name, each.place, "not moved", notes=[why])
                continue
            name = nearest([each.name])
            owner = f"; its owner is {each.owner}" if each.owner else ""
            note = Note(f"a selection of what it reads: `--selector {name}`{owner}", each.place)
            self._item("exposure", each.name, each.place, "moved", "odfbuild.yaml", [note])
            yield name, " ".join(f"+{each}" for each in names)

    def _checks(self) -> Iterator[dict[str, Any]]:
        find = {
            path: (self.names[id_], [*self.columns.get(id_, {})])
            for path, of in self._find().items()
            if (id_ := self._dataset_of(of)) in self.definitions
        }
        by_table: dict[str, dict[str, dict[str, Any]]] = {}
        for node in self.project.nodes:
            for test in node.tests:
                of = f"{test.name} of {node.name}" + (f".{test.column}" if test.column else "")
                id_ = self._dataset_of(node.id)
                try:
                    if id_ not in self.definitions:
                        raise checks.NoCheck(f"{node.name} was not moved")
                    check = checks.check_of(test, [*self.columns[id_]], find)
                    self._wait(id_, check)
                except checks.NoCheck as error:
                    note = Note(str(error), test.place)
                    self._item("test", of, test.place, _no_check(id_, self), notes=[note])
                    continue
                entry = by_table.setdefault(id_, {}).setdefault(_severity(test), {})
                checks.add(entry, check)
                self._item("test", of, test.place, "moved", "odfbuild.yaml")
        for single in self.project.singular:
            try:
                id_, check = checks.check_of_singular(single)
                id_ = self._dataset_of(id_)
                if id_ not in self.by_id:
                    raise checks.NoCheck(f"{id_.rpartition('.')[2]} is disabled")
                if id_ not in self.definitions:
                    raise checks.NoCheck(f"{self.by_id[id_].name} was not moved")
            except checks.NoCheck as error:
                note = Note(str(error), single.place)
                self._item("test", single.name, single.place, "not moved", notes=[note])
                continue
            checks.add(by_table.setdefault(id_, {}).setdefault("error", {}), check)
            self._item("test", single.name, single.place, "moved", "odfbuild.yaml")
        for id_, severities in by_table.items():
            for severity, entry in severities.items():
                ordered = {key: entry[key] for key in _CHECK_KEYS if key in entry}
                level = {"severity": "warn"} if severity == "warn" else {}
                yield {"match": [self.names[id_].lower()], **ordered, **level}

    def _wait(self, id_: str, check: checks.Check) -> None:
        """A dataset waits for those that its checks refer to; raises `NoCheck` for a circle."""
        if check[0] != "relationships":
            return
        of = {name: each for each, name in self.names.items()}
        target = of[check[1][1]["to"]]
        left, seen = [target], {target}
        while left:
            for each in self.waits.get(left.pop(), ()):
                if each not in seen:
                    seen.add(each)
                    left.append(each)
        if target != id_ and id_ in seen:
            name = self.names[target]
            raise checks.NoCheck(f"'{name}' is built after it: check the same in '{name}'")
        self.waits.setdefault(id_, set()).add(target)

    def _unit_tests(self) -> None:
        find = {path: self._dataset_of(id_) for path, id_ in self._find().items()}
        files = DbtFiles(self.folder)
        fixtures = {Path(file).stem: files.text(file) for file in files.of("tests", ".csv")}
        found: dict[str, list[dict[str, Any]]] = {}
        for test in self.project.unit_tests:
            query = self.queries.get(test.model)
            try:
                if query is None:
                    raise checks.NoCheck("its model was not moved")
                made = checks.unit_test_of(
                    test, query, self.names, find, fixtures, self.columns, self.project.dialect
                )
            except checks.NoCheck as error:
                note = Note(str(error), test.place)
                self._item("unit test", test.name, test.place, "not moved", notes=[note])
                continue
            found.setdefault(test.model, []).append(made)
            file = _test_file(self.definitions[test.model])
            self._item("unit test", test.name, test.place, "moved", file)
        for id_, tests in found.items():
            content = {"dataset": self.names[id_], "tests": tests}
            text = _yaml({"kind": "UnitTests", "version": 1, "content": content})
            self.texts[_test_file(self.definitions[id_])] = text


def _yaml(data: Any) -> str:
    """Plain data in the form that `odfbuild fmt` gives to definitions."""
    return format_text("\n".join(lines_of(tree_of(data))) + "\n", "").after


def _test_file(definition: str) -> str:
    return f"{definition.removesuffix('.yaml')}.test.yaml"


def _no_check(id_: str, conversion: _Conversion) -> Status:
    return "by hand" if id_ in conversion.definitions else "not moved"


def _severity(test: GenericTest) -> str:
    return "warn" if test.severity == "warn" else "error"


def _loaded_by_seeds(nodes: Sequence[Node]) -> dict[str, str]:
    """Sources whose tables seeds of the project fill: same schema, same name."""
    seeds = {
        (str(node.schema or "").lower(), node.table.lower()): node.id
        for node in nodes
        if node.kind == "seed"
    }
    found = {}
    for node in nodes:
        of = seeds.get((str(node.schema or "").lower(), node.table.lower()))
        if node.kind == "source" and of is not None:
            found[node.id] = of
    return found


def _histories(nodes: Sequence[Node], loaded: Mapping[str, str]) -> dict[str, str]:
    """Snapshots of a whole seed or source, which their chain is a snapshot of, too."""
    kinds = {node.id: node.kind for node in nodes}
    found = {}
    for node in nodes:
        query = node.query
        if node.kind != "snapshot" or query is None or len(query.inputs) != 1:
            continue
        (of,) = query.inputs
        words = query.sql.lower().split()
        is_whole = words[:3] == ["select", "*", "from"] and len(words) == 4
        if is_whole and kinds.get(of) in ("seed", "source") and roots.key_of(node):
            found[node.id] = loaded.get(of, of)
    return found


def _in_order(nodes: Sequence[Node]) -> list[Node]:
    """Every table after what it reads; those of a circle, which dbt refuses, at the end."""
    left = {node.id: node for node in nodes}
    known = {*left}
    ordered: list[Node] = []
    while left:
        ready = [
            node
            for node in left.values()
            if node.query is None
            or not any(id_ in left for id_ in node.query.inputs if id_ in known)
        ] or [*left.values()]
        for node in ready:
            del left[node.id]
        ordered += ready
    return ordered


def _readme(node: Node) -> str:
    """What the project says of the columns; their descriptions are Markdown."""
    about = [node.description] if node.description else []
    columns = [
        part
        for column in node.columns
        if column.description
        for part in (f"## {column.name}", column.description)
    ]
    return "\n\n".join([*about, *columns]) + "\n"
