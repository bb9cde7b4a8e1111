"""How queries of each engine are read, and how they are written for Spark."""

from __future__ import annotations

from sqlglot import Dialect, exp, parser, tokens
from sqlglot.dialects.postgres import Postgres
from sqlglot.dialects.risingwave import RisingWave
from sqlglot.dialects.spark import Spark

from odfbuild.sql.parsed import Counted


class Flink(Dialect):  # type: ignore[misc]
    """Calcite's SQL: names in backticks, text in quotes that are doubled, nulls are small."""

    NULL_ORDERING = "nulls_are_small"

    class Tokenizer(tokens.Tokenizer):  # type: ignore[misc]
        """Words of Flink's SQL."""

        IDENTIFIERS = ["`"]
        QUOTES = ["'"]
        STRING_ESCAPES = ["'"]

    class Parser(Counted, parser.Parser):  # type: ignore[misc]
        """Functions whose arguments stand in another order than the parser thinks, or are none."""

        FUNC_TOKENS = parser.Parser.FUNC_TOKENS | {tokens.TokenType.SESSION}
        FUNCTIONS = {
            name: made
            for name, made in parser.Parser.FUNCTIONS.items()
            if name not in ("TIMESTAMPDIFF", "TIMESTAMP_DIFF", "TIMESTAMPADD", "TIMESTAMP_ADD")
        }


class DataFusion(Postgres):  # type: ignore[misc]
    """DataFusion's SQL, which is that of PostgreSQL as far as the lists go."""

    class Parser(Counted, Postgres.Parser):  # type: ignore[misc]
        """Formats of times are those of another library than PostgreSQL's."""

        FUNCTIONS = {
            name: made for name, made in Postgres.Parser.FUNCTIONS.items() if name != "TO_TIMESTAMP"
        }


class CountedRisingWave(RisingWave):  # type: ignore[misc]
    """RisingWave's SQL."""

    class Parser(Counted, RisingWave.Parser):  # type: ignore[misc]
        """Gives up on what would take it for ever."""


class SparkWithTemporalJoins(Spark):  # type: ignore[misc]
    """Spark SQL in which odfbuild's own form of temporal joins stays what it is."""

    class Generator(Spark.Generator):  # type: ignore[misc]
        """Writes it."""

        def version_sql(self, expression: exp.Version) -> str:
            """`FOR SYSTEM_TIME AS OF`, which `engine.spark.temporal` puts in Spark's terms."""
            time = expression.expression
            text = self.sql(time)
            return f"FOR SYSTEM_TIME AS OF {text if isinstance(time, exp.Column) else f'({text})'}"


READ: dict[str, type[Dialect]] = {
    "flink": Flink,
    "datafusion": DataFusion,
    "risingwave": CountedRisingWave,
}
"""The dialect of each engine."""
