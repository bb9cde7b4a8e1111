"""Temporal joins: the version of a keyed record that was in force at the time of another record.

`temporalTables` of a transformation names inputs whose records are versions, by their primary key.
A query asks for the version at a time with `prices FOR SYSTEM_TIME AS OF t.event_time` or with
`LATERAL TABLE (prices(t.event_time))`; both are put in terms of a view of versions with the times
between which each was in force. Sources: Open Data Fabric, `TemporalTable`; SQL:2011.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from odfbuild.engine.spark.internals.catalyst import Catalyst
from odfbuild.engine.spark.queries.hidden_columns import PREFIX
from odfbuild.engine.spark.results.frames import quote
from odfbuild.errors import QueryError
from odfbuild.sql.sql_words import words_of
from odfbuild.sql.temporal_references import temporal_references

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from odfbuild.engine.contract import InputSlices
    from odfbuild.odf.model import TransformSql

_SINCE = PREFIX + "since"
_UNTIL = PREFIX + "until"
_VIEW = PREFIX + "versions_"
_AFTER_RELATIONS = """on using join inner left right full cross natural semi anti lateral where
    group having window order sort cluster distribute limit offset qualify union intersect except
    minus pivot unpivot tablesample"""
_BEHIND = frozenset(_AFTER_RELATIONS.split())
"""Words that may follow a relation and do not name it."""


@dataclass(frozen=True, slots=True)
class Versions:
    """A temporal table: the input whose records are versions, their key, and the view of them."""

    input: InputSlices
    key: tuple[str, ...]
    view: str


def versions_of(
    dataset: str, transform: TransformSql, inputs: Sequence[InputSlices]
) -> list[Versions]:
    """The temporal tables of a transformation; `QueryError` E0518 when one does not fit its input.

    No slice of `inputs` is read.
    """
    by_name = {each.alias.lower(): each for each in inputs}
    found = []
    for number, table in enumerate(transform.temporal_tables or ()):
        each = by_name.get(table.name.lower())
        if each is None:
            raise _unfit(
                dataset,
                f"temporalTables names '{table.name}', which is no input",
                f"its inputs are: {', '.join(each.alias for each in inputs)}",
            )
        columns = {column.lower() for column in each.schema.names}
        missing = [column for column in table.primary_key if column.lower() not in columns]
        if missing or not table.primary_key:
            what = f"column '{missing[0]}'" if missing else "primary key in temporalTables"
            help = "name the columns that tell what a record is a version of"
            raise _unfit(dataset, f"'{each.alias}' has no {what}", help)
        found.append(Versions(each, table.primary_key, f"{_VIEW}{number}"))
    return found


def views_of(transform: TransformSql) -> list[str]:
    """The names of the views of temporal tables."""
    return [f"{_VIEW}{number}" for number in range(len(transform.temporal_tables or ()))]


def _unfit(dataset: str, message: str, help: str) -> QueryError:
    return QueryError(message, code="E0518", dataset=dataset, help=help)


def make_view(spark: SparkSession, table: Versions) -> None:
    """Make the view of versions over the view of the input; of equal times the latest counts."""
    vocab = table.input.vocab
    time = quote(vocab.event_time)
    key = ", ".join(map(quote, table.key))
    following = f"OVER (PARTITION BY {key} ORDER BY {time}, {quote(vocab.offset)})"
    frame = spark.table(quote(table.input.alias)).selectExpr(
        "*", f"{time} AS {_SINCE}", f"LEAD({time}) {following} AS {_UNTIL}"
    )
    Catalyst(spark).show(frame, table.view)


def rewrite(sql: str, names: Sequence[str]) -> str:
    """`sql` with references to temporal tables, by name, put in terms of their views.

    What follows stays on its line. A name that no temporal table has is left to the parser. A
    reference without a name of its own keeps that of the table.
    """
    views = {name.lower(): f"{_VIEW}{number}" for number, name in enumerate(names)}
    pieces = []
    at = 0
    words = words_of(sql)
    for each in temporal_references(words, views):
        start, end, view = each.start, each.end, views[each.name]
        pieces += [sql[at:start], _as_of(view, " ".join(sql[each.time].split()))]
        following = next((word for word in words if word.start >= end), None)
        if following is None or not _is_name(following.text):
            pieces.append(f" AS {quote(names[list(views.values()).index(view)])}")
        at = end
    return "".join([*pieces, sql[at:]])


def _is_name(text: str) -> bool:
    """Whether a word behind a relation names it; `AS` does, before the name."""
    return text not in _BEHIND and (text[0] in "`_" or text[0].isalpha())


def _as_of(view: str, time: str) -> str:
    return (
        f"LATERAL (SELECT * EXCEPT ({_SINCE}, {_UNTIL}) FROM {view} WHERE {_SINCE} <= {time}"
        f" AND ({_UNTIL} IS NULL OR {time} < {_UNTIL}))"
    )
