"""Create a definition: read the data or the inputs, and write a valid definition.

Never overwrites a file, and writes nothing unless the project is valid with it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import PurePath

from odfbuild.api.authoring.new_database import database_wanted
from odfbuild.api.authoring.new_kafka import topic_wanted
from odfbuild.api.authoring.new_request import NewDatasetRequest, as_name, check_column, missing
from odfbuild.api.authoring.new_root import root_wanted
from odfbuild.api.authoring.scaffold import (
    KINDS,
    Derived,
    Input,
    Root,
    alias_of,
    database_text,
    derived_text,
    query_text,
    root_text,
    topic_text,
)
from odfbuild.errors import GraphError, ProjectError, together
from odfbuild.odf.identity import DatasetAlias, identifier_of, is_name, name_for
from odfbuild.plan.columns.known import KnownColumns
from odfbuild.plan.graph.build import build_graph
from odfbuild.project.definitions import definitions_in
from odfbuild.project.editor import schema_comment, write_definition
from odfbuild.project.model import Config, Definition, Project
from odfbuild.project.source import TEMPLATE_SUFFIX, Source, query_file_of, sources_of
from odfbuild.survey.definitions import Definitions
from odfbuild.values import Value
from odfbuild.wording import did_you_mean


class NewFile(Value):
    """A new file, relative to the root of the project, and the datasets that it defines.

    `warnings` say where a dataset is called otherwise than was asked for, and what else is needed
    before its data can be read. `query` is the text of `query_file` beside it, if it has one.
    """

    file: str
    text: str
    names: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    query_file: str | None = None
    query: str | None = None


def begin(wanted: NewDatasetRequest, found: Definitions) -> NewFile:
    """The file that defines what is wanted; raises what is wrong with the wish."""
    config = found.project.config
    if wanted.kind not in KINDS:
        raise _not_a_kind(wanted.kind)
    notes = []
    possible = name_for(wanted.name)
    if possible is not None:
        notes.append(_renamed(wanted.name, possible))
        wanted = replace(wanted, name=possible)
    _check_name(wanted.name, found.project.definitions)
    is_template = wanted.kind == "matrix"
    suffix = TEMPLATE_SUFFIX if is_template else ".yaml"
    path = config.datasets / f"{wanted.name}{suffix}"
    file = os.path.relpath(path, config.root)
    query_file = query_file_of(file)
    for each in (file, query_file):
        if each is not None and os.path.lexists(config.root / each):
            raise ProjectError(
                f"{each} is there already",
                code="E0114",
                dataset=wanted.name,
                help="choose another name, or edit that file",
            )
    schema = schema_comment(config.root, path)
    warnings: tuple[str, ...] = ()
    query: Source | None = None
    if wanted.kind in ("derivative", "matrix"):
        derived = derived_wanted(wanted, found)
        if wanted.sql_file and query_file is not None:
            query = Source(query_file, query_text(derived))
        text = derived_text(derived, schema, PurePath(query.file).name if query else None)
    elif wanted.sql_file:
        raise missing(
            f"a dataset of kind '{wanted.kind}' has no query",
            "leave --sql-file out, or create a derivative or a matrix",
        )
    elif wanted.kind == "database":
        text = database_text(database_wanted(wanted, config), schema)
    elif wanted.kind == "kafka":
        text = topic_text(topic_wanted(wanted, config), schema)
    else:
        root = root_wanted(wanted, config)
        text, warnings = root_text(root, schema), _warnings(root, config)
    names = _checked(text, file, query, found)
    begun = NewFile(file, text, names, (*notes, *warnings))
    return begun if query is None else replace(begun, query_file=query.file, query=query.text)


def write(begun: NewFile, config: Config) -> None:
    """Put the file there, and the schema that it names."""
    if begun.query_file is not None:
        write_definition(config.root, config.root / begun.query_file, begun.query or "")
    write_definition(config.root, config.root / begun.file, begun.text)


def _renamed(table: str, name: str) -> str:
    return (
        f"names of datasets have no `_`: '{table}' is called '{name}'; queries that read it can "
        f"say `FROM {identifier_of(name)}`"
    )


def _warnings(root: Root, config: Config) -> tuple[str, ...]:
    """What data needs that a definition cannot say."""
    has_breaks = root.sample is not None and root.sample.line_breaks
    if not has_breaks or config.ingest.reads_line_breaks(root.name):
        return ()
    return (
        f"quoted values of {root.sampled} have line breaks, which are refused unless odfbuild.yaml "
        f"says `ingest: {{quotedLineBreaks: {{{root.name}: read}}}}`",
    )


def _checked(text: str, file: str, query: Source | None, found: Definitions) -> tuple[str, ...]:
    """Names of what the new file defines; raises `Errors` where the project has no place for it."""
    config = found.project.config
    sources = sources_of(text, file, config, query)
    made = [definition for source in sources for definition in definitions_in(source)]
    project = Project(config=config, definitions=(*found.project.definitions, *made))
    build_graph(project, found.projections)
    return tuple(definition.name for definition in made)


def _check_name(name: str, definitions: Iterable[Definition]) -> None:
    try:
        DatasetAlias.parse(name)
    except ValueError:
        possible = as_name(name)
        raise ProjectError(
            f"'{name}' cannot be the name of a dataset",
            code="E0141",
            notes=("names are letters, digits, hyphens and dots",),
            help=f"for example '{possible}'" if possible else "for example 'sales.orders'",
        ) from None
    for each in definitions:
        if each.name.lower() == name.lower():
            raise GraphError(
                f"dataset '{each.name}' is defined already",
                code="E0201",
                location=each.location,
                dataset=each.name,
                help="choose another name, or edit that file",
            )


def _not_a_kind(kind: str) -> ProjectError:
    return ProjectError(
        f"there is no kind of dataset '{kind}'",
        code="E0140",
        help=did_you_mean(kind, KINDS, "`odfbuild new` lists the kinds"),
    )


# --- Derivatives ---


_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")


def derived_wanted(wanted: NewDatasetRequest, found: Definitions) -> Derived:
    """The derivative that is wanted, with the columns of its inputs; raises what is missing."""
    if not wanted.sources:
        raise missing(
            "a derivative needs the datasets that it reads",
            f"odfbuild new {wanted.kind} {wanted.name} INPUT",
        )
    known = KnownColumns(found.project.definitions, found.projections)
    inputs = _inputs(wanted.sources, found, known)
    if wanted.kind == "derivative":
        return Derived(name=wanted.name, inputs=inputs, description=wanted.description)
    over, values = _over(wanted, inputs)
    return Derived(
        name=wanted.name,
        inputs=inputs,
        over=over,
        values=values,
        numbers=all(map(_NUMBER.fullmatch, values))
        and not any(_is_text(known, each, over) for each in inputs),
        description=wanted.description,
    )


def _inputs(names: Iterable[str], found: Definitions, known: KnownColumns) -> tuple[Input, ...]:
    spelled = {name.lower(): name for name in (*found.graph.order, *found.projections)}
    inputs: list[Input] = []
    errors = []
    for folded, text in {name.lower(): name for name in names}.items():
        name = spelled.get(folded) or spelled.get(name_for(folded) or "")
        if name is None:
            errors.append(
                GraphError(
                    f"there is no dataset '{text}' to read",
                    code="E0202",
                    help=did_you_mean(
                        text,
                        spelled.values(),
                        "`odfbuild ls` lists them all; `odfbuild new` creates one",
                    ),
                )
            )
            continue
        alias = alias_of(name, [each.alias for each in inputs])
        inputs.append(Input(name, alias, known.vocabulary(name).event_time, known.names(name)))
    if errors:
        raise together(errors)
    return tuple(inputs)


def _over(wanted: NewDatasetRequest, inputs: Sequence[Input]) -> tuple[str, tuple[str, ...]]:
    over, _, listed = (wanted.over or "").partition("=")
    values = tuple(dict.fromkeys(value.strip() for value in listed.split(",") if value.strip()))
    if not over or not values:
        raise missing(
            "a matrix needs a column, and a value for each dataset",
            f"odfbuild new matrix {wanted.name} {' '.join(wanted.sources)} --over country=NO,PT",
        )
    if not over.isidentifier():
        raise ProjectError(
            f"'{over}' cannot be the name of a variable in a template",
            code="E0142",
            help="give the column a name of letters, digits and underscores first",
        )
    for each in inputs:
        if each.columns is not None:
            check_column(over, each.columns, "--over", each.name)
    for value in values:
        if not is_name(f"{wanted.name.rpartition('/')[2]}.{value.lower()}"):
            raise ProjectError(
                f"'{value}' cannot be part of the name of a dataset",
                code="E0141",
                help="names are letters, digits, hyphens and dots: "
                f"begin with '{as_name(value)}', then give the template two values (`include`)",
            )
    return over, values


def _is_text(known: KnownColumns, source: Input, column: str) -> bool:
    types = known.types(source.name) or {}
    return types.get(column) in ("string", "large_string", "string_view")
