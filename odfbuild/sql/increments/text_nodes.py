"""Nodes of a plan that is made of the text of a query, and the types of their values.

A type is that of Spark, as in DDL, or `None` where only the engine knows it. Whoever needs one that
is not known is told so (`Unknown`): nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from odfbuild.odf.schema import arrow

if TYPE_CHECKING:
    from sqlglot import exp


CORRELATED = "correlated"
ABOVE = "above"
"""Joins that stand below groups here, and above them in the query."""
"""Tells joins that stand for correlated subqueries from others."""


class Unknown(Exception):
    """A construct that is not followed; only the engine can tell."""


class Origin(NamedTuple):
    """The part of a query that a node was made of; `word` is what people look for there."""

    part: exp.Expression
    text: str
    step: int
    word: str


class Files(NamedTuple):
    """Stands for the files of an input."""

    files: tuple[str, ...]


@dataclass(eq=False, kw_only=True)
class TextNode:
    """See `nodes.Node`. `tag` tells nodes of one kind apart; `inner` are plans of subqueries."""

    kind: str
    children: Sequence[TextNode] = ()
    name: str = ""
    id: int = 0
    type: str | None = None
    tag: str = ""
    is_constant: bool = False
    is_distinct: bool = False
    output: Sequence[TextNode] = ()
    columns: Sequence[TextNode] = ()
    grouping: Sequence[TextNode] = ()
    partitions: Sequence[TextNode] = ()
    projections: Sequence[Sequence[TextNode]] = ()
    condition: TextNode | None = None
    join_type: str = ""
    files: Files | None = None
    inner: Sequence[TextNode] = ()
    origin: Origin | None = field(default=None, repr=False)

    @property
    def child(self) -> TextNode:
        """The first node below it."""
        return self.children[0]

    left = child

    @property
    def right(self) -> TextNode:
        """The second node below it."""
        return self.children[1]

    @property
    def function(self) -> TextNode:
        """An aggregate is what it computes, too."""
        return self

    @property
    def function_name(self) -> str:
        """The name of an aggregate in SQL."""
        return self.tag

    @property
    def full_type(self) -> str:
        """The type; raises `Unknown` where the text does not tell it."""
        if self.type is None:
            raise Unknown
        return self.type

    def means(self, other: Any) -> bool:
        """Whether both are the same expression over the same columns."""
        return isinstance(other, TextNode) and self._meaning() == other._meaning()

    def _meaning(self) -> tuple[object, ...]:
        if self.kind == "AttributeReference":
            return (self.kind, self.id)
        own = (self.kind, self.tag, self.is_distinct, self.type if self.kind == "Cast" else "")
        return (*own, *(each._meaning() for each in self.children))


class Texts:
    """See `nodes.Reader`."""

    def constant(self, expression: TextNode) -> str | None:
        """The text of a literal."""
        return expression.tag if expression.kind == "Literal" else None

    def inner_plans(self, plan: TextNode) -> Iterator[TextNode]:
        """Plans of subqueries in the expressions of a plan."""
        yield from plan.inner

    def correlated_plans(self, plan: TextNode) -> Iterator[TextNode]:
        """They are sides of joins."""
        if plan.kind == "Join" and plan.tag == CORRELATED:
            yield plan.right
        below = plan.child if plan.kind == "Aggregate" else None
        while below is not None and below.kind == "Join" and below.tag == ABOVE:
            yield below.right
            below = below.left


# --- Types ---

_SPARK = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "uint8": "smallint",
    "uint16": "int",
    "uint32": "bigint",
    "uint64": "decimal(20,0)",
    "float32": "float",
    "float64": "double",
    "bool": "boolean",
    "date32": "date",
    "timestamp": "timestamp",
    "struct": "struct<>",
    "map": "map<>",
    **dict.fromkeys(arrow.TEXTS, "string"),
    **dict.fromkeys(arrow.BYTES, "binary"),
    **dict.fromkeys(arrow.LISTS, "array<>"),
}
INTEGERS = ("tinyint", "smallint", "int", "bigint")


def type_in_spark(column: arrow.Field) -> str | None:
    """The type that Spark gives a committed column."""
    kind = column.type
    if column.is_uuid:
        return "string"
    if kind.name == "decimal128":
        return f"decimal({kind.precision},{kind.scale})"
    return _SPARK.get(kind.name)


def common_type(types: Sequence[str | None]) -> str | None:
    """The type that holds values of all these; `None` where that is not sure."""
    found = {each for each in types if each != "void"}
    if len(found) == 1:
        return found.pop()
    known = [each for each in found if each in INTEGERS]
    if len(known) == len(found) and known:
        return max(known, key=INTEGERS.index)
    return None


_RESULTS = {
    "string": "upper lower concat concat_ws trim ltrim rtrim substring substr regexp_replace "
    "replace lpad rpad left right initcap reverse md5 sha1 sha2 date_format translate split_part "
    "regexp_extract repeat ucase lcase format_string hex base64 chr",
    "int": "year month day hour minute second quarter dayofweek dayofmonth dayofyear weekofyear "
    "length char_length character_length datediff date_diff hash instr locate ascii size sign "
    "row_number rank dense_rank ntile weekday levenshtein",
    "bigint": "count count_if approx_count_distinct xxhash64 unix_timestamp unix_seconds "
    "unix_millis unix_micros regr_count bigint crc32",
    "date": "date to_date date_add date_sub last_day trunc make_date add_months next_day",
    "timestamp": "date_trunc timestamp timestamp_millis timestamp_seconds timestamp_micros",
    "boolean": "bool_and bool_or every some isnull isnotnull isnan startswith endswith contains "
    "rlike like ilike regexp_like exists array_contains regexp",
    "double": "avg mean sqrt exp ln log log10 log2 power pow stddev stddev_samp stddev_pop "
    "var_samp var_pop variance corr percent_rank cume_dist double",
    "struct<>": "named_struct struct window session_window",
    "array<string>": "split",
    "map<>": "map map_from_arrays str_to_map",
}
_TYPE_OF_CALL = {name: kind for kind, names in _RESULTS.items() for name in names.split()}
_OF_FIRST = frozenset(
    {"min", "max", "first", "last", "any_value", "first_value", "last_value", "bit_and", "bit_or"}
    | {"bit_xor", "lag", "lead", "nullif", "nth_value", "mode"}
)
_OF_ALL = frozenset(("coalesce", "nvl", "ifnull", "greatest", "least"))


def type_of_call(name: str, types: Sequence[str | None]) -> str | None:
    """The type of what a function gives for arguments of these types."""
    first = types[0] if types else None
    if name == "sum":
        if first in INTEGERS:
            return "bigint"
        return "decimal(38,38)" if (first or "").startswith("decimal") else None
    if name == "avg" and (first or "").startswith("decimal"):
        return "decimal(38,38)"
    if name in _OF_ALL:
        return common_type(types)
    if name in _OF_FIRST:
        return first
    if name in ("explode", "explode_outer") and (first or "").startswith("array<"):
        return (first or "")[6:-1] or None
    return _TYPE_OF_CALL.get(name)


_CONDITIONS = frozenset(
    {"And", "Or", "Not", "NEQ", "GT", "GTE", "LT", "LTE", "Is", "In", "Between", "Like", "ILike"}
    | {"RLike", "RegexpLike"}
)
_SUMS = frozenset(("Add", "Sub", "Mul", "Mod", "Neg"))


def type_of_part(kind: str, types: Sequence[str | None]) -> str | None:
    """The type of an operator, by what sqlglot calls it."""
    if kind in _CONDITIONS:
        return "boolean"
    if kind in ("DPipe", "Extract"):
        return "string" if kind == "DPipe" else "int"
    if kind in _SUMS:
        if any((each or "").startswith("decimal") for each in types):
            exact = all((e or "").startswith("decimal") or e in INTEGERS for e in types)
            return "decimal(38,38)" if exact else None
        return common_type(types)
    return None
