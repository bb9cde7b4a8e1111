"""Check a transformation without data: allowed, deterministic, resolvable, row-wise or not.

Layers: the parsed plan (kinds of nodes, relations, functions, literals that read the clock), then
the analysed plan (clock, randomness, environment, order of rows). No query runs and no file is
opened. Source: Open Data Fabric, "Engine Contract" (determinism).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from odfbuild.engine.spark import functions as lists
from odfbuild.engine.spark.catalyst import Catalyst, Node, items, name_of, position_of, text_of
from odfbuild.errors import Location, QueryError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CLOCK_WORD = re.compile(r"\s*(now|today|tomorrow|yesterday)(\s+\S+)?\s*", re.I)
_QUOTED = re.compile(r"(['\"])(.*)\1\s*", re.S)
_UNFIT = ("void", "map", "variant", "interval", "calendar", "geometry", "geography")


@dataclass(frozen=True, slots=True)
class Step:
    """A query and the name under which later ones see its result (`None`: it is the result)."""

    alias: str | None
    sql: str


@dataclass(slots=True)
class Report:
    """What was found: errors, and where the queries are not row-wise or depend on order."""

    errors: list[QueryError]
    order_bound: list[QueryError]
    not_row_wise: list[QueryError]
    result: DataFrame | None = None

    @property
    def row_wise(self) -> bool:
        """Whether every record is handled alone, so that order and operations carry over."""
        return not self.not_row_wise


def check_steps(
    spark: SparkSession, dataset: str, steps: Sequence[Step], inputs: Sequence[str]
) -> Report:
    """Check queries in a session in which `inputs` are views; makes views of intermediate steps.

    `result` is the lazy result of the last query, or `None` when something is wrong.
    """
    return _Check(spark, dataset, inputs).run(steps)


class _Check:
    def __init__(self, spark: SparkSession, dataset: str, inputs: Sequence[str]) -> None:
        self.catalyst = Catalyst(spark)
        self.dataset = dataset
        self.known = {name.lower() for name in inputs}
        self.names = list(inputs)
        self.report = Report([], [], [])
        self.step = 0
        self.sql = ""

    def run(self, steps: Sequence[Step]) -> Report:
        frame = None
        for self.step, step in enumerate(steps):
            self.sql = step.sql
            frame = self._one(step)
            if frame is None:
                return self.report
            if step.alias is not None:
                frame.createOrReplaceTempView(step.alias)
                self.known.add(step.alias.lower())
                self.names.append(step.alias)
        self.report.result = frame
        return self.report

    def _one(self, step: Step) -> DataFrame | None:
        from pyspark.errors import PySparkException

        try:
            parsed = self.catalyst.parse(step.sql)
            self._parsed(parsed, frozenset())
            if self.report.errors:
                return None
            self._analysed(self.catalyst.analyse(parsed))
            if self.report.errors:
                return None
            return self.catalyst.frame(parsed)
        except PySparkException as error:
            self.report.errors.append(
                from_spark(error, self.dataset, self.step, self.sql, self.names)
            )
            return None

    # --- Parsed plan ---

    def _parsed(self, plan: Node, scope: frozenset[str]) -> None:
        kind = name_of(plan)
        if kind not in lists.PLANS:
            self._error(
                plan,
                "E0502",
                f"{_words(kind)} is not allowed in a query",
                "a query is a SELECT over its inputs",
            )
            return
        if kind == "UnresolvedWith":
            self._with(plan, scope)
            return
        if kind == "UnresolvedRelation":
            self._relation(plan, scope)
            return
        if kind == "UnresolvedTableValuedFunction":
            name = ".".join(items(plan.name())).lower()
            if name not in lists.TABLE_FUNCTIONS:
                self._error(plan, "E0503", f"the table function {name}() is not allowed")
            for argument in items(plan.functionArgs()):
                self._parsed_expression(argument, scope)
        for expression in items(plan.expressions()):
            self._parsed_expression(expression, scope)
        for child in items(plan.children()):
            self._parsed(child, scope)

    def _with(self, plan: Node, scope: frozenset[str]) -> None:
        for relation in items(plan.cteRelations()):
            name = str(relation._1()).lower()
            self._parsed(relation._2(), scope | {name} if plan.allowRecursion() else scope)
            scope = scope | {name}
        self._parsed(plan.child(), scope)

    def _relation(self, plan: Node, scope: frozenset[str]) -> None:
        parts = [str(part) for part in items(plan.multipartIdentifier())]
        name = parts[0].lower()
        if plan.isStreaming():
            self._error(plan, "E0502", "STREAM is not allowed in a query")
        elif len(parts) != 1 or name not in self.known | scope:
            close = _closest(parts[-1], self.names)
            self._error(
                plan,
                "E0504",
                f"'{'.'.join(parts)}' is not an input of this query",
                f"did you mean '{close}'?" if close else f"its inputs are: {', '.join(self.names)}",
            )

    def _parsed_expression(self, expression: Node, scope: frozenset[str]) -> None:
        kind = name_of(expression)
        if kind == "ExpressionWithUnresolvedIdentifier":
            self._error(expression, "E0502", "IDENTIFIER() is not allowed in a query")
        elif kind in ("NamedParameter", "PosParameter"):
            self._error(expression, "E0502", "parameter markers are not allowed in a query")
        elif kind == "Literal":
            self._literal(expression)
        elif kind in ("UnresolvedFunction", "UnresolvedGenerator"):
            self._function(expression, kind)
        inner = self.catalyst.subplan(expression)
        if inner is not None:
            self._parsed(inner, scope)
        for child in items(expression.children()):
            self._parsed_expression(child, scope)

    def _literal(self, expression: Node) -> None:
        # The parser turns TIMESTAMP 'now' into a constant; only its source text gives it away.
        if not str(expression.dataType().typeName()).startswith(("timestamp", "date")):
            return
        text = text_of(expression, self.sql)
        quoted = _QUOTED.search(text)
        if quoted and _CLOCK_WORD.fullmatch(quoted.group(2)):
            self._error(expression, "E0505", f"{text} reads the clock", _CLOCK_HELP)

    def _function(self, expression: Node, kind: str) -> None:
        if kind == "UnresolvedFunction":
            parts = [str(part) for part in items(expression.nameParts())]
        else:
            parts = [str(expression.name().funcName())]
        name = parts[-1].lower()
        if len(parts) > 1:
            self._error(expression, "E0503", f"write {parts[-1]}(), not {'.'.join(parts)}()")
        why = lists.FORBIDDEN.get(name)
        if why is not None:
            help_ = _CLOCK_HELP if "clock" in why else f"remove {name}()"
            self._error(expression, "E0505", f"{name}() {why}", help_)

    # --- Analysed plan ---

    def _analysed(self, plan: Node) -> None:
        kind = name_of(plan)
        if kind.startswith("View"):
            return  # an input or an earlier step, which is checked already
        children = list(items(plan.children()))
        if kind == "SubqueryAlias" and name_of(children[0]).startswith("View"):
            return
        if not children and kind not in lists.LEAVES:
            self._error(plan, "E0504", f"a query may not read {_words(kind)}")
        if kind not in lists.ROW_WISE:
            construct = lists.CONSTRUCTS.get(kind, _words(kind))
            self._note(self.report.not_row_wise, plan, "E0507", construct)
        if kind in ("GlobalLimit", "Offset"):
            self._order(plan, "LIMIT and OFFSET keep rows of an unspecified order")
        if kind == "Sample":
            self._error(plan, "E0505", "TABLESAMPLE depends on how data lies on disk")
        for expression in items(plan.expressions()):
            self._analysed_expression(expression)
        for child in children:
            self._analysed(child)
        for inner in self.catalyst.inner_plans(plan):
            self._analysed(inner)

    def _analysed_expression(self, expression: Node) -> None:
        kind = name_of(expression)
        if kind in lists.CLOCK_EXPRESSIONS:
            self._error(expression, "E0505", f"{expression.sql()} reads the clock", _CLOCK_HELP)
        elif kind in lists.ENVIRONMENT_EXPRESSIONS:
            self._error(expression, "E0505", f"{expression.sql()} depends on the environment")
        elif self.catalyst.is_random(expression):
            self._error(expression, "E0505", f"{expression.sql()} is not deterministic")
        elif kind == "Cast":
            self._cast(expression)
        elif kind == "AggregateExpression":
            self._aggregate(expression)
        elif kind == "WindowExpression":
            window = expression.windowFunction()
            if name_of(window) in lists.ORDER_BOUND_WINDOWS:
                self._order(
                    expression,
                    f"{window.prettyName()}() OVER is ambiguous where its ORDER BY has ties",
                )
        inner = self.catalyst.subplan(expression)
        if inner is not None:
            construct = "a subquery"
            self._note(self.report.not_row_wise, expression, "E0507", construct)
            self._analysed(inner)
        hidden = self.catalyst.replacement(expression)
        if hidden is not None:
            self._analysed_expression(hidden)
        for child in items(expression.children()):
            self._analysed_expression(child)

    def _cast(self, expression: Node) -> None:
        target = str(expression.dataType().typeName())
        source = expression.child()
        if not target.startswith(("timestamp", "date")) or not source.foldable():
            return
        if not str(source.dataType().typeName()).startswith("string"):
            return
        value = source.eval(None)
        if value is not None and _CLOCK_WORD.fullmatch(str(value.toString())):
            self._error(
                expression, "E0505", f"CAST of '{value.toString()}' reads the clock", _CLOCK_HELP
            )

    def _aggregate(self, expression: Node) -> None:
        function = expression.aggregateFunction()
        kind = name_of(function)
        types = [str(child.dataType().typeName()) for child in items(function.children())]
        if kind in lists.ORDER_FREE_AGGREGATES:
            return
        if kind in lists.NUMERIC_AGGREGATES and not {"float", "double"} & set(types):
            return
        if kind == "ListAgg" and not function.orderExpressions().isEmpty():
            return
        name = function.prettyName()
        if kind in lists.NUMERIC_AGGREGATES:
            self._order(
                expression,
                f"{name}() of floating point numbers depends on the order of rows",
                f"sum decimals: CAST({name}(CAST(x AS DECIMAL(38, 12))) AS DOUBLE)",
            )
        else:
            self._order(expression, f"{name}() depends on the order of rows")

    # --- Findings ---

    def _error(self, node: Node, code: str, message: str, help: str | None = None) -> None:
        error = self._found(node, code, message, help)
        same = (error.message, str(error.location))
        if same not in [(e.message, str(e.location)) for e in self.report.errors]:
            self.report.errors.append(error)

    def _order(self, node: Node, message: str, help: str | None = None) -> None:
        self.report.order_bound.append(
            self._found(node, "E0506", message, help or "use a form that no order can change")
        )

    def _note(self, notes: list[QueryError], node: Node, code: str, construct: str) -> None:
        notes.append(
            self._found(
                node,
                code,
                f"{construct} cannot be computed record by record",
                "this release transforms row by row: SELECT, WHERE, UNION ALL, explode",
            )
        )

    def _found(self, node: Node, code: str, message: str, help: str | None) -> QueryError:
        line, column = position_of(node)
        text = text_of(node, self.sql)
        place = locate(self.step, self.sql, line, column, len(text.splitlines()[0]) if text else 1)
        return QueryError(message, code=code, location=place, help=help, dataset=self.dataset)


_CLOCK_HELP = "use the event time or another column: a rerun must give the same records"


def locate(step: int, sql: str, line: int | None, column: int | None, length: int = 1) -> Location:
    """A place in the query of a step, with its line."""
    lines = sql.splitlines()
    snippet = lines[line - 1] if line is not None and 0 < line <= len(lines) else None
    return Location(f"queries[{step}]", line or 1, column or 1, snippet, max(1, length))


def from_spark(error: Any, dataset: str, step: int, sql: str, names: Sequence[str]) -> QueryError:
    """What Spark says about a query, with its place and without stack traces."""
    text = str(error).split("JVM stacktrace")[0].strip()
    line: int | None = None
    column: int | None = None
    length = 1
    found = re.search(r"line (\d+),? pos(?:ition)? (\d+)", text)
    if found:
        line, column = int(found.group(1)), int(found.group(2)) + 1
    contexts = error.getQueryContext() or []
    if contexts and contexts[0].fragment():
        length = len(contexts[0].fragment().splitlines()[0])
    parameters = error.getMessageParameters() or {}
    message = re.split(r"\n\s*\n|== SQL|;\n|\n'", text)[0]
    message = re.sub(r"\s*SQLSTATE: \w+;?|;? ?\(?line \d+, pos \d+\)?|^\[[\w.]+\]\s*", "", message)
    proposal = str(parameters.get("proposal") or "").split(",")[0].strip().strip("`")
    help_ = f"did you mean '{proposal}'?" if proposal else None
    name = parameters.get("objectName")
    condition = str(error.getCondition() or "")
    if condition.startswith("UNRESOLVED_COLUMN") and name:
        message = f"there is no column {str(name).replace('`', chr(39))}"
    return QueryError(
        " ".join(message.split()).rstrip(".;"),
        code="E0501",
        location=locate(step, sql, line, column, length),
        help=help_ or "correct the query",
        dataset=dataset,
    )


def unfit_columns(frame: DataFrame, dataset: str) -> list[QueryError]:
    """Columns of a result that cannot be committed: unfit types, names that are there twice."""
    errors = []
    seen: set[str] = set()
    for column in frame.schema.fields:
        if column.dataType.typeName().startswith(_UNFIT):
            errors.append(
                QueryError(
                    f"column '{column.name}' has the type {column.dataType.simpleString()}, "
                    "which a dataset cannot hold",
                    code="E0510",
                    dataset=dataset,
                    help="cast it to another type",
                )
            )
        if column.name.lower() in seen:
            errors.append(
                QueryError(
                    f"the result has two columns called '{column.name}'",
                    code="E0511",
                    dataset=dataset,
                    help="rename one of them with AS",
                )
            )
        seen.add(column.name.lower())
    return errors


def _words(kind: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind).lower()


def _closest(word: str, names: Sequence[str]) -> str | None:
    from difflib import get_close_matches

    close = get_close_matches(word, names, n=1)
    return close[0] if close else None
