"""Read a dbt project from `target/manifest.json`, which dbt writes when it parses or compiles.

It has what dbt resolved: settings, packages, and the compiled text of queries. Compiled text is
used where it holds for an empty warehouse; else the text of the model is rendered here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from odfbuild.errors import Location, ProjectError
from odfbuild.exchange.dbt.files import DbtFiles
from odfbuild.exchange.dbt.model import (
    OTHERS,
    DbtProject,
    Exposure,
    GenericTest,
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
    entries,
    external,
    listed,
    mapping,
    owner_of,
    owners_of,
    reference,
)
from odfbuild.exchange.dbt.rendering import Context, Macro, render
from odfbuild.exchange.dbt.spark_query import NoQuery, replaced_tables
from odfbuild.limits import RENDERED_BYTES
from odfbuild.store.files import TooLarge, read_bounded

MANIFEST = Path("target", "manifest.json")
_CALL = re.compile(r"(?:ref|source)\([^)]*\)")
_KINDS = ("model", "seed", "snapshot")


def read_manifest(
    folder: Path, data: Mapping[str, Any], dialect: str, variables: Mapping[str, Any]
) -> DbtProject:
    """The project that a manifest describes; `data` is what `load_manifest` gave."""
    return _Manifest(folder, data, dialect, variables).project()


def load_manifest(folder: Path) -> Mapping[str, Any] | None:
    """The manifest of the project in `folder`; `None` where there is none.

    Raises `ProjectError` E0182 for a file that no release of dbt from 1.4 on writes.
    """
    path = folder / MANIFEST
    if not path.is_file():
        return None
    try:
        data = json.loads(read_bounded(path, RENDERED_BYTES))
    except (OSError, TooLarge, ValueError, RecursionError) as error:
        raise unfit_manifest(folder, str(error)) from None
    if not isinstance(data, dict) or not all(
        isinstance(data.get(key), dict) for key in ("metadata", "nodes", "sources")
    ):
        raise unfit_manifest(folder, "it has no `metadata`, `nodes` and `sources`")
    return data


def adapter_of(data: Mapping[str, Any]) -> str | None:
    """The kind of database that dbt wrote the manifest for."""
    found = mapping(data.get("metadata")).get("adapter_type")
    return found if isinstance(found, str) else None


def unfit_manifest(folder: Path, why: str) -> ProjectError:
    """The error for a manifest that cannot be used."""
    return ProjectError(
        f"the manifest of dbt cannot be read: {why}",
        code="E0182",
        location=Location(str(folder / MANIFEST)),
        help="write it anew with `dbt compile`, or delete it: the project is then read from its "
        "sources",
    )


class _Manifest:
    def __init__(
        self,
        folder: Path,
        data: Mapping[str, Any],
        dialect: str,
        variables: Mapping[str, Any],
    ) -> None:
        self.data, self.dialect = data, dialect
        self.files = DbtFiles(folder)
        self.name = str(mapping(data["metadata"]).get("project_name"))
        self.nodes: dict[str, Mapping[str, Any]] = {
            id_: node
            for id_, node in {**data["nodes"], **data["sources"]}.items()
            if isinstance(node, dict)
        }
        self.groups = {str(each.get("name")): owner_of(each) or "" for each in self._all("groups")}
        own = mapping(self.files.settings.get("vars"))
        tables: dict[tuple[str, ...], str] = {}
        self.relations: dict[str, str] = {}
        for id_, node in self.nodes.items():
            kind, name = node.get("resource_type"), str(node.get("name"))
            if kind == "source":
                tables["source", str(node.get("source_name")), name] = id_
            elif kind in _KINDS:
                for path in (("ref", name), ("ref", str(node.get("package_name")), name)):
                    tables[path] = id_
            if kind in (*_KINDS, "source") and node.get("relation_name"):
                relation = str(node["relation_name"])
                for quote in '"`[]':
                    relation = relation.replace(quote, "")
                self.relations[relation.lower()] = id_
        self.context = Context(
            adapter=adapter_of(data) or "",
            macros={
                str(each.get("name")): Macro(
                    str(each.get("macro_sql")), Place(str(each.get("original_file_path")))
                )
                for each in self._all("macros")
                if each.get("package_name") == self.name
                and str(each.get("macro_sql")).lstrip().startswith(("{% macro", "{%- macro"))
            },
            variables={**own, **mapping(own.get(self.name)), **variables},
            tables=tables,
        )

    def _all(self, key: str) -> Iterator[Mapping[str, Any]]:
        yield from (each for each in mapping(self.data.get(key)).values() if isinstance(each, dict))

    def project(self) -> DbtProject:
        """All of it."""
        tests: dict[str, list[GenericTest]] = {}
        singular = []
        for node in self.nodes.values():
            if node.get("resource_type") != "test":
                continue
            if node.get("test_metadata"):
                tests.setdefault(self._tested(node), []).append(self._test(node))
            else:
                query, problem = self._query(node)
                singular.append(Singular(str(node["name"]), self._place(node), query, problem))
        nodes = [
            self._node(id_, node, tests.get(id_, []))
            for id_, node in self.nodes.items()
            if node.get("resource_type") in (*_KINDS, "source")
        ]
        return DbtProject(
            name=self.name,
            dialect=self.dialect,
            read_from=MANIFEST.as_posix(),
            nodes=tuple(sorted(nodes, key=lambda node: (node.kind, node.place.file, node.name))),
            singular=tuple(singular),
            unit_tests=tuple(self._unit_tests()),
            exposures=tuple(self._exposures()),
            others=tuple(self._others()),
        )

    def _place(self, node: Mapping[str, Any]) -> Place:
        return Place(str(node.get("original_file_path")))

    def _node(self, id_: str, node: Mapping[str, Any], tests: list[GenericTest]) -> Node:
        kind: Any = node["resource_type"]
        config = dict(mapping(node.get("config")))
        config["meta"] = {**mapping(node.get("meta")), **mapping(config.get("meta"))}
        if node.get("group") and not config.get("group"):
            config["group"] = node["group"]
        query, problem = (None, None) if kind in ("seed", "source") else self._query(node)
        source = {"meta": node.get("source_meta")}
        return Node(
            id=id_,
            kind=kind,
            name=str(node["name"]),
            table=str(node.get("identifier") or node.get("alias") or node["name"]),
            schema=str(node.get("schema")) if kind == "source" else config.get("schema"),
            group=node.get("source_name"),
            place=self._place(node),
            query=query,
            problem=problem,
            config=config,
            description=str(node.get("description") or "").strip(),
            columns=columns_of(node),
            tests=tuple(tests),
            tags=tuple(listed(config.get("tags") or node.get("tags"))),
            owners=owners_of(config, self.groups),
            location=external(node, source) if kind == "source" else None,
            max_age=age(node.get("freshness")) if kind == "source" else None,
        )

    def _query(self, node: Mapping[str, Any]) -> tuple[Query | None, Note | None]:
        """The compiled text where it holds for an empty warehouse, else the rendered one."""
        place = self._place(node)
        if node.get("language") == "python":
            return None, Note("it is a program in Python: write it as a query", place)
        raw = str(node.get("raw_code") or "")
        compiled = node.get("compiled_code")
        # Ephemeral models are datasets of their own here, and not parts of each query.
        asks_itself = "is_incremental" in raw or "this" in raw
        is_inlined = isinstance(compiled, str) and "__dbt__cte__" in compiled
        found, why = None, None
        if isinstance(compiled, str) and not asks_itself:
            try:
                found = replaced_tables(compiled, self.dialect, self.relations)
            except NoQuery as error:
                why = Note(error.why, place)
        read = [id_ for id_ in self._reads(node) if id_ in self.nodes]
        if found is not None and {*found.inputs} == {*read}:
            return found, None
        rendered = render(raw, place, self.context)
        if rendered.query is None and is_inlined and found is not None:
            return found, None
        return rendered.query, rendered.problem and (why or rendered.problem)

    def _reads(self, node: Mapping[str, Any]) -> list[str]:
        return listed(mapping(node.get("depends_on")).get("nodes"))

    def _tested(self, node: Mapping[str, Any]) -> str:
        """The id of the table that a test is about; dbt attaches tests of sources to none."""
        if node.get("attached_node"):
            return str(node["attached_node"])
        model = str(mapping(mapping(node["test_metadata"]).get("kwargs")).get("model"))
        found = _CALL.search(model)
        path = reference(found[0]) if found else None
        return self.context.tables.get(path, "") if path else ""

    def _test(self, node: Mapping[str, Any]) -> GenericTest:
        metadata, config = mapping(node["test_metadata"]), mapping(node.get("config"))
        arguments = dict(mapping(metadata.get("kwargs")))
        arguments.pop("model", None)
        column = arguments.pop("column_name", node.get("column_name"))
        if config.get("where"):
            arguments["where"] = config["where"]
        package = metadata.get("namespace")
        name = str(metadata.get("name"))
        return GenericTest(
            name=f"{package}.{name}" if package else name,
            column=column,
            arguments=arguments,
            severity=str(config.get("severity") or "error").lower(),
            place=self._place(node),
        )

    def _unit_tests(self) -> Iterator[UnitTest]:
        for each in self._all("unit_tests"):
            model = str(each.get("model"))
            yield UnitTest(
                name=str(each.get("name")),
                model=self.context.tables.get(("ref", model), model),
                given=tuple(entries(each.get("given"))),
                expect=mapping(each.get("expect")),
                overrides=mapping(each.get("overrides")),
                place=self._place(each),
            )

    def _exposures(self) -> Iterator[Exposure]:
        for each in self._all("exposures"):
            asked = listed(mapping(each.get("depends_on")).get("nodes"))
            reads = tuple(id_ for id_ in asked if id_ in self.nodes)
            yield Exposure(str(each.get("name")), self._place(each), reads, owner_of(each))

    def _others(self) -> Iterator[Other]:
        for key, kind in OTHERS.items():
            for each in self._all(key):
                yield Other(kind, str(each.get("name")), self._place(each))
        for node in self.nodes.values():
            if node.get("resource_type") in ("analysis", "operation"):
                kind = {"analysis": "analysis", "operation": "hook"}[node["resource_type"]]
                yield Other(kind, str(node.get("name")), self._place(node))
