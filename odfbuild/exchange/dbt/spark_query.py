"""Turn a query of dbt into one of odfbuild: Spark SQL over inputs by alias, with an event time.

The text stays as it is where Spark reads it in the same way; else sqlglot writes it from the
dialect of its database. `SELECT *` of an input is written out, because an input also has the
columns of the system, and sums of floating point numbers are computed in decimals, because they
depend on the order of the records otherwise. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import sqlglot
from sqlglot import Dialect, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.tokens import Token, TokenType

from odfbuild.exchange.dbt.calendar import keep_calendar
from odfbuild.exchange.dbt.model import MARKER, Query
from odfbuild.odf.schema.ddl import quoted_name
from odfbuild.sql.function_list import ALLOWED
from odfbuild.sql.functions import FORBIDDEN
from odfbuild.sql.parsed import TooMuch, statements
from odfbuild.values import Value

EVENT_TIME = "event_time"
NO_TIME = f"TIMESTAMP '1970-01-01 00:00:00' AS {EVENT_TIME}"
"""The event time of records that have none: it is the same in each run."""

_SPARK = "spark"
_IS_SPARK = ("spark", "databricks")
_MARKER = re.compile(MARKER.replace("{}", r"(\d+)"))
_ID = "odfbuild"
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Types = Mapping[str, str]
"""Types of columns by name, in the dialect of the project; `UNKNOWN` where nobody says."""


class SparkQuery(Value, kw_only=True):
    """The text, an alias for each input, and the columns of the result."""

    text: str
    aliases: tuple[str, ...]
    columns: Types
    made_time: bool
    """Whether a constant stands for the event time, which it does not have."""
    notes: tuple[str, ...] = ()


class NoQuery(Exception):
    """Why a query cannot be moved, and its line in the rendered text."""

    def __init__(self, why: str, line: int | None = None) -> None:
        super().__init__(why)
        self.why, self.line = why, line


def spark_query(
    query: Query,
    dialect: str,
    names: Sequence[str],
    inputs: Sequence[Types | None],
    event_time: str | None,
) -> SparkQuery:
    """The query in Spark SQL; raises `NoQuery`.

    `names` are what people call the inputs, `inputs` their columns, both by number. `event_time`
    is the column that has it, if the project says so.
    """
    sql = _clean(query.sql)
    tree = parsed(sql, dialect)
    aliases = _aliases(tree, names)
    known = {MARKER.format(number): each for number, each in enumerate(inputs) if each}
    for number, node in enumerate(tree.find_all(exp.Sum, exp.Avg, exp.Select)):
        node.meta[_ID] = number
    typed = _typed(tree, dialect, known)
    edits, notes = _decimal_sums(sql, dialect, tree, typed)
    called = {MARKER.format(number): name for number, name in enumerate(names)}
    edits += _stars(sql, tree, known, called)
    text = _tidy(_in_spark(_edited(sql, edits), dialect, known))
    columns = _columns(typed, dialect, as_written(tree, known))
    if columns is None:
        raise NoQuery("its columns are not known: name them in place of `*`")
    made_time = event_time is None and EVENT_TIME not in {each.lower() for each in columns}
    if made_time:
        text = _with_event_time(text)
    text = _MARKER.sub(lambda found: aliases[int(found[1])], text)
    return SparkQuery(
        text=text,
        aliases=aliases,
        columns=columns,
        made_time=made_time,
        notes=tuple(notes),
    )


def replaced_tables(sql: str, dialect: str, tables: Mapping[str, str]) -> Query:
    """A compiled query with markers in place of the tables in `tables`: ids by full name.

    Raises `NoQuery`.
    """
    ids: list[str] = []
    edits: list[tuple[int, int, str]] = []
    for table in parsed(sql, dialect).find_all(exp.Table):
        found = tables.get(".".join(part.name for part in table.parts).lower())
        places = [part.meta for part in table.parts if "start" in part.meta]
        if found is None or not places:
            continue
        if found not in ids:
            ids.append(found)
        edits.append((places[0]["start"], places[-1]["end"] + 1, MARKER.format(ids.index(found))))
    return Query(_edited(sql, edits), tuple(ids))


def _clean(sql: str) -> str:
    """Without blanks at the ends of lines, which YAML cannot keep in a block; lines stay."""
    return "\n".join(line.rstrip().expandtabs(4) for line in sql.rstrip().rstrip(";").splitlines())


def _tidy(sql: str) -> str:
    """Without the empty lines that templates leave behind, and blanks before names on new lines."""
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"[ \t]+$", "", sql.strip(), flags=re.M))


def parsed(sql: str, dialect: str) -> exp.Query:
    """The tree of a query within the bounds of `limits`; raises `NoQuery`."""
    try:
        # The bounds of queries hold for these, too; what they say is understood below.
        statements(sql)
    except TooMuch as error:
        raise NoQuery(str(error)) from None
    except (SqlglotError, RecursionError):
        pass
    try:
        found = [each for each in sqlglot.parse(sql, read=dialect) if each is not None]
    except SqlglotError as error:
        details = (getattr(error, "errors", None) or [{}])[0]
        said = str(details.get("description") or error).splitlines()[0].rstrip(".")
        raise NoQuery(f"this is not understood as SQL: {said}", details.get("line")) from None
    except RecursionError:
        raise NoQuery("the query is nested too deeply") from None
    if len(found) != 1 or not isinstance(found[0], exp.Query):
        raise NoQuery("it is no SELECT")
    return found[0]


def _aliases(tree: exp.Expression, names: Sequence[str]) -> tuple[str, ...]:
    """The names of the tables, where no common table expression has them already."""
    taken = {each.alias.lower() for each in tree.find_all(exp.CTE)}
    found: list[str] = []
    for name in names:
        plain = re.sub(r"\W+", "_", name)
        alias, number = plain, 1
        while alias.lower() in taken:
            alias = f"{plain}_input" if number == 1 else f"{plain}_input{number}"
            number += 1
        taken.add(alias.lower())
        found.append(alias if _WORD.fullmatch(alias) else f"t_{alias}")
    return tuple(found)


def _typed(tree: exp.Query, dialect: str, known: Mapping[str, Types]) -> exp.Query | None:
    """A copy whose columns are written out with types; `None` where that is not possible."""
    try:
        copy = qualify(
            tree.copy(),
            schema={name: dict(types) for name, types in known.items()},
            dialect=dialect,
            validate_qualify_columns=False,
            quote_identifiers=False,
            expand_alias_refs=False,
        )
        return annotate_types(copy, schema={n: dict(t) for n, t in known.items()}, dialect=dialect)
    except (SqlglotError, RecursionError):
        return None


def _columns(typed: exp.Query | None, dialect: str, spelled: Mapping[str, str]) -> Types | None:
    if typed is None or any(each.is_star for each in typed.selects):
        return None
    found = {
        spelled.get(each.alias_or_name.lower(), each.alias_or_name): each.type.sql(dialect)
        if each.type is not None
        else "UNKNOWN"
        for each in typed.selects
    }
    return found if all(found) else None


def as_written(tree: exp.Expression, known: Mapping[str, Types]) -> dict[str, str]:
    """Names as people write them, by names in lower case: databases fold them, and so sqlglot."""
    names = (name for types in known.values() for name in types)
    written = (each.name for each in tree.find_all(exp.Identifier))
    return {name.lower(): name for name in (*names, *written)}


_FLOATS = ("FLOAT", "DOUBLE")
_WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_Edits = list[tuple[int, int, str]]
"""Parts of a text by start and end, and what to write there."""


def _decimal_sums(
    sql: str, dialect: str, tree: exp.Query, typed: exp.Query | None
) -> tuple[_Edits, list[str]]:
    kinds = {
        node.meta[_ID]: node.this.type
        for node in (typed.find_all(exp.Sum, exp.Avg) if typed else ())
        if _ID in node.meta
    }
    edits: _Edits = []
    for node in tree.find_all(exp.Sum, exp.Avg):
        kind = kinds.get(node.meta[_ID])
        inner = kind is not None and kind.is_type(*_FLOATS)
        whole = isinstance(node, exp.Avg) and kind is not None and kind.is_type("BIGINT")
        if not (inner or whole) or "start" not in node.meta:
            continue
        start, name_end = node.meta["start"], node.meta["end"] + 1
        bracket = _closing(sql, dialect, name_end)
        argument = sql[sql.index("(", name_end) + 1 : bracket]
        if isinstance(node.this, exp.Distinct) or "--" in argument:
            continue
        stop = bracket
        if isinstance(node.parent, exp.Window):
            stop = _closing(sql, dialect, bracket + 1)
        call = f"{sql[start:name_end]}(CAST({argument} AS DECIMAL(38, 12)))"
        edits.append((start, stop + 1, f"CAST({call}{sql[bracket + 1 : stop + 1]} AS DOUBLE)"))
    said = ["sums of floating point numbers are computed in DECIMAL(38, 12)"] if edits else []
    return edits, said


def _closing(sql: str, dialect: str, start: int) -> int:
    """The index of the bracket that closes the first one behind `start`."""
    depth = 0
    for token in _tokens(sql, dialect):
        if token.start < start:
            continue
        if token.token_type is TokenType.L_PAREN:
            depth += 1
        elif token.token_type is TokenType.R_PAREN:
            depth -= 1
            if depth == 0:
                return int(token.start)
    return len(sql) - 1


def _stars(
    sql: str, tree: exp.Query, known: Mapping[str, Types], called: Mapping[str, str]
) -> _Edits:
    """`*` of inputs, written out; raises `NoQuery` where it cannot be."""
    edits: _Edits = []
    for select in tree.find_all(exp.Select):
        tables = _sources(select)
        for item in select.expressions:
            if not item.is_star or isinstance(item, exp.Count):
                continue
            star = item.this if isinstance(item, exp.Column) else item
            asked = [item.table] if isinstance(item, exp.Column) else [*tables]
            read = {name: tables.get(name) for name in asked}
            inputs = [table for table in read.values() if table and _MARKER.fullmatch(table)]
            if not inputs:
                continue
            start = item.meta.get("start", star.meta.get("start"))
            end = star.meta.get("end")
            line = sql.count("\n", 0, start) + 1 if start is not None else None
            joins = select.args.get("joins") or []
            if start is None or end is None or any(join.args.get("using") for join in joins):
                raise NoQuery("`*` of a join with USING has no equivalent: name the columns", line)
            unknown = [called[table] for table in inputs if table not in known]
            if unknown:
                why = f"it takes all columns of {unknown[0]}, which are not known"
                raise NoQuery(f"{why}: name them in place of `*`", line)
            if star.args.get("replace") or star.args.get("rename"):
                raise NoQuery("`*` with other columns in it has no equivalent: name them", line)
            start = min([start, *_places(item)])
            left_out = {each.name.lower() for each in _left_out(star)}
            names = _written_out(read, known, left_out, len(tables) > 1, line)
            stop = _behind_except(sql, end) if left_out else end + 1
            edits.append((start, stop, _listed(sql, start, names)))
    return edits


def _places(item: exp.Expression) -> list[int]:
    """Where the words of `t.*` begin, in the order of the text."""
    parts = item.parts if isinstance(item, exp.Column) else []
    return [part.meta["start"] for part in parts if "start" in part.meta]


def _left_out(star: exp.Star) -> Sequence[exp.Expression]:
    return star.args.get("except_") or star.args.get("except") or ()


def _behind_except(sql: str, end: int) -> int:
    """Behind `EXCLUDE (a, b)` or `EXCLUDE a`, which follows a `*` that ends at `end`."""
    found = re.compile(r"\*\s*(?:except|exclude)\s*(?:\([^)]*\)|\w+)", re.I).match(sql, end)
    return found.end() if found else end + 1


def _sources(select: exp.Select) -> dict[str, str]:
    """Names of tables by what they are called in a SELECT; empty for what is no table."""
    clause = select.args.get("from_") or select.args.get("from")
    read = [clause.this] if clause is not None else []
    read += [each.this for each in select.args.get("joins") or ()]
    return {each.alias_or_name: each.name if isinstance(each, exp.Table) else "" for each in read}


def _written_out(
    read: Mapping[str, str | None],
    known: Mapping[str, Types],
    left_out: set[str],
    several: bool,
    line: int | None,
) -> list[str]:
    names: list[str] = []
    for name, table in read.items():
        prefix = f"{name}." if several else ""
        if table is None or not _MARKER.fullmatch(table):
            if left_out:
                raise NoQuery("`*` without some columns, of a join: name the columns", line)
            names.append(f"{prefix}*")
            continue
        names += [f"{prefix}{quoted_name(c)}" for c in known[table] if c.lower() not in left_out]
    return names


def _listed(sql: str, start: int, names: Sequence[str]) -> str:
    """Names on one line, or on lines of their own where that would be too long."""
    line_start = sql.rfind("\n", 0, start) + 1
    flat = ", ".join(names)
    if start - line_start + len(flat) <= 90:
        return flat
    indent = " " * (len(sql[line_start:start]) - len(sql[line_start:start].lstrip()))
    if not sql[line_start:start].strip():
        return f",\n{indent}".join(names)
    return "".join(f"\n{indent}    {each}," for each in names).rstrip(",") + f"\n{indent[:-1]}"


def _edited(sql: str, edits: _Edits) -> str:
    """The text with all edits; of two that overlap, the outer one."""
    kept: _Edits = []
    for edit in sorted(edits, key=lambda each: (each[0], -each[1])):
        if not kept or edit[0] >= kept[-1][1]:
            kept.append(edit)
    for start, end, text in reversed(kept):
        sql = sql[:start] + text + sql[end:]
    return sql


def _in_spark(sql: str, dialect: str, known: Mapping[str, Types]) -> str:
    """The text itself where Spark reads it in the same way, else what sqlglot makes of it."""
    if dialect in _IS_SPARK:
        return sql
    options: dict[str, Any] = {"pretty": True, "normalize_functions": False}
    tree = parsed(sql, dialect)
    _keep_meaning(tree, dialect, known)
    keep_calendar(tree, dialect)
    text: str = tree.sql(_SPARK, **options)
    try:
        as_it_is = parsed(sql, _SPARK).sql(_SPARK, **options)
    except NoQuery:
        return text
    return sql if as_it_is == text and _is_spark(sql) else text


_TYPES = """ARRAY BIGINT BINARY BOOLEAN BYTE DATE DEC DECIMAL DOUBLE FLOAT INT INTEGER INTERVAL
    LONG MAP NULL NUMERIC REAL SHORT SMALLINT STRING STRUCT TIMESTAMP TIMESTAMP_LTZ TIMESTAMP_NTZ
    TINYINT VARIANT VOID"""
_SPARK_TYPES = frozenset(_TYPES.split())
_OF_UNITS = ("dateadd", "date_add", "datediff", "date_diff", "timestampadd", "timestampdiff")
_TYPE_TOKENS = Spark.Parser.TYPE_TOKENS - {TokenType.UNION}


def _is_spark(sql: str) -> bool:
    """Whether Spark has the types and functions of a text; sqlglot reads many more as Spark's."""
    try:
        trees = statements(sql)
        tokens = _tokens(sql, _SPARK)
    except (SqlglotError, RecursionError):
        return False
    for token, bracket, first in zip(tokens, tokens[1:], tokens[2:], strict=False):
        # sqlglot takes 'day' for a unit there; Spark wants the word.
        is_call = bracket.token_type is TokenType.L_PAREN
        if is_call and token.text.lower() in _OF_UNITS and first.token_type is TokenType.STRING:
            return False
    for token, following in pairwise(tokens):
        is_type = token.token_type in _TYPE_TOKENS
        if is_type and token.text.upper() not in _SPARK_TYPES:
            return False
        if token.token_type is TokenType.TIMESTAMPTZ and following.token_type is TokenType.WITH:
            return False
    calls = {each.name.lower() for tree in trees for each in tree.find_all(exp.Anonymous)}
    return all(name in ALLOWED or name in FORBIDDEN for name in calls)


