"""What checking a query found, as errors with places in its text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from odfbuild.engine.spark.internals.node import Node
from odfbuild.engine.spark.internals.status import Fault, said
from odfbuild.engine.spark.results.frames import can_be_committed
from odfbuild.engine.spark.results.local_rows import QUICK
from odfbuild.errors import Code, InDefinition, Location, QueryError
from odfbuild.sql.sql_words import words_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Step:
    """A query and the name under which later ones see its result (`None`: it is the result)."""

    alias: str | None
    sql: str


@dataclass(frozen=True, slots=True)
class Construct:
    """Something that no single record can answer, in people's words, with its place."""

    words: str
    location: Location

    def __str__(self) -> str:
        """The words with line and column in the text of its step."""
        return f"{self.words} at line {self.location.line}, column {self.location.column}"


@dataclass(slots=True)
class Report:
    """What was found: errors, what depends on the order of rows, what needs more than one record.

    `plan` and `result` are the analysed plan and lazy result of the last query when there are no
    errors.
    """

    errors: list[QueryError] = field(default_factory=list)
    order_bound: list[QueryError] = field(default_factory=list)
    not_row_wise: list[Construct] = field(default_factory=list)
    plan: Node | None = None
    result: DataFrame | None = None
    expressions: set[str] = field(default_factory=set)
    """Names of the classes of all expressions."""

    @property
    def quick(self) -> bool:
        """Whether what it computes of a record takes no longer than the record is long."""
        return self.row_wise and self.expressions <= QUICK

    @property
    def row_wise(self) -> bool:
        """Whether every record is handled alone, so that order and operations carry over."""
        return not self.not_row_wise


class Findings:
    """Puts findings about one step's text into a report."""

    def __init__(
        self, report: Report, dataset: str, step: int, sql: str, offsets: Mapping[str, str]
    ) -> None:
        self.report = report
        self.offsets = offsets
        """The column with the offsets of each input, by its name in lower case."""
        self.dataset = dataset
        self.step = step
        self.sql = sql
        self.comparators: set[tuple[int | None, int | None]] = set()
        """Where the query sorts arrays by a comparison of its own."""

    def error(self, node: Node, code: str, message: str, help: str | None = None) -> None:
        """The query is refused, at the place of `node`."""
        _add(self.report.errors, self._found(node, code, message, help))

    def order(self, node: Node, message: str, help: str) -> None:
        """The result depends on the order of rows, at the place of `node`."""
        _add(self.report.order_bound, self._found(node, Code.ORDER_MATTERS, message, help))

    def construct(self, node: Node, words: str) -> None:
        """Something there needs more than one record."""
        found = Construct(words, self.place(node))
        if found not in self.report.not_row_wise:
            self.report.not_row_wise.append(found)

    def place(self, node: Node) -> Location:
        """Where in the query a node comes from."""
        line, column = node.position
        text = node.text_in(self.sql)
        return locate(self.step, self.sql, line, column, len(text.splitlines()[0]) if text else 1)

    def _found(self, node: Node, code: str, message: str, help: str | None) -> QueryError:
        return QueryError(
            message, code=code, location=self.place(node), help=help, dataset=self.dataset
        )


def _add(errors: list[QueryError], error: QueryError) -> None:
    same = (error.message, str(error.location))
    if same not in [(each.message, str(each.location)) for each in errors]:
        errors.append(error)


def locate(step: int, sql: str, line: int | None, column: int | None, length: int = 1) -> Location:
    """A place in the query of a step, with its line."""
    lines = sql.splitlines()
    snippet = lines[line - 1] if line is not None and 0 < line <= len(lines) else None
    return InDefinition.query(step, line or 1, column or 1, snippet, length)


