"""Where an optimised plan reads the inputs of a step, and which parts of it the step changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from odfbuild.sql.increments.nodes import Node, Reader
from odfbuild.values import Value

KEEPS_LEFT = frozenset(
    {"Inner", "Cross", "LeftOuter", "LeftSemi", "LeftAnti", "LeftSingle", "ExistenceJoin"}
)
"""Joins whose rows come from one row of the left side each, also where nothing matches it."""
KEEPS_RIGHT = frozenset({"Inner", "Cross", "RightOuter"})
ROW_WISE = frozenset({"Project", "Filter", "Sort", "Generate", "Expand"})
"""What handles each row alone, besides joins with what does not change."""
_JOIN_IT = (
    "make the result of the subquery a dataset of its own, or compare it with a column of each "
    "record: `WHERE inner.key = outer.key`"
)
_CONSTANT = frozenset({"LocalRelation", "OneRowRelation", "Range"})


class Undivided(Exception):
    """A query does not fall into parts: why, at which `node` of the plan, and what helps."""

    def __init__(self, why: str, node: Node, help: str) -> None:
        super().__init__(why)
        self.node = node
        self.help = help


class Views(Value):
    """Aliases of inputs by the file that stands for each, `unchanged` ones, and system columns.

    `millis` are columns of times without microseconds.
    """

    aliases: Mapping[str, str]
    unchanged: frozenset[str]
    system: Mapping[str, frozenset[str]]
    millis: Mapping[str, frozenset[str]]


class PlanInputs:
    """Answers about a plan over `views`; `whole` are unchanged inputs that are read in full."""

    def __init__(self, reader: Reader, views: Views) -> None:
        self._reader = reader
        self._views = views
        self.whole: set[str] = set()

    def refuse_subqueries(self, plan: Node) -> None:
        """What a subquery in an expression gives may depend on all records."""
        for inner in self._reader.inner_plans(plan):
            if not self.is_static(inner):
                raise Undivided("a subquery takes all records into account", inner, _JOIN_IT)
            self.take_whole(inner)

    def input_of(self, plan: Node) -> str | None:
        """The input that a plan reads, if it is a reading."""
        files = None if plan.children else plan.files
        return self._views.aliases.get(Path(files.files[0]).name) if files and files.files else None

    def is_static(self, plan: Node) -> bool:
        """Whether a plan gives the same rows before and after the step."""
        for leaf in self._leaves(plan):
            alias = self.input_of(leaf)
            if alias not in self._views.unchanged and leaf.kind not in _CONSTANT:
                return False
        return True

    def take_whole(self, plan: Node) -> None:
        """Read all inputs of a plan that is static in full."""
        found = (self.input_of(leaf) for leaf in self._leaves(plan))
        self.whole.update(alias for alias in found if alias is not None)

    def _leaves(self, plan: Node) -> Iterator[Node]:
        """What a plan and its subqueries are made of."""
        if not plan.children:
            yield plan
        for each in (*self._reader.inner_plans(plan), *plan.children):
            yield from self._leaves(each)


def sides(join: Node) -> tuple[tuple[Node, Node, frozenset[str]], ...]:
    """Each side, the other one, and the joins that handle rows of the side alone if that stays."""
    return (join.left, join.right, KEEPS_LEFT), (join.right, join.left, KEEPS_RIGHT)


def made_of(columns: Sequence[Node], key: Node) -> Node | None:
    """What a column is made of."""
    found = next((each for each in columns if each.id == key.id), None)
    return found.child if found is not None and found.kind == "Alias" else found


def place_of(plan: Node, key: Node) -> int:
    """Which of the columns of a plan a column is."""
    return [each.id for each in plan.output].index(key.id)