_ADDS = (exp.DateAdd, exp.DateSub, exp.DatetimeAdd, exp.TimestampAdd, exp.TsOrDsAdd)
_REWRITTEN = (exp.Div, exp.Sub, *_ADDS)
_DAYS_APART = ("duckdb", "postgres", "redshift", "snowflake")
"""Dialects in which a date minus a date is a number."""


def _keep_meaning(tree: exp.Query, dialect: str, known: Mapping[str, Types]) -> None:
    """Rewrite what sqlglot would write in a form that gives other values in Spark.

    `/` of whole numbers cuts the result in some databases: that is `DIV`. Two dates are some days
    apart there, which is an interval in Spark. Days and months that are added to a time keep its
    time of day: `date_add` gives a date.
    """
    for number, node in enumerate(tree.find_all(*_REWRITTEN)):
        node.meta[_ID] = number
    typed = _typed(tree, dialect, known)
    kinds = {
        node.meta[_ID]: (_kind(node.this), _kind(node.expression))
        for node in (typed.find_all(*_REWRITTEN) if typed else ())
        if _ID in node.meta
    }
    cuts = Dialect.get_or_raise(dialect).TYPED_DIVISION
    for node in list(tree.find_all(*_REWRITTEN)):
        this, other = kinds.get(node.meta[_ID], ("", ""))
        if isinstance(node, exp.Div):
            if cuts and this in _WHOLE and other in _WHOLE:
                node.replace(exp.IntDiv(this=node.this, expression=node.expression))
        elif isinstance(node, exp.Sub):
            if dialect in _DAYS_APART and this == other == "DATE":
                node.replace(exp.DateDiff(this=node.this, expression=node.expression))
        elif this != "DATE" and node.args.get("unit") is not None:
            node.replace(_later(node))