_CORRECT = "correct the query"
_HELP = {
    "AMBIGUOUS_REFERENCE": "write which input it comes from, as in `input.column`",
    "CANNOT_PARSE_DATATYPE": "write a type of Spark SQL, such as BIGINT or DECIMAL(18, 2)",
    "DATATYPE_MISMATCH": "cast an operand, as in CAST(x AS BIGINT)",
    "GROUP_BY_AGGREGATE": "aggregate in a step before, or filter groups with HAVING",
    "GROUP_BY_POS": "name the column",
    "INCOMPATIBLE_COLUMN_TYPE": "cast the column of one side",
    "INVALID_EXTRACT": "only a STRUCT has fields, and only an ARRAY or MAP has elements",
    "INVALID_WHERE_CONDITION": "filter groups with HAVING, or aggregate in a step before",
    "MISSING_GROUP_BY": "add GROUP BY with the columns that are not aggregated",
    "NESTED_AGGREGATE_FUNCTION": "aggregate in a step before, or in a subquery",
    "NUM_COLUMNS_MISMATCH": "give both sides the same columns",
    "NUM_TABLE_VALUE_ALIASES_MISMATCH": "give as many names as there are columns",
    "UNRESOLVED_ROUTINE": "docs/transforms.md lists the functions that a query may call",
    "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY": "write the subquery as a join",
    "WRONG_NUM_ARGS": "https://spark.apache.org/docs/latest/api/sql/ lists its arguments",
}
"""What corrects an error of Spark, by the beginning of its condition."""


def from_spark(error: Any, dataset: str, step: int, sql: str) -> QueryError:
    """What Spark says about a query, with its place and without stack traces."""
    text = said(error)
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
    proposal = str(parameters.get("proposal") or "").split(",")[0].strip()
    proposal = proposal.strip("`").replace("`.`", ".")
    help_ = f"did you mean '{proposal}'?" if proposal else None
    name = parameters.get("objectName")
    condition = str(error.getCondition() or "")
    if condition.startswith("UNRESOLVED_COLUMN") and name:
        message = f"there is no column {str(name).replace('`', chr(39))}"
    if condition.startswith("MISSING_AGGREGATION"):
        inner = str(parameters.get("expression") or "").strip('"')
        message = f"'{inner}' is neither in GROUP BY nor in an aggregate"
        help_ = f"add it to GROUP BY, or take max({inner})"  # any_value, as Spark says, is refused
    return QueryError(
        " ".join(message.split()).rstrip(".;"),
        code="E0501",
        location=locate(step, sql, line, column, length),
        help=help_ or next((h for c, h in _HELP.items() if condition.startswith(c)), _CORRECT),
        dataset=dataset,
    )


def place_at_run_time(error: Any, queries: Sequence[str]) -> Location | None:
    """Where in the queries the expression is that failed on a record, where Spark tells it."""
    contexts = error.getQueryContext() or [] if hasattr(error, "getQueryContext") else []
    found = re.search(r"== SQL .*\(line (\d+), position (\d+)\) ==", str(error))
    if not contexts or found is None:
        return _only_parser(queries)
    line, column = int(found.group(1)), int(found.group(2))
    fragment = contexts[0].fragment().partition("\n")[0]
    for step, sql in enumerate(queries):
        lines = sql.splitlines()
        if line <= len(lines) and lines[line - 1].startswith(fragment, column - 1):
            return locate(step, sql, line, column, len(fragment))
    return None


_PARSERS = frozenset(
    ("from_json", "from_csv", "from_xml", "parse_json", "to_timestamp", "to_date", "to_number")
)
"""Functions that read text, and whose errors Spark tells without their place."""


def _only_parser(queries: Sequence[str]) -> Location | None:
    """Where the queries read text, if they do so once."""
    found = [
        locate(step, sql, word.line, word.column, len(word.text))
        for step, sql in enumerate(queries)
        for word in words_of(sql)
        if word.text in _PARSERS
    ]
    return found[0] if len(found) == 1 else None


def from_fault(fault: Fault, dataset: str, step: int, sql: str) -> QueryError:
    """What Spark says about a query, where it does not say it as of a query."""
    text = re.sub(r"\s*SQLSTATE: \w+;?|^\[[\w.]+\]\s*", "", fault.text)
    return QueryError(
        text.rstrip(". "),
        code="E0501",
        location=locate(step, sql, None, None),
        help="correct the query",
        dataset=dataset,
    )


def unfit_columns(frame: DataFrame, dataset: str) -> list[QueryError]:
    """Columns of a result that cannot be committed: unfit types, names that are there twice."""
    errors = []
    seen: set[str] = set()
    for column in frame.schema.fields:
        if not can_be_committed(column.dataType):
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
                    code=Code.DUPLICATE_COLUMN,
                    dataset=dataset,
                    help="rename one of them with AS",
                )
            )
        seen.add(column.name.lower())
    return errors


def words(kind: str) -> str:
    """The name of a class as people say it."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind).lower()


def closest(word: str, names: Sequence[str]) -> str | None:
    """The one of `names` that `word` was probably meant to be."""
    close = get_close_matches(word, names, n=1)
    return close[0] if close else None
