"""Which columns a table may name, and what they may be in each format. Pure, without PyArrow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from odfbuild.errors import Code, InSettings, TableError, together
from odfbuild.odf.schema import arrow
from odfbuild.odf.schema.arrow_form import read_schema
from odfbuild.odf.vocabulary import Vocabulary, vocabulary_of
from odfbuild.wording import did_you_mean

if TYPE_CHECKING:
    from odfbuild.odf.chain.projection import Projection
    from odfbuild.plan.columns.known import KnownColumns
    from odfbuild.project.tables import Table

_Types = Mapping[str, arrow.Type | None]

_KEYS = frozenset((*arrow.INTEGERS, *arrow.TEXTS, "bool", "date32", "date64", "timestamp"))
"""Types of partition columns, in every format: each value has one spelling."""


def shown_columns(table: Table, state: Projection) -> tuple[arrow.Field, ...]:
    """The columns of a table: those of the view of its dataset, which has columns at `state`."""
    assert state.schema is not None
    fields = read_schema(state.schema).fields
    if table.view == "history":
        return fields
    system = _system(vocabulary_of(state.vocab))
    return tuple(each for each in fields if each.name not in system)


def check_columns(table: Table, state: Projection) -> None:
    """Raise all that is wrong with the columns that a table names, with places in odfbuild.yaml."""
    errors = list(wrong_columns(table, state))
    if errors:
        raise together(errors)


def wrong_columns(table: Table, state: Projection) -> Iterator[TableError]:
    """All that is wrong with the columns that a table names."""
    return _wrong_columns(table, {each.name: each.type for each in shown_columns(table, state)})


def wrong_ahead(table: Table, known: KnownColumns, state: Projection | None) -> list[TableError]:
    """What is certainly wrong with the columns that a table names, once its dataset is as defined.

    Nothing where only data can tell which columns there will be; `state` is what is committed.
    """
    from odfbuild.plan.columns.evolution import committed_columns

    relation = known.relation(table.dataset)
    if relation is None:
        return []
    committed = () if state is None else (committed_columns(state) or ())
    vocab = known.vocabulary(table.dataset)
    hidden = () if table.view == "history" else _system(vocab)
    columns = {e.name: e.type for e in (*relation, *committed) if e.name not in hidden}
    folded = {name.lower() for name in columns}
    # Which letters of a name are large is the engine's to say.
    return [
        each
        for each in _wrong_columns(table, columns)
        if each.code != Code.NO_COLUMN_FOR_TABLE or _name_of(table, each).lower() not in folded
    ]


def _name_of(table: Table, error: TableError) -> str:
    """The column that an error is about."""
    assert isinstance(error.location, InSettings)
    *_, key, number = error.location.path
    return dict(_named(table))[str(key)][int(number)]


def _named(table: Table) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The columns that a table names, by the key in odfbuild.yaml."""
    return (
        ("partitionBy", table.partition_by),
        ("indices", table.indices),
        ("sort", table.sort),
    )


def _system(vocab: Vocabulary) -> tuple[str, ...]:
    return (vocab.offset, vocab.operation_type, vocab.system_time)


def _wrong_columns(table: Table, columns: _Types) -> Iterator[TableError]:
    """All that is wrong with what a table names of these columns (types: `None` if not known)."""
    for key, names in _named(table):
        for number, name in enumerate(names):
            error = _wrong(table, key, name, columns)
            if error is not None:
                place = InSettings.of(*table.says(key), number)
                yield error.changed(location=place, dataset=table.dataset)
    if columns.keys() <= set(table.partition_by):
        yield TableError(
            f"the table '{table.name}' is partitioned by all of its columns",
            code="E1306",
            location=InSettings.of(*table.says("partitionBy")),
            dataset=table.dataset,
            help="leave a column out of `partitionBy`: files have the others",
        )


def _wrong(table: Table, key: str, name: str, columns: _Types) -> TableError | None:
    if name not in columns:
        hidden = "" if table.view == "history" else "; `view: history` has the system columns, too"
        return TableError(
            f"'{table.dataset}' has no column '{name}' for `{key}` of the table '{table.name}'",
            code=Code.NO_COLUMN_FOR_TABLE,
            help=did_you_mean(name, list(columns), f"its columns are {', '.join(columns)}{hidden}"),
        )
    kind = columns[name]
    if kind is None:
        return None
    if key == "partitionBy" and kind.name not in _KEYS:
        return TableError(
            f"the column '{name}' of type {kind} cannot be in `partitionBy` of '{table.name}'",
            code="E1305",
            notes=("partitions are told apart by texts, integers, booleans, dates and times",),
            help="take another column, or add one to the dataset that has such values",
        )
    if kind.fields:
        return TableError(
            f"the column '{name}' of type {kind} cannot be in `{key}` of '{table.name}'",
            code="E1305",
            notes=("it has no single value to look up or to sort by",),
            help="take another column, or add one to the dataset with a part of it",
        )
    return None
