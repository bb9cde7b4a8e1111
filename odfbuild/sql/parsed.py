"""Parse Spark SQL to a tree that keeps names and calls as they were written.

Every call is a call by its name: nothing is turned into what other dialects have for it. Imports
sqlglot, so it is imported where a query is looked at.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

from sqlglot import Dialect, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokens import Token, TokenType

from odfbuild.limits import (
    EXPANDED_TABLES,
    QUERY_BYTES,
    QUERY_DEPTH,
    QUERY_STEPS,
    QUERY_TOKENS,
)

__all__ = [
    "PIPE",
    "AsWritten",
    "Counted",
    "SqlglotError",
    "TooMuch",
    "parsed",
    "statements",
    "tables_in",
]

PIPE = "|>"
"""The parser makes other queries of those with pipes, and does not know all of them."""

_OWN_SYNTAX = "CAST TRY_CAST EXTRACT TRIM SUBSTR SUBSTRING POSITION OVERLAY LISTAGG STRING_AGG"


class TooMuch(SqlglotError):  # type: ignore[misc]
    """A query asks for more than one may ask for."""


class Counted:
    """Of a parser: counts how often it goes on, and back to try another reading.

    Parsers read a join without a condition twice, so that twenty of them are read 2²⁰ times.
    """

    _steps = 0

    def _advance(self, times: int = 1) -> None:
        self._steps += 1
        if self._steps > QUERY_STEPS + 20 * self._tokens_size:  # type: ignore[attr-defined]
            raise TooMuch(
                f"reading the query takes more than {QUERY_STEPS:,} steps: state the "
                "condition of each join (CROSS JOIN where there is none)"
            )
        super()._advance(times)  # type: ignore[misc]

    def reset(self) -> None:
        """See `sqlglot.Parser.reset`."""
        self._steps = 0
        super().reset()  # type: ignore[misc]


class AsWritten(Spark):  # type: ignore[misc]
    """Spark's SQL, with `window(…)` as the function that it is, and not the clause WINDOW."""

    def tokenize(self, sql: str, **options: object) -> list[Token]:
        """See `sqlglot.Dialect.tokenize`."""
        tokens: list[Token] = super().tokenize(sql, **options)
        for one, following in pairwise(tokens):
            is_call = following.token_type is TokenType.L_PAREN
            if one.token_type is TokenType.WINDOW and is_call:
                one.token_type = TokenType.VAR
        return tokens

    class Parser(Counted, Spark.Parser):  # type: ignore[misc]
        """A parser that knows no functions, but for those with a syntax of their own."""

        FUNCTIONS: dict[str, object] = {}
        FUNCTION_PARSERS = {
            name: Spark.Parser.FUNCTION_PARSERS[name] for name in _OWN_SYNTAX.split()
        }


def trees_in(text: str, dialect: type[Dialect] = AsWritten) -> list[exp.Expression]:
    """What `text` holds in a dialect whose parser is `Counted`; every failure is a `SqlglotError`.

    Of it `TooMuch` for what would take for ever; `RecursionError` for what is too deep.
    """
    if len(text) > QUERY_BYTES:
        raise TooMuch(f"the query has more than {QUERY_BYTES >> 20} MiB")
    reader = dialect()
    tokens = reader.tokenize(text)
    if len(tokens) > QUERY_TOKENS:
        raise TooMuch(f"the query has more than {QUERY_TOKENS:,} words and signs")
    try:
        found = reader.parser().parse(tokens, text)
    except (SqlglotError, RecursionError):
        raise
    except Exception as error:  # an assertion, say, about the trees that it made
        raise ParseError(f"the query is not understood ({type(error).__name__})") from None
    return [each for each in found if each is not None]


def statements(text: str) -> list[exp.Expression]:
    """What `text` holds; raises `SqlglotError`, of it `TooMuch`, or `RecursionError`."""
    found = trees_in(text)
    for each in found:
        if len(text) > _SHORT:
            _check_depth(each)
        if _expanded_tables(each) > EXPANDED_TABLES:
            raise TooMuch(
                f"with its WITH clauses written out the query reads more than "
                f"{EXPANDED_TABLES:,} tables"
            )
    return found


_SHORT = 1_000
"""Characters, in which nothing is too deep."""


def _check_depth(tree: exp.Expression) -> None:
    """Raise `RecursionError` now, rather than wherever the tree is looked at."""
    left = [(tree, 0)]
    while left:
        node, depth = left.pop()
        if depth > QUERY_DEPTH:
            raise RecursionError
        left += ((each, depth + 1) for each in node.iter_expressions())


def _expanded_tables(tree: exp.Expression) -> int:
    """How many tables a query reads with every use of a common table expression written out."""
    sizes: dict[str, int] = {}
    for each in tree.find_all(exp.CTE, bfs=False):
        tables = each.this.find_all(exp.Table)
        sizes[each.alias.lower()] = sum(sizes.get(table.name.lower(), 1) for table in tables)
    return max(sizes.values(), default=0)


@lru_cache(maxsize=500)
def parsed(text: str) -> exp.Query | None:
    """The query that `text` is, not to be changed; `None` when it is none, or not understood."""
    if PIPE in text:
        return None
    try:
        found = statements(text)
    except (SqlglotError, RecursionError):
        return None
    return found[0] if len(found) == 1 and isinstance(found[0], exp.Query) else None


def tables_in(text: str) -> frozenset[str]:
    """Names in lower case of what a query reads, without its common table expressions.

    Empty where it is not understood.
    """
    tree = parsed(text)
    if tree is None:
        return frozenset()
    own = {each.alias.lower() for each in tree.find_all(exp.CTE)}
    named = (each for each in tree.find_all(exp.Table) if isinstance(each.this, exp.Identifier))
    found = (".".join(part.name.lower() for part in each.parts) for each in named)
    return frozenset(name for name in found if name not in own)
