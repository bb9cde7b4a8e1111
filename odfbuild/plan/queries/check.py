"""Check queries by their text and the columns that they read: names, functions, aggregates, result.

Finds what Spark would refuse, in milliseconds and without it, with the codes that Spark's own check
has. Says nothing that is not certain: what is unknown, or takes a form that the parser does not
know, is left to the engine. Source: Open Data Fabric, "Validate Query".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from odfbuild.engine.contract import Vocabulary
from odfbuild.engine.spark.queries import functions as lists
from odfbuild.engine.spark.queries.function_list import AGGREGATES, ALLOWED, arity_of, takes
from odfbuild.errors import Location, QueryError
from odfbuild.odf.model import TransformSql
from odfbuild.odf.schema import arrow
from odfbuild.plan.columns.of_query import (
    Column,
    Columns,
    Reader,
    Sources,
    Tables,
    Within,
    columns_of_item,
    owner_of,
    type_of,
)
from odfbuild.plan.columns.parsed import SqlglotError, statements
from odfbuild.plan.queries.mistakes import PIPE, certain_mistake, mistake_in
from odfbuild.plan.queries.places import place_at, place_of, place_of_word
from odfbuild.wording import closest, did_you_mean

_SHOWN = 12
_UNIT_NAMES = "year quarter month week day dayofyear hour minute second millisecond microsecond"
_UNITS = frozenset(_UNIT_NAMES.split())
"""What functions of dates take for a unit and the parser takes for a column."""
_OF_UNITS = frozenset({"timestampadd", "timestampdiff"})
"""Functions that are part of Spark's grammar."""
_MADE = ("window", "session_window")
"""Functions in GROUP BY that make a column of their name."""
_ITEMS = "expressions"
_SEES_RESULT = frozenset({_ITEMS, "group", "having", "qualify", "order", "sort"})
"""The clauses in which columns of the result can be named."""
_CLOCK_NODES = (
    exp.CurrentDate | exp.CurrentTimestamp | exp.CurrentTime | exp.CurrentUser | exp.Localtimestamp
)
_OF_RECORDS = frozenset({"E0503", "E0505", "E0506"})
"""What only a query must not do whose result is committed."""
_ELSEWHERE = {
    "iif": "if",
    "isnull": "isnull",
    "getdate": "event_time",
    "strftime": "date_format",
    "generate_series": "sequence",
    "string_to_array": "split",
    "regexp_matches": "regexp_extract_all",
    "array_length": "size",
    "list_contains": "array_contains",
    "safe_divide": "try_divide",
    "safe_cast": "try_cast",
    "to_char": "date_format",
}
"""What other engines call functions, and Spark's name."""


