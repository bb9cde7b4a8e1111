"""Read a dbt project from its own files, without dbt."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from odfbuild.exchange.dbt.files import DbtFiles
from odfbuild.exchange.dbt.model import (
    MARKER,
    OTHERS,
    DbtProject,
    Exposure,
    Node,
    Note,
    Other,
    Place,
    Query,
    Singular,
    UnitTest,
)
from odfbuild.exchange.dbt.properties import (
    age,
    columns_of,
    config_at,
    entries,
    external,
    listed,
    mapping,
    merged,
    owner_of,
    owners_of,
    reference,
    tests_of,
)
from odfbuild.exchange.dbt.rendering import Context, macros_in, render, render_value

_SNAPSHOT = re.compile(
    r"\{%-?\s*snapshot\s+(\w+)\s*-?%\}(.*?)\{%-?\s*endsnapshot\s*-?%\}", re.DOTALL
)
_DOC = re.compile(r"\{%-?\s*docs\s+(\w+)\s*-?%\}(.*?)\{%-?\s*enddocs\s*-?%\}", re.DOTALL)
_DOC_OF = re.compile(r"""\{\{\s*doc\(\s*(?:['"]\w+['"]\s*,\s*)?['"](\w+)['"]\s*\)\s*\}\}""")


def read_sources(
    folder: Path, adapter: str, dialect: str, variables: Mapping[str, Any]
) -> DbtProject:
    """The project in `folder`; raises `ProjectError` for files that are no YAML."""
    return _Reader(DbtFiles(folder), adapter, dialect, variables).project()


class _Entry:
    """An entry of a YAML file, such as a model of `models`, with the place of its parts."""

    def __init__(self, files: DbtFiles, file: str, path: tuple[str | int, ...], data: Any) -> None:
        self.files, self.file, self.path = files, file, path
        self.data = mapping(data)

    def place(self, path: tuple[str | int, ...] = ()) -> Place:
        """Where a part of it stands."""
        return self.files.place(self.file, (*self.path, *path))


class _Reader:
    """Goes through the files once: settings, properties, tables, then queries."""

    def __init__(
        self, files: DbtFiles, adapter: str, dialect: str, variables: Mapping[str, Any]
    ) -> None:
        self.files, self.adapter, self.dialect = files, adapter, dialect
        self.name = str(files.settings.get("name"))
        own = mapping(files.settings.get("vars"))
        self.variables = {**own, **mapping(own.get(self.name)), **variables}
        self.entries: dict[str, list[_Entry]] = {}
        for file in files.properties():
            for key, value in mapping(files.document(file)).items():
                for number, each in enumerate(value if isinstance(value, list) else ()):
                    self.entries.setdefault(key, []).append(
                        _Entry(files, file, (key, number), each)
                    )
        self.docs = {
            found[1]: found[2].strip()
            for file in files.of("models", ".md")
            for found in _DOC.finditer(files.text(file))
        }
        self.groups = {
            str(each.data.get("name")): owner_of(each.data) or ""
            for each in self.entries.get("groups", ())
        }
        self.macros = {
            name: macro
            for file in files.of("macros", ".sql")
            for name, macro in macros_in(files.text(file), file).items()
        }

    def project(self) -> DbtProject:
        """All of it."""
        nodes = [*self._sources(), *self._seeds(), *self._models(), *self._snapshots()]
        tables: dict[tuple[str, ...], str] = {}
        for node in nodes:
            if node.kind == "source":
                tables["source", node.group or "", node.name] = node.id
            else:
                tables["ref", node.name] = tables["ref", self.name, node.name] = node.id
        self.context = Context(
            adapter=self.adapter, macros=self.macros, variables=self.variables, tables=tables
        )
        found = [each for each in map(self._rendered, nodes) if self._is_enabled(each)]
        return DbtProject(
            name=self.name,
            dialect=self.dialect,
            read_from="its sources",
            nodes=tuple(found),
            singular=tuple(self._singular()),
            unit_tests=tuple(self._unit_tests()),
            exposures=tuple(self._exposures(tables)),
            others=tuple(self._others()),
        )

    # --- Tables ---

    def _node(self, kind: Any, name: str, place: Place, parts: tuple[str, ...]) -> Node:
        key = {"model": "models", "seed": "seeds", "snapshot": "snapshots"}[kind]
        entry = next(
            (e for e in self.entries.get(key, ()) if str(e.data.get("name")) == name), None
        )
        data = entry.data if entry else {}
        own = {k: data[k] for k in ("meta", "tags", "group") if k in data}
        settings = config_at(self.files.settings.get(key), (self.name, *parts))
        config = merged(settings, own, mapping(data.get("config")))
        return Node(
            id=f"{kind}.{self.name}.{name}",
            kind=kind,
            name=name,
            table=str(config.get("alias") or name),
            place=place,
            config=config,
            description=self._description(data),
            columns=self._described(data),
            tests=tuple(tests_of(data, entry.place)) if entry else (),
        )

    def _models(self) -> Iterator[Node]:
        for file in self.files.of("models", ".sql", ".py"):
            yield self._node("model", Path(file).stem, Place(file), self.files.parts(file))

    def _seeds(self) -> Iterator[Node]:
        for file in self.files.of("seeds", ".csv"):
            yield self._node("seed", Path(file).stem, Place(file), self.files.parts(file))

    def _snapshots(self) -> Iterator[Node]:
        for file in self.files.of("snapshots", ".sql"):
            text = self.files.text(file)
            for found in _SNAPSHOT.finditer(text):
                place = Place(file, text.count("\n", 0, found.start(2)) + 1)
                yield self._node(
                    "snapshot", found[1], place, (*self.files.parts(file)[:-1], found[1])
                )
        for entry in self.entries.get("snapshots", ()):
            if entry.data.get("relation"):
                name = str(entry.data.get("name"))
                yield self._node("snapshot", name, entry.place(), (name,))

    def _sources(self) -> Iterator[Node]:
        for source in self.entries.get("sources", ()):
            for number, table in enumerate(entries(source.data.get("tables"))):
                entry = _Entry(self.files, source.file, (*source.path, "tables", number), table)
                yield self._source(source.data, entry)

    def _source(self, source: Mapping[str, Any], entry: _Entry) -> Node:
        table, group = entry.data, str(source.get("name"))
        name = str(table.get("name"))
        own = [{k: each[k] for k in ("meta", "tags") if k in each} for each in (source, table)]
        config = merged(own[0], mapping(source.get("config")), own[1], mapping(table.get("config")))
        freshness = [
            mapping(each.get("config")).get("freshness", each.get("freshness"))
            for each in (source, table)
        ]
        return Node(
            id=f"source.{self.name}.{group}.{name}",
            kind="source",
            name=name,
            table=str(table.get("identifier") or name),
            schema=str(source.get("schema") or group),
            group=group,
            place=entry.place(),
            config=config,
            description=self._description(table),
            columns=self._described(table),
            tests=tuple(tests_of(table, entry.place)),
            tags=tuple(listed(config.get("tags"))),
            owners=owners_of(config, self.groups),
            location=external(table, source),
            max_age=age(freshness[1]) or age(freshness[0]),
        )

    def _rendered(self, node: Node) -> Node:
        """The node with its query, and with the settings that its text has."""
        config = {key: render_value(each, self.context) for key, each in node.config.items()}
        query, problem = None, None
        if node.place.file.endswith(".py"):
            problem = Note("it is a program in Python: write it as a query", node.place)
        elif node.kind in ("model", "snapshot"):
            relation = reference(self._relation(node))
            text, place = self._text(node)
            if relation is not None:
                found = self.context.tables.get(relation)
                query = Query(f"select * from {MARKER.format(0)}", (found,)) if found else None
            elif text is not None:
                rendered = render(text, place, self.context)
                query, problem = rendered.query, rendered.problem
                config = merged(config, rendered.config)
        schema = node.schema or (str(config["schema"]) if config.get("schema") else None)
        return replace(
            node,
            query=query,
            problem=problem,
            config=config,
            schema=schema,
            table=str(config.get("alias") or node.table),
            tags=tuple(listed(config.get("tags"))),
            owners=owners_of(config, self.groups),
        )

    def _relation(self, node: Node) -> Any:
        if node.kind != "snapshot":
            return None
        found = (
            e.data for e in self.entries.get("snapshots", ()) if e.data.get("name") == node.name
        )
        return mapping(next(found, {})).get("relation")

    def _text(self, node: Node) -> tuple[str | None, Place]:
        if not node.place.file.endswith(".sql"):
            return None, node.place
        text = self.files.text(node.place.file)
        if node.kind == "model":
            return text, node.place
        found = next((e for e in _SNAPSHOT.finditer(text) if e[1] == node.name), None)
        return (found[2] if found else None), node.place

    def _is_enabled(self, node: Node) -> bool:
        return node.config.get("enabled") not in (False, "false", "False")

    def _description(self, data: Mapping[str, Any]) -> str:
        text = str(data.get("description") or "")
        return _DOC_OF.sub(lambda found: self.docs.get(found[1], found[0]), text).strip()

    def _described(self, data: Mapping[str, Any]) -> Any:
        return tuple(
            replace(each, description=self._description({"description": each.description}))
            for each in columns_of(data)
        )

    # --- What is about tables ---

    def _singular(self) -> Iterator[Singular]:
        for file in self.files.of("tests", ".sql"):
            if "generic" in Path(file).parts:
                continue
            rendered = render(self.files.text(file), Place(file), self.context)
            yield Singular(Path(file).stem, Place(file), rendered.query, rendered.problem)

    def _unit_tests(self) -> Iterator[UnitTest]:
        for entry in self.entries.get("unit_tests", ()):
            data = entry.data
            model = str(data.get("model"))
            yield UnitTest(
                name=str(data.get("name")),
                model=self.context.tables.get(("ref", model), model),
                given=tuple(entries(data.get("given"))),
                expect=mapping(data.get("expect")),
                overrides=mapping(data.get("overrides")),
                place=entry.place(),
            )

    def _exposures(self, tables: Mapping[tuple[str, ...], str]) -> Iterator[Exposure]:
        for entry in self.entries.get("exposures", ()):
            asked = [reference(each) for each in listed(entry.data.get("depends_on"))]
            reads = tuple(tables[each] for each in asked if each is not None and each in tables)
            yield Exposure(str(entry.data.get("name")), entry.place(), reads, owner_of(entry.data))

    def _others(self) -> Iterator[Other]:
        for key, kind in OTHERS.items():
            for entry in self.entries.get(key, ()):
                yield Other(kind, str(entry.data.get("name")), entry.place())
        for file in self.files.of("analyses", ".sql"):
            yield Other("analysis", Path(file).stem, Place(file))
        for key in ("on-run-start", "on-run-end"):
            if self.files.settings.get(key):
                yield Other("hook", key, self.files.place("dbt_project.yml", (key,)))
