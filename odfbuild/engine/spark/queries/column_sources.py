"""Follow the columns of a result through an analysed plan to the columns of its inputs.

The where-provenance of a query: of each column, which columns of which inputs its values are made
of, and which decide what records there are. Spark has given every column an identity, so nothing
has to be guessed from names. Of a node without a rule, every column is taken to be made of all that
stands below it: too much may be told, never too little. Source: Buneman, Khanna, Tan, "Why and
Where: A Characterization of Data Provenance".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from odfbuild.engine.spark.internals.catalyst import Catalyst
from odfbuild.engine.spark.internals.node import Node
from odfbuild.engine.spark.queries.hidden_columns import PREFIX
from odfbuild.sql.lineage import Influence, Lineage, Origins, as_influence

_NOTHING: Origins = frozenset()
_PASSED_ON = frozenset(
    {"Filter", "Sort", "SubqueryAlias", "View", "GlobalLimit", "LocalLimit", "Offset"}
)
_DISTINCT = frozenset({"Distinct", "Deduplicate"})
"""With the ones before, the nodes that give the columns of their child, in its order."""
_WITH_RULES = {"Project", "Aggregate", "Window", "Join", "LateralJoin", "Generate", "Expand"}
_WITH_RULES |= {"Union", "Except", "Intersect", "OneRowRelation", "LocalRelation", "Range"}
_KNOWN = _PASSED_ON | _DISTINCT | _WITH_RULES
_CUTS = frozenset({"GlobalLimit", "LocalLimit", "Offset"})
_HALF_JOINS = frozenset({"LeftSemi", "LeftAnti"})


class ColumnSources:
    """Follows columns in plans without named subqueries; `views` are aliases of inputs by view.

    `times` are their event times by alias: hidden columns of views are made of these.
    """

    def __init__(
        self, catalyst: Catalyst, views: Mapping[str, str], times: Mapping[str, str]
    ) -> None:
        self._catalyst = catalyst
        self._views = {name.lower(): alias for name, alias in views.items()}
        self._times = times
        self._known: dict[int, Origins] = {}
        self._records: set[Origins] = set()

    def of(self, plan: Node) -> Lineage:
        """The columns of a result, by name, and what decides its records."""
        self._follow(plan, cut=False)
        columns = {each.name: self._known.get(each.id, _NOTHING) for each in plan.output}
        return Lineage(columns, _NOTHING.union(*self._records))

    def _follow(self, plan: Node, *, cut: bool) -> None:
        """Learn of the columns that a plan gives; `cut`: only the first rows of it are taken."""
        alias = self._views.get(plan.view) if plan.kind == "View" else None
        if alias is not None:
            for column in plan.output:
                name = self._times[alias] if column.name.startswith(PREFIX) else column.name
                self._known[column.id] = frozenset([(alias, name, Influence.COPY)])
            return
        for child in plan.children:
            self._follow(child, cut=cut or plan.kind in _CUTS)
        if plan.kind in _PASSED_ON or plan.kind in _DISTINCT:
            self._hand_on(plan)
        match plan.kind:
            case "Project" | "Aggregate" | "Window":
                self._name(plan.columns)
            case "Join" | "LateralJoin":
                self._join(plan)
            case "Generate":
                self._generate(plan)
            case "Expand":
                for n, column in enumerate(plan.output):
                    self._known[column.id] = self._all([row[n] for row in plan.projections])
            case "Union" | "Except" | "Intersect":
                self._match(plan)
            case kind if kind not in _KNOWN:
                self._take_all(plan)
        self._decide_by(plan, cut=cut)

    def _decide_by(self, plan: Node, *, cut: bool) -> None:
        """Note what decides which rows a node gives."""
        match plan.kind:
            case "Filter":
                self._decide(Influence.FILTER, [plan.condition])
            case "Sort" if cut:
                self._decide(Influence.FILTER, plan.order)
            case "Aggregate":
                self._decide(Influence.GROUPING, plan.grouping)
            case "Except" | "Intersect":
                for child in plan.children:
                    self._decide(Influence.GROUPING, child.output)
            case kind if kind in _DISTINCT:
                self._decide(Influence.GROUPING, plan.output)

    # --- Nodes with rules of their own ---

    def _join(self, plan: Node) -> None:
        right = plan.right
        if plan.kind == "LateralJoin":
            self._follow(right.plan, cut=False)
        if plan.join_type in _HALF_JOINS and plan.condition is None:
            self._decide(Influence.JOIN, right.output)
        self._decide(Influence.JOIN, [plan.condition])

    def _generate(self, plan: Node) -> None:
        made = as_influence(Influence.DERIVATION, [self._of(plan.generator)])
        self._records.add(as_influence(Influence.JOIN, [made]))
        for column in plan.generated:
            self._known[column.id] = made

    def _match(self, plan: Node) -> None:
        """The columns of several plans, by their places."""
        sides = [child.output for child in plan.children]
        for column, *each in zip(plan.output, *sides, strict=True):
            self._known[column.id] = self._all(each)

    def _take_all(self, plan: Node) -> None:
        """Every column, and every row, may come from all that stands below."""
        below = [column for child in plan.children for column in child.output]
        all_below = as_influence(Influence.DERIVATION, [self._all(below)])
        self._records.add(as_influence(Influence.FILTER, [all_below]))
        for column in plan.output:
            self._known.setdefault(column.id, all_below)

    def _hand_on(self, plan: Node) -> None:
        for column, below in zip(plan.output, plan.child.output, strict=True):
            self._known[column.id] = self._known.get(below.id, _NOTHING)

    # --- Expressions ---

    def _name(self, columns: Sequence[Node]) -> None:
        for column in columns:
            inner = column.child if column.kind == "Alias" else column
            is_copy = inner.kind == "AttributeReference"
            found = self._of(inner)
            self._known[column.id] = (
                found if is_copy else as_influence(Influence.DERIVATION, [found])
            )

    def _decide(self, kind: Influence, expressions: Sequence[Node | None]) -> None:
        found = [self._of(each) for each in expressions if each is not None]
        self._records.add(as_influence(kind, found))

    def _all(self, expressions: Sequence[Node]) -> Origins:
        return _NOTHING.union(*map(self._of, expressions))

    def _of(self, expression: Node) -> Origins:
        """The columns that an expression is made of, those of its subqueries among them."""
        if expression.kind in ("AttributeReference", "OuterReference"):
            column = expression if expression.kind == "AttributeReference" else expression.referred
            return self._known.get(column.id, _NOTHING)
        found = self._all(expression.children)
        if self._catalyst.kind_of(expression).holds_plan:
            found |= self._of_subquery(expression.plan)
        return found

    def _of_subquery(self, plan: Node) -> Origins:
        """What its rows depend on, too: one of them is a value, or all of them decide."""
        outside, self._records = self._records, set()
        self._follow(plan, cut=False)
        found = self._all(plan.output).union(*self._records)
        self._records = outside
        return found