def _kind(node: exp.Expression) -> str:
    return str(node.type.this.value) if node.type is not None else ""


def _later(node: exp.Expression) -> exp.Expression:
    """A time and an interval that is added to it, or taken from it."""
    amount, unit = node.expression, node.args["unit"]
    sign = 1
    while isinstance(amount, exp.Neg | exp.Paren):
        sign = -sign if isinstance(amount, exp.Neg) else sign
        amount = amount.this
    if isinstance(node, exp.DateSub):
        sign = -sign
    made: exp.Expression
    if isinstance(amount, exp.Interval):
        made = amount
    elif isinstance(amount, exp.Literal):
        made = exp.Interval(this=exp.Literal.string(amount.name), unit=unit)
    else:
        one = exp.Interval(this=exp.Literal.string("1"), unit=unit)
        made = exp.Mul(this=exp.Paren(this=amount), expression=one)
    combine = exp.Add if sign > 0 else exp.Sub
    return exp.Paren(this=combine(this=node.this, expression=made))


def _with_event_time(text: str) -> str:
    """The query with a last column that is the same in each record."""
    tokens = _tokens(text, _SPARK)
    places: list[tuple[int, int]] = []
    depth, selects = 0, 0
    pending: int | None = None
    for before, token in zip([None, *tokens], tokens, strict=False):
        kind = token.token_type
        if kind is TokenType.L_PAREN:
            depth += 1
        elif kind is TokenType.R_PAREN:
            depth -= 1
        elif depth == 0 and kind is TokenType.SELECT:
            selects += 1
            pending = token.end + 1
        elif depth == 0 and kind is TokenType.FROM and pending is not None and before is not None:
            places.append((before.end + 1, pending))
            pending = None
    if selects == 0 or len(places) != selects:
        inner = text.replace("\n", "\n  ")
        return f"SELECT *, {NO_TIME}\nFROM (\n  {inner}\n)"
    for place, select in reversed(places):
        text = f"{text[:place]},{_space_before(text, select)}{NO_TIME}{text[place:]}"
    return text


def _space_before(text: str, select: int) -> str:
    """What stands between SELECT and its first column: a blank, or a line break and blanks."""
    found = re.compile(r"(?:\s+(?:distinct|all)\b)?(\s*)", re.IGNORECASE).match(text, select)
    blank = found[1] if found else " "
    return "\n" + blank.rpartition("\n")[2] if "\n" in blank else " "


def _tokens(text: str, dialect: str) -> list[Token]:
    found: list[Token] = Dialect.get_or_raise(dialect).tokenize(text)
    return found