def errors_of(
    transform: TransformSql,
    inputs: Mapping[str, Columns | None],
    vocab: Vocabulary | None,
    dataset: str = "",
    *,
    is_check: bool = False,
) -> tuple[QueryError, ...]:
    """All that is certainly wrong, each with its place in the text of its query.

    `inputs` are the columns of the inputs by alias (`None`: not known). `vocab` names the columns
    that a derivative must give and must not give; `None` for what prepares records of a source.
    With `is_check`, the query makes no records: it may read the clock, or depend on their order.
    """
    reader = _Checker(transform, inputs, vocab, dataset, is_check)
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
    ) -> None:
        super().__init__(inputs, meanings=False)
        for table in transform.temporal_tables or ():
            self.tables.setdefault(table.name.lower(), None)
        self.vocab = vocab
        self.dataset = dataset
        self.is_check = is_check
        self.errors: dict[tuple[str, str], QueryError] = {}

    def begin(self, number: int, text: str, *, is_last: bool) -> None:
        """The next query to be looked at."""
        self.number, self.text, self.is_last = number, text, is_last

    def tell(
        self, code: str, message: str, help: str, at: exp.Expression | Location | None
    ) -> None:
        """Something is wrong at a place or part of the query; `None`: at its beginning."""
        if self.is_check and code in _OF_RECORDS:
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
            except SqlglotError as error:
                mistake = mistake_in(self.text, _index(self.text, error))
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
            if isinstance(found[0], exp.DDL | exp.DML | exp.Command):
                what = type(found[0]).__name__.upper()
                help_ = "a query is a SELECT over its inputs"
                self.tell("E0502", f"{what} is not allowed in a query", help_, None)
            return None
        return found[0]

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

    def saw_union(self, node: exp.SetOperation, left: Columns, right: Columns) -> None:
        """See `Reader.saw_union`."""
        if len(left) != len(right):
            kind = type(node).__name__.upper()
            message = f"{kind} of {len(left)} columns with {len(right)}"
            self.tell("E0501", message, "give both sides the same columns", node.right)

    def saw_select(self, node: exp.Select, sources: Sources, within: Within) -> None:
        """See `Reader.saw_select`."""
        look = _Select(self, node, sources, within)
        look.parts()
        look.grouping()
        look.cut()
        if node.parent is None and self.is_last and not self.is_check:
            self._result(node, sources)

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
                    self.tell("E0511", message, "rename one of them with AS", item)
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
        if event_time is not None and _is_no_time(event_time):
            message = f"'{event_time.name}' is {event_time.type}, not a timestamp or date"
            self.tell("E0516", message, f"CAST({event_time.name} AS TIMESTAMP)", None)

    def _system_column(self, column: Column, item: exp.Expression) -> None:
        vocab = self.vocab
        if vocab is None or column.name.lower() not in map(
            str.lower, (vocab.offset, vocab.system_time)
        ):
            return
        self.tell(
            "E0514",
            f"the result has a column '{column.name}', which is a system column",
            f"leave it out, or rename it: {column.name} AS source_{column.name}",
            item,
        )


