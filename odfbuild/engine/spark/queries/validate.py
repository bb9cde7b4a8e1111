"""Check a transformation without data: allowed, resolvable, deterministic, row-wise or not.

The parsed plan is checked against lists of allowed parts before it is analysed: kinds of plan
nodes, relations, functions. Then `determinism` looks at the analysed plan. No query runs and no
file is opened. Source: Open Data Fabric, "Engine Contract".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from odfbuild.engine.spark.internals.catalyst import OUTLINED, Catalyst, Outlined, plan_of
from odfbuild.engine.spark.internals.node import Node
from odfbuild.engine.spark.internals.status import fault_of
from odfbuild.engine.spark.queries.determinism import Analysed
from odfbuild.engine.spark.queries.findings import (
    Findings,
    Report,
    Step,
    closest,
    from_fault,
    from_spark,
    words,
)
from odfbuild.engine.spark.queries.hidden_columns import PREFIX
from odfbuild.errors import Code
from odfbuild.sql import functions as lists
from odfbuild.sql.function_list import ALLOWED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from odfbuild.errors import QueryError

NO_OFFSETS: Mapping[str, str] = {}
_OF_TIME = ("timestamp", "date", "time")
"""How names of types begin."""
_LOOKED_AT = frozenset(
    {
        "ExpressionWithUnresolvedIdentifier",
        "NamedParameter",
        "PosParameter",
        "UnresolvedGenerator",
    }
)
"""Classes of expressions that the fence looks at, besides functions and literals."""
_QUOTED = re.compile(r"(['\"])(.*)\1\s*", re.S)


def check_steps(
    spark: SparkSession,
    dataset: str,
    steps: Sequence[Step],
    inputs: Sequence[str],
    offsets: Mapping[str, str] = NO_OFFSETS,
) -> Report:
    """Check queries in a session in which `inputs` are views; makes views of intermediate steps.

    `offsets` names the columns of `inputs` (in lower case) that number records. `result` is the
    lazy result of the last query, or `None` when something is wrong.
    """
    report = Report()
    catalyst = Catalyst(spark)
    names = list(inputs)
    for number, step in enumerate(steps):
        findings = Findings(report, dataset, number, step.sql, offsets)
        report.result = _one(catalyst, step, names, findings)
        if report.result is None or report.plan is None:
            break
        if step.alias is not None:
            if step.alias.lower() in (name.lower() for name in inputs):
                findings.error(
                    report.plan, "E0504", f"step '{step.alias}' has the name of an input"
                )
                break
            catalyst.show(report.result, step.alias)
            names.append(step.alias)
    return report


def screen_steps(
    spark: SparkSession, dataset: str, steps: Sequence[Step], inputs: Sequence[str]
) -> Sequence[QueryError]:
    """What is wrong with queries whatever columns their inputs will have; makes no views."""
    from pyspark.errors import PySparkException

    report = Report()
    catalyst = Catalyst(spark)
    names = list(inputs)
    for number, step in enumerate(steps):
        findings = Findings(report, dataset, number, step.sql, NO_OFFSETS)
        try:
            _Fence(catalyst, names, findings).plan(catalyst.parse(step.sql), frozenset())
        except PySparkException as error:
            report.errors.append(from_spark(error, dataset, number, step.sql))
        if step.alias is not None:
            names.append(step.alias)
    return report.errors


def result_of(spark: SparkSession, steps: Sequence[Step]) -> tuple[Node, DataFrame]:
    """Plan and lazy result of queries that were checked, over the views of this session."""
    catalyst = Catalyst(spark)
    for step in steps:
        frame = catalyst.frame(catalyst.parse(step.sql))
        if step.alias is not None:
            catalyst.show(frame, step.alias)
    return plan_of(frame), frame


def _one(
    catalyst: Catalyst, step: Step, names: Sequence[str], findings: Findings
) -> DataFrame | None:
    from pyspark.errors import PySparkException

    report = findings.report
    try:
        parsed = catalyst.parse(step.sql)
        fence = _Fence(catalyst, names, findings)
        if not fence.is_plain(parsed):
            fence.plan(parsed, frozenset())
        if report.errors:
            return None
        report.plan = catalyst.analyse(parsed)
        Analysed(catalyst, findings).check(report.plan)
        return None if report.errors else catalyst.frame(report.plan)
    except PySparkException as error:
        report.errors.append(from_spark(error, findings.dataset, findings.step, findings.sql))
        return None
    except Exception as error:
        # Some errors of a query reach Python as exceptions of Java.
        fault = fault_of(error)
        if fault is None or fault.condition is None:
            raise
        report.errors.append(from_fault(fault, findings.dataset, findings.step, findings.sql))
        return None


class _Fence:
    """What a parsed query may consist of. `names` are the relations it may read."""

    def __init__(self, catalyst: Catalyst, names: Sequence[str], findings: Findings) -> None:
        self.catalyst = catalyst
        self.names = [name for name in names if not name.startswith(PREFIX)]
        self.known = frozenset(name.lower() for name in names)
        self.findings = findings

    def is_plain(self, plan: Node) -> bool:
        """Whether nothing in a plan is forbidden; `False` also where that takes a closer look."""
        outline = self.catalyst.outline_of(plan)
        return outline is not None and all(map(self._is_harmless, outline))

    def _is_harmless(self, node: Outlined) -> bool:
        word = node.words.lower()
        if node.name == "UnresolvedRelation":
            # One part has no comma, unless it is part of a name.
            return not node.is_streaming and "," not in word and word in self.known
        if node.kind is None:
            return node.name in OUTLINED
        if node.name == "UnresolvedFunction":
            return word in ALLOWED and word not in lists.FORBIDDEN and word != "array_sort"
        if node.name == "Literal":
            return not node.type.startswith(_OF_TIME)
        return not node.kind.holds_plan and node.name not in _LOOKED_AT

    def plan(self, plan: Node, scope: frozenset[str]) -> None:
        """Hold a plan and all that is in it against the lists; `scope` are its CTEs."""
        kind = plan.kind
        if kind not in lists.PLANS:
            self.findings.error(
                plan,
                "E0502",
                f"{words(kind)} is not allowed in a query",
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
            self._table_function(plan, scope)
        for expression in plan.expressions:
            self._expression(expression, scope)
        for child in plan.children:
            self.plan(child, scope)

    def _with(self, plan: Node, scope: frozenset[str]) -> None:
        for name, query in plan.named_queries:
            self.plan(query, scope | {name.lower()} if plan.is_recursive else scope)
            scope = scope | {name.lower()}
        self.plan(plan.child, scope)

    def _relation(self, plan: Node, scope: frozenset[str]) -> None:
        parts = plan.name_parts
        name = parts[0].lower()
        if plan.is_streaming:
            self.findings.error(plan, "E0502", "STREAM is not allowed in a query")
        elif len(parts) != 1 or name not in self.known | scope:
            close = closest(parts[-1], self.names)
            self.findings.error(
                plan,
                "E0504",
                f"'{'.'.join(parts)}' is not an input of this query",
                f"did you mean '{close}'?" if close else f"its inputs are: {', '.join(self.names)}",
            )

    def _table_function(self, plan: Node, scope: frozenset[str]) -> None:
        name = ".".join(plan.name_parts).lower()
        if name not in lists.TABLE_FUNCTIONS:
            self.findings.error(
                plan, Code.FUNCTION_NOT_ALLOWED, f"the table function {name}() is not allowed"
            )
        for argument in plan.arguments:
            self._expression(argument, scope)

    def _expression(self, expression: Node, scope: frozenset[str]) -> None:
        kind = self.catalyst.kind_of(expression)
        if kind.name == "UnresolvedAttribute":
            return
        if kind.name == "ExpressionWithUnresolvedIdentifier":
            self.findings.error(expression, "E0502", "IDENTIFIER() is not allowed in a query")
        elif kind.name in ("NamedParameter", "PosParameter"):
            self.findings.error(expression, "E0502", "parameter markers are not allowed in a query")
        elif kind.name == "Literal":
            self._literal(expression)
        elif kind.name in ("UnresolvedFunction", "UnresolvedGenerator"):
            self._function(expression, expression.name_parts)
        if kind.holds_plan:
            self.plan(expression.plan, scope)
        for child in expression.children:
            self._expression(child, scope)

    def _literal(self, expression: Node) -> None:
        # The parser turns TIMESTAMP 'now' into a constant; only its source text gives it away.
        if not expression.type.startswith(_OF_TIME):
            return
        text = expression.text_in(self.findings.sql)
        quoted = _QUOTED.search(text)
        if quoted and lists.CLOCK_WORD.fullmatch(quoted.group(2)):
            self.findings.error(
                expression, Code.NOT_DETERMINISTIC, f"{text} reads the clock", lists.CLOCK_HELP
            )
        elif quoted is None or "\\" in quoted.group(2):
            why = f"{text or 'a time'} may read the clock: what it says cannot be seen"
            self.findings.error(
                expression, Code.NOT_DETERMINISTIC, why, "write date and time in digits"
            )

    def _function(self, expression: Node, parts: list[str]) -> None:
        name = parts[-1].lower()
        if len(parts) > 1:
            self.findings.error(
                expression,
                Code.FUNCTION_NOT_ALLOWED,
                f"write {parts[-1]}(), not {'.'.join(parts)}()",
            )
        if name == "array_sort" and len(expression.children) > 1:
            self.findings.comparators.add(expression.position)
        why = lists.FORBIDDEN.get(name)
        if why is not None:
            help_ = lists.CLOCK_HELP if "clock" in why else f"remove {name}()"
            self.findings.error(expression, Code.NOT_DETERMINISTIC, f"{name}() {why}", help_)
        elif name not in ALLOWED and name not in lists.TABLE_FUNCTIONS:
            close = closest(name, sorted(ALLOWED))
            self.findings.error(
                expression,
                "E0501",
                f"there is no function {name}() that a query may call",
                f"did you mean {close}()?" if close else "docs/transforms.md lists them",
            )
