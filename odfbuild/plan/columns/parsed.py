"""Parse Spark SQL to a tree that keeps names and calls as they were written.

Every call is a call by its name: nothing is turned into what other dialects have for it. Imports
sqlglot, so it is imported where a query is looked at.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token, TokenType

__all__ = ["AsWritten", "SqlglotError", "parsed", "statements"]


_OWN_SYNTAX = "CAST TRY_CAST EXTRACT TRIM SUBSTR SUBSTRING POSITION OVERLAY LISTAGG STRING_AGG"


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

    class Parser(Spark.Parser):  # type: ignore[misc]
        """A parser that knows no functions, but for those with a syntax of their own."""

        FUNCTIONS: dict[str, object] = {}
        FUNCTION_PARSERS = {
            name: Spark.Parser.FUNCTION_PARSERS[name] for name in _OWN_SYNTAX.split()
        }


def statements(text: str) -> list[exp.Expression]:
    """What `text` holds; raises `SqlglotError` or `RecursionError`."""
    return [each for each in AsWritten().parse(text) if each is not None]


@lru_cache(maxsize=200)
def parsed(text: str) -> exp.Query | None:
    """The query that `text` is, not to be changed; `None` when it is none, or not understood."""
    try:
        found = statements(text)
    except (SqlglotError, RecursionError):
        return None
    return found[0] if len(found) == 1 and isinstance(found[0], exp.Query) else None
