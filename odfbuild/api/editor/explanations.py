"""What an editor shows of the thing under the pointer, as Markdown. Starts nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from odfbuild.api.editor.keys import key_at
from odfbuild.api.editor.subjects import (
    Dataset,
    Function,
    Key,
    NamedColumn,
    Subject,
    Variable,
    View,
    matrix_names,
)
from odfbuild.odf.model import SetInfo, SetTransform
from odfbuild.odf.schema.ddl import ddl_of
from odfbuild.project.model import Definition
from odfbuild.project.settings.describing import descriptions_of
from odfbuild.sql.columns.of_query import Column
from odfbuild.sql.function_list import AGGREGATES, ALLOWED, arity_of
from odfbuild.sql.functions import FORBIDDEN, TABLE_FUNCTIONS
from odfbuild.sql.lineage import Influence
from odfbuild.wording import count

_COLUMNS = 40
"""Columns of a dataset that are listed."""
_READERS = 10


def explain(view: View, subject: Subject) -> str | None:
    """What is known of it; `None`: nothing."""
    match subject:
        case Dataset():
            return dataset(view, subject.name)
        case NamedColumn():
            return column(view, subject)
        case Function():
            return function(subject.name)
        case Key():
            values = view.opened.kinds(subject.document)
            found = key_at(subject.kind, subject.path, values.get)
            return found.markdown if found is not None else None
        case Variable():
            return variable(view, subject.name)


def dataset(view: View, name: str) -> str | None:
    """Kind, description, columns, records, last change and readers of a dataset."""
    found = view.found
    definition = definition_of(view, name)
    chain = found.projections.get(name)
    if definition is None and chain is None:
        return f"**{name}**: its definition is wrong" if name.lower() in view.names else None
    parts = [f"**{name}**: {_kind(definition, view, name)}"]
    about = description_of(definition)
    if about:
        parts.append(about)
    if chain is not None:
        parts.append(
            f"{count(chain.records, 'record')}, last change {chain.system_time}"
            if chain.records
            else f"no records yet, last change {chain.system_time}"
        )
    else:
        parts.append("not built yet")
    columns = view.columns.relation(name)
    parts.append("Columns are known when it has data." if columns is None else _table(columns))
    readers = readers_of(view, name)
    if readers:
        parts.append(f"Read by {_some(readers, _READERS)}.")
    return "\n\n".join(parts)


def definition_of(view: View, name: str) -> Definition | None:
    """The definition of a dataset, if it is right."""
    return view.found.by_name.get(name.lower())


def description_of(definition: Definition | None) -> str | None:
    """What a definition says that its dataset is."""
    events = definition.snapshot.metadata if definition is not None else ()
    return next((each.description for each in events if isinstance(each, SetInfo)), None)


def readers_of(view: View, name: str) -> list[str]:
    """Names of the datasets that read one, sorted."""
    return sorted(each for each, inputs in view.found.graph.inputs.items() if name in inputs)


def _kind(definition: Definition | None, view: View, name: str) -> str:
    if definition is None:
        external = name in view.found.external()
        return "dataset of others" if external else "its definition was removed, its chain is there"
    kind = definition.snapshot.kind.name.lower()
    return f"{kind} dataset, defined in `{definition.location}`"


def _table(columns: Iterable[Column]) -> str:
    listed = list(columns)
    lines = ["| column | type |", "| --- | --- |"]
    lines += [f"| `{each.name}` | {type_of(each)} |" for each in listed[:_COLUMNS]]
    if len(listed) > _COLUMNS:
        lines.append(f"| and {len(listed) - _COLUMNS} more | |")
    return "\n".join(lines)


def type_of(column: Column) -> str:
    """The type of a column as definitions write it; empty where only the engine knows it."""
    return "" if column.type is None else ddl_of(column.type)


def _some(names: list[str], most: int) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def column(view: View, named: NamedColumn) -> str:
    """Type and description of a column, the dataset that has it, the columns it is made from."""
    kind = f": {named.type}" if named.type else ""
    parts = [f"**{named.name}**{kind}"]
    if named.dataset is None:
        parts.append(f"Column of `{named.relation}` in this query.")
    else:
        parts.append(f"Column of `{named.dataset}`.")
        about = descriptions_of(view.found.project.config.descriptions, named.dataset)
        if named.name.lower() in about:
            parts.append(about[named.name.lower()])
        sources = [
            f"`{name}.{origin}`" for name, origin in made_of(view, named.dataset, named.name)
        ]
        if sources:
            parts.append(f"Made from {', '.join(sources)}.")
    return "\n\n".join(parts)


def made_of(view: View, name: str, column: str) -> list[tuple[str, str]]:
    """Columns of inputs, each with its dataset, that a column of a derivative is made from."""
    from odfbuild.sql.columns.query_lineage import lineage_of

    definition = definition_of(view, name)
    events = definition.snapshot.metadata if definition is not None else ()
    event = next((each for each in events if isinstance(each, SetTransform)), None)
    if event is None:
        return []
    datasets = {(e.alias or str(e.dataset_ref)).lower(): str(e.dataset_ref) for e in event.inputs}
    names = {}
    for alias, dataset in datasets.items():
        columns = view.columns.relation(dataset)
        names[alias] = None if columns is None else tuple(each.name for each in columns)
    lineage = lineage_of(event.transform, names)
    origins = lineage.columns.get(column.lower(), ()) if lineage is not None else ()
    making = (Influence.COPY, Influence.DERIVATION)
    return sorted({(datasets[alias], each) for alias, each, kind in origins if kind in making})


def function(name: str) -> str | None:
    """What a query may do with a function."""
    if name in FORBIDDEN:
        return f"**{name}()** cannot be used in a query: it {FORBIDDEN[name]}."
    if name not in ALLOWED:
        return f"**{name}()** gives a table." if name in TABLE_FUNCTIONS else None
    kind = "aggregate" if name in AGGREGATES else "function"
    return (
        f"**{name}()**: {kind} of Spark SQL, takes {arity_of(name)}\n\n"
        f"[Spark's manual](https://spark.apache.org/docs/latest/api/sql/#{name})"
    )


def variable(view: View, name: str) -> str | None:
    """The values of a name in a template."""
    for entry in matrix_names(view.opened):
        if entry.path[-1] == name:
            values = ", ".join(_values(view, name)) or entry.plain
            return f"**{name}**: from the matrix of this file\n\nValues: {values}"
    variables = view.found.project.config.vars
    if name in variables:
        return f"**{name}** = `{variables[name]}`\n\nFrom `vars` in odfbuild.yaml."
    return None


def _values(view: View, name: str) -> Iterator[str]:
    outline = view.opened.defined_in.outline
    return (f"`{each.plain}`" for each in outline.below(0, ("matrix", name)))
