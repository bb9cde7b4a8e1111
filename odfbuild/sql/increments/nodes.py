"""What the rules ask of a plan and of its expressions, whoever made them.

Nodes are named as in Spark's optimised plans. Those of Spark are `engine.spark.internals.node`,
those of a text `text_nodes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol


class ReadFiles(Protocol):
    """What a relation over files reads."""

    @property
    def files(self) -> Sequence[str]:
        """Their names."""
        ...


class Node(Protocol):
    """A plan, an expression or a column. Each kind has some of these parts only."""

    @property
    def kind(self) -> str:
        """Its class, without a package."""
        ...

    @property
    def children(self) -> Sequence[Node]:
        """The nodes below it."""
        ...

    @property
    def child(self) -> Node:
        """The one node below it."""
        ...

    @property
    def left(self) -> Node:
        """The first of two."""
        ...

    @property
    def right(self) -> Node:
        """The second of two."""
        ...

    @property
    def name(self) -> str:
        """What a column is called."""
        ...

    @property
    def id(self) -> int:
        """The identity of a column, whatever it is called."""
        ...

    @property
    def full_type(self) -> str:
        """The type of the values, as in DDL."""
        ...

    @property
    def is_constant(self) -> bool:
        """Whether it is the same for all rows."""
        ...

    @property
    def is_distinct(self) -> bool:
        """Whether an aggregate counts equal values once."""
        ...

    @property
    def function(self) -> Node:
        """What an aggregate computes."""
        ...

    @property
    def function_name(self) -> str:
        """The name of a function in SQL."""
        ...

    @property
    def output(self) -> Sequence[Node]:
        """The columns that a plan gives."""
        ...

    @property
    def columns(self) -> Sequence[Node]:
        """The entries of a projection or an aggregation."""
        ...

    @property
    def grouping(self) -> Sequence[Node]:
        """What an aggregation groups by."""
        ...

    @property
    def partitions(self) -> Sequence[Node]:
        """What a window function is partitioned by."""
        ...

    @property
    def projections(self) -> Sequence[Sequence[Node]]:
        """The rows that are made of each row."""
        ...

    @property
    def condition(self) -> Node | None:
        """That of a join or a filter, if it has one."""
        ...

    @property
    def join_type(self) -> str:
        """Which kind of join it is: `Inner`, `LeftOuter` and so on."""
        ...

    @property
    def files(self) -> ReadFiles | None:
        """What a relation reads; `None` where it reads no files."""
        ...

    def means(self, other: Any) -> bool:
        """Whether two expressions have the same value in every row."""
        ...


class Reader(Protocol):
    """Answers about nodes that take more than the node."""

    def constant(self, expression: Any) -> str | None:
        """The value of an expression without columns as text; `None` when it has none."""
        ...

    def inner_plans(self, plan: Any) -> Iterator[Node]:
        """Plans of subqueries in the expressions of a plan."""
        ...

    def correlated_plans(self, plan: Any) -> Iterator[Any]:
        """The inner plans of a plan that refer to its own columns."""
        ...


def ids_of(columns: Sequence[Node]) -> frozenset[int]:
    """Identities of columns."""
    return frozenset(column.id for column in columns)
