"""Check queries by their text and the columns that they read: names, functions, aggregates, result.

Finds what Spark would refuse, in milliseconds and without it, with the codes that Spark's own check
has. Says nothing that is not certain, but for a text that the parser does not understand: that is
refused (E0524) until Spark has accepted it. Source: Open Data Fabric, "Validate Query".
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from sqlglot import exp

from odfbuild.errors import Code, Location, QueryError
from odfbuild.limits import QUERY_ERRORS
from odfbuild.odf.model import TransformSql
from odfbuild.odf.schema import arrow
from odfbuild.odf.schema.ddl import ddl_of
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.sql import functions as lists
from odfbuild.sql.check.calls import check_call, check_cast, refuse_forbidden
from odfbuild.sql.check.groups import check_groups, check_limit
from odfbuild.sql.check.mistakes import certain_mistake, mistake_in, not_understood
from odfbuild.sql.check.names import check_column, check_left_out
from odfbuild.sql.check.select import Select
from odfbuild.sql.check.ties import check_ties
from odfbuild.sql.columns.of_query import (
    Column,
    Columns,
    Reader,
    Sources,
    Tables,
    Within,
    columns_of_item,
)
from odfbuild.sql.parsed import PIPE, SqlglotError, TooMuch, statements
from odfbuild.sql.places import index_in, place_at, place_of, place_of_word
from odfbuild.sql.sql_words import words_of
from odfbuild.wording import did_you_mean

_CLOCK_NODES = (
    exp.CurrentDate | exp.CurrentTimestamp | exp.CurrentTime | exp.CurrentUser | exp.Localtimestamp
)
_STATEMENTS = (
    exp.DDL
    | exp.DML
    | exp.Command
    | exp.Drop
    | exp.Alter
    | exp.Set
    | exp.Use
    | exp.Describe
    | exp.Cache
    | exp.Uncache
    | exp.Refresh
    | exp.TruncateTable
    | exp.Analyze
    | exp.LoadData
)
_OF_RECORDS = frozenset({Code.FUNCTION_NOT_ALLOWED, Code.NOT_DETERMINISTIC, Code.ORDER_MATTERS})
"""What only a query must not do whose result is committed."""


def errors_of(
    transform: TransformSql,
    inputs: Mapping[str, Columns | None],
    vocab: Vocabulary | None,
    dataset: str = "",
    *,
    is_check: bool = False,
    accepted: Container[str] = (),
) -> tuple[QueryError, ...]:
    """All that is certainly wrong, each with its place in the text of its query.

    `inputs` are the columns of the inputs by alias (`None`: not known). `vocab` names the columns
    that a derivative must give and must not give; `None` for what prepares records of a source.
    With `is_check`, the query makes no records: it may read the clock, or depend on their order.
    Texts that Spark has `accepted` need not be understood here.
    """
    reader = _Checker(transform, inputs, vocab, dataset, is_check, accepted)
    steps = transform.queries or ()
    for number, step in enumerate(steps):
        reader.begin(number, step.query, is_last=number == len(steps) - 1)
        if step.alias is not None and step.alias.lower() in map(str.lower, inputs):
            message = f"step '{step.alias}' has the name of an input"
            reader.tell("E0504", message, "give it another alias", None)
        tree = reader.parse()
        if tree is not None:
            reader.step(tree, step.alias)
        elif step.alias is not None:
            reader.tables[step.alias.lower()] = None
    return tuple(reader.errors.values())


class _Checker(Reader):
    """Follows queries, and writes down what is wrong on the way."""

    def __init__(
        self,
        transform: TransformSql,
        inputs: Mapping[str, Columns | None],
        vocab: Vocabulary | None,
        dataset: str,
        is_check: bool,
        accepted: Container[str],
    ) -> None:
        super().__init__(inputs, meanings=False)
        for table in transform.temporal_tables or ():
            self.tables.setdefault(table.name.lower(), None)
        self.vocab = vocab
        self.dataset = dataset
        self.is_check = is_check
        self.accepted = accepted
        self.errors: dict[tuple[str, str], QueryError] = {}

    def begin(self, number: int, text: str, *, is_last: bool) -> None:
        """The next query to be looked at."""
        self.number, self.text, self.is_last = number, text, is_last

    def tell(
        self, code: str, message: str, help: str, at: exp.Expression | Location | None
    ) -> None:
        """Something is wrong at a place or part of the query; `None`: at its beginning."""
        if (self.is_check and code in _OF_RECORDS) or len(self.errors) >= QUERY_ERRORS:
            return
        if at is None:
            place = place_of_word(self.text, self.number)
        elif isinstance(at, Location):
            place = at
        else:
            place = place_of(at, self.text, self.number, at.sql("spark").lower().rstrip("()"))
        error = QueryError(message, code=code, location=place, help=help, dataset=self.dataset)
        self.errors.setdefault((message, str(place)), error)

    def parse(self) -> exp.Query | None:
        """The tree of the query; `None` when it has none, or only Spark can tell."""
        found: list[exp.Expression] = []
        mistake = certain_mistake(self.text)
        if mistake is None:
            try:
                found = statements(self.text)
            except TooMuch as error:
                help_ = "materialise a part of it as a dataset of its own"
                self.tell("E0523", f"the query is too complex: {error}", help_, None)
                return None
            except SqlglotError as error:
                if self.text in self.accepted:
                    return None
                index = _index(self.text, error)
                mistake = mistake_in(self.text, index)
                if mistake is None and not self.is_check:
                    mistake = not_understood(self.text, index)
            except RecursionError:
                return None
        if mistake is not None:
            place = place_at(self.text, self.number, mistake.start, mistake.length)
            self.tell(mistake.code, mistake.message, mistake.help, place)
        if not found or PIPE in self.text:
            return None
        if len(found) > 1:
            help_ = "write one SELECT; add more as steps of `queries`"
            place = place_of_word(self.text, self.number, after=";")
            self.tell("E0501", "a query must be a single statement", help_, place)
            return None
        if not isinstance(found[0], exp.Query):
            if isinstance(found[0], _STATEMENTS):
                what = type(found[0]).__name__.upper()
                help_ = "a query is a SELECT over its inputs"
                self.tell("E0502", f"{what} is not allowed in a query", help_, None)
            return None
        self._texts_like_columns()
        return found[0]

    def _texts_like_columns(self) -> None:
        """Texts in double quotes that are called like a column: in other databases, they are it."""
        if '"' not in self.text:
            return
        names = {each.name.lower() for columns in self.tables.values() for each in columns or ()}
        for word in words_of(self.text, texts=True):
            if word.text[0] == '"' and word.text[1:-1] in names:
                shown = self.text[word.start : word.end]
                self.tell(
                    "E0501",
                    f"{shown} is a text to Spark, and there is a column of that name",
                    f"put the column in backticks: `{shown[1:-1]}`; or the text in single quotes: "
                    f"'{shown[1:-1]}'",
                    place_at(self.text, self.number, word.start, word.end - word.start),
                )

    # --- What a reader tells ---

    def saw_table(self, node: exp.Table, name: str, tables: Tables) -> None:
        """See `Reader.saw_table`."""
        is_known = name.lower() in tables
        if is_known and len(node.parts) == 1:
            return
        if is_known:
            help_ = f"put it in backticks: `{name}`"
            self.tell(
                "E0504", f"'{name}' is {len(node.parts)} names to Spark, not one", help_, node
            )
            return
        help_ = did_you_mean(name, tables, f"its inputs are: {', '.join(self.tables)}")
        self.tell("E0504", f"'{name}' is not an input of this query", help_, node)

    def united(self, node: exp.SetOperation, left: Columns, right: Columns) -> Columns | None:
        """See `Reader.united`."""
        if len(left) != len(right):
            kind = type(node).__name__.upper()
            message = f"{kind} of {len(left)} columns with {len(right)}"
            self.tell("E0501", message, "give both sides the same columns", node.right)
        return super().united(node, left, right)

    def selected(self, node: exp.Select, sources: Sources, within: Within) -> Columns | None:
        """See `Reader.selected`."""
        select = Select(node, sources, within, self.tell)
        self._parts(select)
        check_groups(select)
        check_limit(select)
        if self.vocab is not None:
            check_ties(select, self.vocab.offset.lower())
        if node.parent is None and self.is_last and not self.is_check:
            self._result(node, sources)
        return super().selected(node, sources, within)

    def _parts(self, select: Select) -> None:
        """Look at all parts of its own; queries inside are followed in turn."""
        for clause, part in select.own():
            if isinstance(part, exp.Query):
                inner = (select.sources, *select.within.outer)
                self.query(part, select.within.tables, inner)
            elif isinstance(part, exp.Column):
                check_column(select, part, clause)
            elif isinstance(part, exp.Star):
                check_left_out(select, part)
            elif isinstance(part, exp.Anonymous):
                check_call(select, part, clause)
            elif isinstance(part, _CLOCK_NODES):
                refuse_forbidden(select, part, part.sql_name().lower())
            elif isinstance(part, exp.Cast):
                check_cast(select, part)
            elif isinstance(part, exp.TableSample) and not self.is_check:
                message = "TABLESAMPLE depends on how data lies on disk"
                self.tell("E0502", message, "filter by a column instead", part.parent or part)

    def _result(self, node: exp.Select, sources: Sources) -> None:
        """The columns that the last query gives."""
        named: dict[str, Column] = {}
        certain = True
        for item in node.expressions:
            columns = columns_of_item(item, sources)
            certain = certain and (columns is not None or not (item.is_star or _is_many(item)))
            for each in columns or ():
                if each.name.lower() in named:
                    message = f"the result has two columns called '{each.name}'"
                    self.tell(Code.DUPLICATE_COLUMN, message, "rename one of them with AS", item)
                self._system_column(each, item)
                named[each.name.lower()] = each
        vocab = self.vocab
        if vocab is None:
            return
        event_time = named.get(vocab.event_time.lower())
        if event_time is None and certain:
            self.tell(
                "E0515",
                f"the result has no column '{vocab.event_time}'",
                f"select {vocab.event_time}: every record needs the time at which its event "
                "happened",
                None,
            )
        kind = event_time.type if event_time is not None else None
        if event_time is not None and kind is not None and _is_no_time(kind):
            message = f"'{event_time.name}' is {ddl_of(kind)}, not a timestamp or date"
            self.tell("E0516", message, f"CAST({event_time.name} AS TIMESTAMP)", None)

    def _system_column(self, column: Column, item: exp.Expression) -> None:
        vocab = self.vocab
        if vocab is None or column.name.lower() not in map(
            str.lower, (vocab.offset, vocab.system_time)
        ):
            return
        system = f"{vocab.offset}, {vocab.operation_type}, {vocab.system_time}"
        self.tell(
            "E0514",
            f"the result has a column '{column.name}', which is a system column",
            f"list the columns, or leave those of the system out: * EXCEPT ({system})"
            if item.is_star
            else f"leave it out, or rename it: {column.name} AS source_{column.name}",
            item,
        )


def _index(text: str, error: Exception) -> int:
    """Where in the text the parser stopped."""
    details = (getattr(error, "errors", None) or [{}])[0]
    return index_in(text, details.get("line"), details.get("col"))


def _is_many(item: exp.Expression) -> bool:
    """Whether an entry of a SELECT may give several columns, or names of its own."""
    inner = item.unalias()
    return isinstance(inner, exp.Anonymous) and inner.name.lower() in lists.TABLE_FUNCTIONS


def _is_no_time(kind: arrow.Type) -> bool:
    return kind.name not in ("timestamp", "date32", "date64")