@dataclass(frozen=True, slots=True)
class _Select:
    """One SELECT, and what it reads."""

    checker: _Checker
    node: exp.Select
    sources: Sources
    within: Within

    def parts(self) -> None:
        """Look at all parts of its own; queries inside are followed in turn."""
        for clause, part in self._own():
            if isinstance(part, exp.Query):
                inner = (self.sources, *self.within.outer)
                self.checker.query(part, self.within.tables, inner)
            elif isinstance(part, exp.Column):
                self._column(part, clause)
            elif isinstance(part, exp.Star):
                self._left_out(part)
            elif isinstance(part, exp.Anonymous):
                self._call(part, clause)
            elif isinstance(part, _CLOCK_NODES):
                self._forbidden(part, part.sql_name().lower())
            elif isinstance(part, exp.Cast):
                self._cast(part)
            elif isinstance(part, exp.TableSample) and not self.checker.is_check:
                message = "TABLESAMPLE depends on how data lies on disk"
                self._tell("E0502", message, "filter by a column instead", part.parent or part)

    def _own(self) -> Iterator[tuple[str, exp.Expression]]:
        """Its parts, with the clause that they stand in, down to queries inside."""
        for clause, value in self.node.args.items():
            if clause == "with_":
                continue
            waiting = list(value) if isinstance(value, list) else [value]
            while waiting:
                part = waiting.pop()
                if not isinstance(part, exp.Expression):
                    continue
                is_query = isinstance(part, exp.Query)
                if not (is_query and isinstance(part.parent, exp.From | exp.Join | exp.Lateral)):
                    yield clause, part
                if not is_query:
                    waiting += list(part.iter_expressions())

    def _tell(self, code: str, message: str, help: str, node: exp.Expression | None) -> None:
        self.checker.tell(code, message, help, node)

    # --- Names ---

    def _column(self, node: exp.Column, clause: str) -> None:
        if isinstance(node.this, exp.Star):
            if not self._is_known(node.table.lower()):
                self._unknown_table(node)
        elif len(node.parts) == 1:
            if not _is_unit(node) and not isinstance(node.parent, exp.Star):
                self._bare(node, node.name.lower(), clause)
        elif not self._is_visible(node.parts[0].name.lower(), clause, node):  # else of a struct
            self._qualified(node)

    def _bare(self, node: exp.Column, name: str, clause: str) -> None:
        if not self._is_visible(name, clause, node):
            self._unknown(node, clause)
        elif self._is_ambiguous(name) and (
            clause == "where" or (clause == _ITEMS and name not in self._aliases(node))
        ):
            self._ambiguous(node, name)

    def _qualified(self, node: exp.Column) -> None:
        columns = self._table(node.parts[0].name.lower())
        if len(node.parts) > 2 or columns is None:
            return
        if not isinstance(columns, tuple):
            self._unknown_table(node)
            return
        names = [each.name for each in columns]
        if node.name.lower() not in map(str.lower, names):
            message = f"'{node.table}' has no column '{node.name}'"
            self._tell("E0501", message, did_you_mean(node.name, names, _listed(names)), node.this)

    def _scopes(self) -> tuple[Sources, ...]:
        return (self.sources, *self.within.outer)

    def _is_visible(self, name: str, clause: str, node: exp.Expression | None = None) -> bool:
        """Whether a bare name may be a column here."""
        if any(scope.open or scope.having(name) for scope in self._scopes()):
            return True
        if clause in _SEES_RESULT and name in self._aliases(node if clause == _ITEMS else None):
            return True
        return name in _MADE and any(
            each.name.lower() in _MADE for each in self.node.find_all(exp.Anonymous)
        )

    def _aliases(self, before: exp.Expression | None = None) -> frozenset[str]:
        """Names that it gives to columns; `before`: only in entries before that of this part."""
        found: set[str] = set()
        for each in self.node.expressions:
            if before is not None and any(around is each for around in (before, *_up(before))):
                break
            if isinstance(each, exp.Alias):
                found.add(each.alias.lower())
            elif isinstance(each, exp.Aliases):
                found.update(inner.name.lower() for inner in each.expressions)
        return frozenset(found)

    def _is_known(self, table: str) -> bool:
        return self._table(table) is not _NO_TABLE or self._is_visible(table, _ITEMS)

    def _table(self, name: str) -> Columns | object | None:
        """The columns of a relation of this name; `_NO_TABLE`: there is none."""
        for scope in self._scopes():
            if name in scope.tables:
                return scope.tables[name]
        strange = any(not scope.listed for scope in self._scopes())
        return None if strange and "" in self.sources.tables else _NO_TABLE

    def _is_ambiguous(self, name: str) -> bool:
        return self.sources.listed and not self.sources.open and len(self.sources.having(name)) > 1

    def _ambiguous(self, node: exp.Column, name: str) -> None:
        tables = [table for table, _ in self.sources.having(name)]
        both = " and ".join(f"'{table}'" for table in tables[:2])
        help_ = f"say which: {tables[0]}.{node.name}"
        self._tell("E0501", f"both {both} have a column '{node.name}'", help_, node)

    def _unknown(self, node: exp.Column, clause: str) -> None:
        name = node.name
        if name.lower() in lists.FORBIDDEN and not node.this.quoted:
            self._forbidden(node, name.lower())
            return
        known = {
            each.name.lower(): each.name
            for columns in self.sources.tables.values()
            for each in columns or ()
        }
        help_ = did_you_mean(name, list(known.values()), _listed(list(known.values())))
        if clause not in _SEES_RESULT and name.lower() in self._aliases():
            help_ = f"{clause.upper()} cannot use result names: repeat the expression"
        elif self.node.args.get("from_") is None:
            help_ = "a query reads its inputs: FROM is missing"
        message = f"no input has a column '{name}'" if known else f"there is no column '{name}'"
        self._tell("E0501", message, help_, node)

    def _unknown_table(self, node: exp.Column) -> None:
        names = list(self.sources.tables)
        table = node.parts[0].name
        help_ = did_you_mean(table, names, f"there are: {', '.join(names)}")
        self._tell("E0501", f"'{table}' is neither a table nor a column of this query", help_, node)

    def _left_out(self, star: exp.Star) -> None:
        """Columns that `* EXCEPT (…)` names and nothing has."""
        if self.sources.open or self.within.outer:
            return
        for each in star.args.get("except_") or ():
            if not self.sources.having(each.name.lower()):
                known = [c.name for columns in self.sources.tables.values() for c in columns or ()]
                help_ = did_you_mean(each.name, known, _listed(known))
                self._tell("E0501", f"there is no column '{each.name}' to leave out", help_, each)

    # --- Functions ---

    def _call(self, node: exp.Anonymous, clause: str) -> None:
        name = node.name.lower()
        if name in lists.FORBIDDEN:
            self._forbidden(node, name)
        elif isinstance(node.parent, exp.Table):
            if name not in lists.TABLE_FUNCTIONS:
                message = f"the table function {name}() is not allowed"
                allowed = ", ".join(sorted(lists.TABLE_FUNCTIONS))
                self._tell("E0503", message, f"there are: {allowed}", node)
        elif name not in ALLOWED:
            if name not in lists.TABLE_FUNCTIONS | _OF_UNITS:
                self._no_function(node, name)
        elif not takes(name, _arguments(node)) and _counts(node):
            given = _arguments(node)
            message = f"{name}() takes {arity_of(name)}, not {given}"
            self._tell("E0501", message, _MANUAL, node)
        elif name in AGGREGATES and not _is_window(node):
            self._aggregate(node, AGGREGATES[name], clause)

    def _no_function(self, node: exp.Anonymous, name: str) -> None:
        meant = _ELSEWHERE.get(name) or closest(name, sorted(ALLOWED))
        help_ = f"did you mean {meant}()?" if meant else "docs/transforms.md lists them"
        self._tell("E0501", f"there is no function {name}() that a query may call", help_, node)

    def _forbidden(self, node: exp.Expression, name: str) -> None:
        why = lists.FORBIDDEN.get(name, "reads the clock")
        help_ = lists.CLOCK_HELP if "clock" in why else f"remove {name}()"
        self._tell("E0505", f"{name}() {why}", help_, node)

    def _cast(self, node: exp.Cast) -> None:
        kind = str(node.to.this.value) if isinstance(node.to.this, exp.DType) else ""
        value = node.this
        if (
            kind.startswith(("TIMESTAMP", "DATE"))
            and isinstance(value, exp.Literal)
            and value.is_string
            and lists.CLOCK_WORD.fullmatch(value.name)
        ):
            self._tell("E0505", f"'{value.name}' reads the clock", lists.CLOCK_HELP, node)

    def _aggregate(self, node: exp.Anonymous, kind: str, clause: str) -> None:
        name, argument = node.name, node.expressions[0] if node.expressions else None
        if clause in ("where", "group", "joins"):
            where = {"where": "WHERE", "group": "GROUP BY", "joins": "ON"}[clause]
            help_ = "filter groups with HAVING, or aggregate in a step before"
            self._tell("E0501", f"{where} cannot hold the aggregate {name}()", help_, node)
        if any(_is_aggregate(each) for each in _up(node)):
            help_ = "aggregate in a step before, or in a subquery"
            self._tell("E0501", f"{name}() stands inside of another aggregate", help_, node)
        inner = argument.sql("spark") if argument is not None else "x"
        if kind in lists.NUMERIC_AGGREGATES and argument is not None:
            self._sum(node, kind, argument, inner)
        elif kind in lists.FIXES and kind != "ListAgg" and not _is_sorted(node, kind):
            help_ = lists.FIXES[kind].format(x=inner, f=name)
            self._tell("E0506", f"{name}() depends on the order of rows", help_, node)
        elif kind not in (*lists.ORDER_FREE_AGGREGATES, *lists.NUMERIC_AGGREGATES, *lists.FIXES):
            help_ = "compute it from SUM, COUNT, MIN and MAX of integers or decimals"
            if kind not in _NOT_TOLD:
                self._tell("E0506", f"{name}() depends on the order of rows", help_, node)

    def _sum(self, node: exp.Anonymous, kind: str, argument: exp.Expression, inner: str) -> None:
        name = node.name
        found = _number(argument, self.sources)
        if found == "floating":
            self._tell(
                "E0506",
                f"{name}() of floating point numbers depends on the order of rows",
                f"sum decimals: CAST({name}(CAST({inner} AS DECIMAL(38, 12))) AS DOUBLE)",
                node,
            )
        elif found == "int64" and kind == "Average":
            self._tell(
                "E0506",
                f"{name}() of BIGINT adds them as floating point numbers, so that a sum beyond "
                "2^53 depends on the order of rows",
                f"divide the exact sum: SUM({inner}) / COUNT({inner})",
                node,
            )

    # --- Groups and order ---

    def grouping(self) -> None:
        """Columns that are neither in GROUP BY nor in an aggregate."""
        group = self.node.args.get("group")
        calls = [
            part
            for clause, part in self._own()
            if clause in ("expressions", "having") and _is_aggregate(part)
        ]
        if group is None and not calls:
            return
        keys = self._keys(group)
        if keys is None:
            return
        for item in self.node.expressions:
            for part in _outside_aggregates(item):
                if isinstance(part, exp.Column) and owner_of(part, self.sources) is not None:
                    names = {each.name.lower() for each in part.parts}
                    if names.isdisjoint(keys):
                        message = f"'{part.name}' is neither in GROUP BY nor in an aggregate"
                        help_ = f"add it to GROUP BY, or take max({part.sql('spark')})"
                        self._tell("E0501", message, help_, part)

    def _keys(self, group: exp.Group | None) -> frozenset[str] | None:
        """Names that stand in GROUP BY; `None`: they cannot be told."""
        if group is None:
            return frozenset()
        if group.args.get("all") or group.args.get("totals"):
            return None
        keys = _names_in(group)
        for each in group.expressions:
            if isinstance(each, exp.Literal):
                item = self._item(each)
                if item is None:
                    return None
                keys |= _names_in(item)
        for item in self.node.expressions:
            if isinstance(item, exp.Alias) and item.alias.lower() in keys:
                keys |= _names_in(item)
        return keys

    def _item(self, number: exp.Literal) -> exp.Expression | None:
        items = self.node.expressions
        if any(each.is_star for each in items) or not number.name.isdigit():
            return None
        if not 1 <= int(number.name) <= len(items):
            message = f"GROUP BY {number.name}: the result has {len(items)} columns"
            self._tell("E0501", message, "name the column", self.node.args["group"])
            return None
        found: exp.Expression = items[int(number.name) - 1]
        return found

    def cut(self) -> None:
        """LIMIT without ORDER BY keeps any of the rows."""
        clause = self.node.args.get("limit") or self.node.args.get("offset")
        if clause is None or self.node.args.get("order") is not None:
            return
        columns = [each for each in self.node.expressions if each.find(exp.Column)]
        if columns and not any(_is_aggregate(each) for each in self.node.find_all(exp.Anonymous)):
            named = ", ".join(each.alias_or_name for each in columns)
            message = "LIMIT and OFFSET keep any of the rows without ORDER BY"
            help_ = f"name every column that is used: ORDER BY {named}"
            self._tell("E0506", message, help_, clause)


_NO_TABLE = "there is no such relation"
_MANUAL = "https://spark.apache.org/docs/latest/api/sql/ lists its arguments"
_NOT_TOLD = frozenset({"GroupingID", "CollectUnion", "Measure"})
"""Of which only Spark knows what they stand for."""


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"there are {', '.join(names[:_SHOWN])}{more}" if names else "correct its name"


def _index(text: str, error: Exception) -> int:
    """Where in the text the parser stopped."""
    details = (getattr(error, "errors", None) or [{}])[0]
    line, column = details.get("line"), details.get("col")
    if not line or not column:
        return len(text)
    above = text.splitlines(keepends=True)[: line - 1]
    return sum(map(len, above)) + int(column) - 1


def _is_many(item: exp.Expression) -> bool:
    """Whether an entry of a SELECT may give several columns, or names of its own."""
    inner = item.unalias()
    return isinstance(inner, exp.Anonymous) and inner.name.lower() in lists.TABLE_FUNCTIONS


def _is_no_time(column: Column) -> bool:
    kind = column.type
    return kind is not None and kind.name not in ("timestamp", "date32", "date64")


def _is_unit(node: exp.Column) -> bool:
    return (
        len(node.parts) == 1
        and node.name.lower().removesuffix("s") in _UNITS
        and isinstance(node.parent, exp.Anonymous | exp.Func)
    )


def _arguments(node: exp.Anonymous) -> int:
    given: list[exp.Expression] = node.expressions
    if len(given) == 1 and isinstance(given[0], exp.Distinct):
        return len(given[0].expressions)
    return len(given)


def _counts(node: exp.Anonymous) -> bool:
    """Whether the number of arguments is what is written."""
    given = node.expressions
    strange = exp.Star | exp.Kwarg | exp.PropertyEQ | exp.Query
    first = given[0] if given else None
    is_of_unit = isinstance(first, exp.Column) and _is_unit(first)
    return not is_of_unit and not any(isinstance(each, strange) or each.is_star for each in given)


def _is_window(node: exp.Expression) -> bool:
    """Whether a call is computed over a window of rows."""
    around = node.parent
    while isinstance(around, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
        node, around = around, around.parent
    return isinstance(around, exp.Window) and around.this is node


def _is_aggregate(node: exp.Expression) -> bool:
    is_named = isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATES
    return is_named and not _is_window(node)


def _names_in(node: exp.Expression) -> frozenset[str]:
    """The names of all columns that a part holds."""
    columns = node.find_all(exp.Column)
    return frozenset(part.name.lower() for each in columns for part in each.parts)


def _up(node: exp.Expression) -> Iterator[exp.Expression]:
    """The parts around a part, within the same SELECT."""
    around = node.parent
    while around is not None and not isinstance(around, exp.Query):
        yield around
        around = around.parent


def _is_sorted(node: exp.Anonymous, kind: str) -> bool:
    """Whether what is collected is sorted at once."""
    around = node.parent
    while isinstance(around, exp.Filter | exp.Paren):
        around = around.parent
    return (
        kind in lists.COLLECTIONS
        and isinstance(around, exp.Anonymous | exp.Func)
        and (around.name or around.sql_name()).lower() in ("array_sort", "sort_array")
    )


def _outside_aggregates(item: exp.Expression) -> Iterator[exp.Expression]:
    waiting = [item]
    while waiting:
        part = waiting.pop()
        if isinstance(part, exp.Query | exp.Window | exp.AggFunc | exp.WithinGroup | exp.Filter):
            continue
        if isinstance(part, exp.Anonymous) and part.name.lower() in AGGREGATES:
            continue
        yield part
        if not isinstance(part, exp.Column):
            waiting += list(part.iter_expressions())


def _number(node: exp.Expression, sources: Sources) -> str | None:
    """`floating`, `int64`, or another type of a number; `None`: not known."""
    if isinstance(node, exp.Paren | exp.Neg | exp.Distinct):
        return _number(node.this or node.expressions[0], sources)
    if isinstance(node, exp.Literal):
        return None if node.is_string else "int32" if node.name.isdigit() else "decimal"
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div):
        sides = {_number(node.this, sources), _number(node.expression, sources)}
        if None in sides:
            return None
        if "floating" in sides:
            return "floating"
        whole = all(side is not None and side.startswith("int") for side in sides)
        return "floating" if isinstance(node, exp.Div) and whole else None
    kind = type_of(node, sources)
    if kind is None:
        return None
    if kind.name in arrow.FLOATS:
        return "floating"
    return kind.name if kind.name in (*arrow.INTEGERS, *arrow.DECIMALS) else None
