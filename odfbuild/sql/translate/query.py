"""One query of another engine, written for Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp
from sqlglot.errors import SqlglotError

from odfbuild.errors import Code, Errors, Location, QueryError
from odfbuild.sql.parsed import trees_in
from odfbuild.sql.places import index_in, place_at, place_of, place_of_word
from odfbuild.sql.sql_words import Word, words_of
from odfbuild.sql.translate.allowed import problem_with
from odfbuild.sql.translate.dialects import READ, SparkWithTemporalJoins
from odfbuild.sql.translate.division import mark_whole_divisions
from odfbuild.sql.translate.rewrite import rewritten
from odfbuild.sql.translate.spark_calls import is_call
from odfbuild.sql.translate.windows import Refuse, to_spark_windows

_TABLE_ARGUMENT = re.compile(
    r"'[^']*'|(\b(?:TUMBLE|HOP|CUMULATE|SESSION)\s*\(\s*)(TABLE)(?=[\s`])", re.IGNORECASE
)
_PARTITIONED = re.compile(
    r"'[^']*'|(\bSESSION\s*\(\s*(?:[\w.]+|`[^`]*`)+\s+)P(ARTITION\s+BY)\b", re.IGNORECASE
)
_BLACK = re.compile(r"\S")
_QUERY_PARENTS = (exp.Subquery, exp.CTE, exp.SetOperation)


def translate(engine: str, sql: str, step: int, columns: Mapping[str, str]) -> str:
    """The query in Spark SQL; `Errors` of `QueryError` E0519 with places in `sql`.

    `columns` are whole numbers among the columns of the inputs, as `division` takes them.
    """
    tree = _parsed(engine, sql, step)
    errors: dict[str, QueryError] = {}

    def refuse(node: exp.Expression, why: str) -> None:
        error = _refused(why, place_of(node, sql, step))
        errors.setdefault(f"{error.location}{why}", error)

    to_spark_windows(tree, engine, refuse)
    if not errors:
        for select in tree.find_all(exp.Select):
            _name_columns(select, engine, refuse)
        paths: set[int] = set()
        for node in list(tree.walk()):
            # The steps of a path such as `a -> 'b'` are said with it.
            if id(node.parent) in paths or isinstance(node, exp.JSONPath):
                paths.add(id(node))
                continue
            why = None if _is_ours(node) else problem_with(node, engine)
            if why is not None:
                refuse(node, why)
    if errors:
        raise Errors(errors.values())
    mark_whole_divisions(tree, engine, columns)
    # Inner nodes first: what stands for an outer one is not looked at again.
    for node in reversed(list(tree.walk())):
        instead = rewritten(node, engine)
        if instead is not node:
            node.replace(instead)
    text: str = tree.sql(SparkWithTemporalJoins, pretty=True, normalize_functions=False)
    return text


def _parsed(engine: str, sql: str, step: int) -> exp.Expression:
    # `TABLE t` is no expression to the parser, and `t PARTITION BY a` none; all else keeps its
    # place.
    text = _TABLE_ARGUMENT.sub(lambda found: _without(found, ""), sql)
    text = _PARTITIONED.sub(lambda found: _without(found, ","), text)
    names: dict[str, str] = {}
    if engine == "datafusion":
        text, names = with_names(text)
    try:
        found = trees_in(text, READ[engine])
    except SqlglotError as error:
        details = (getattr(error, "errors", None) or [{}])[0]
        length = len(details.get("highlight") or "x")
        end = index_in(sql, details.get("line") or 1, details.get("col") or 1) + 1
        place = place_at(sql, step, max(0, end - length), length)
        said = details.get("description") or str(error).splitlines()[0]
        why = said.partition(" but got <")[0]
        said = f"this is not understood as SQL of {engine}: {why.rstrip('.')}"
        raise Errors([_refused(said, place)]) from None
    except RecursionError:
        raise Errors(
            [_refused("the query is nested too deeply", place_of_word(sql, step))]
        ) from None
    if len(found) != 1 or not isinstance(found[0], exp.Query):
        raise Errors([_refused("a query is one SELECT", place_of_word(sql, step))])
    name_again(found[0], names)
    return found[0]


def _without(found: re.Match[str], instead: str) -> str:
    """The first group and blanks for the second; a text in quotes as it is."""
    return found[1] + instead + _BLACK.sub(" ", found[2]) if found[1] else found[0]


def _is_ours(node: exp.Expression) -> bool:
    """Whether a node was put there in place of a window."""
    parent = node.parent
    if is_call(node):
        return True
    return isinstance(node, exp.Anonymous) and (
        isinstance(parent, exp.Lateral)
        or (isinstance(parent, exp.Anonymous) and isinstance(parent.parent, exp.Lateral))
    )


def _name_columns(select: exp.Select, engine: str, refuse: Refuse) -> None:
    """Every engine names columns without AS in a way of its own."""
    parent = select.parent
    if parent is not None and not isinstance(parent, _QUERY_PARENTS):
        return
    if isinstance(parent, exp.Subquery) and not isinstance(parent.parent, exp.From | exp.Join):
        return
    for column in select.expressions:
        if not isinstance(column, exp.Alias | exp.Column | exp.Star):
            refuse(column, f"{engine} names this column in its own way: give it a name with AS")


def _refused(why: str, place: Location) -> QueryError:
    return QueryError(
        why,
        code=Code.NOT_TRANSLATED,
        location=place,
        help="write it in a form that is on the list of docs/engines.md, or the query in Spark SQL "
        "with `engine: spark`",
    )


# --- Names ---


# DataFusion takes more words for names than the parser does. A word in this list is a name where
# nothing else can stand: between what comes before an expression, and what comes after one.

_LIST = """alter and any as between case create cross current_catalog current_schema
    current_user distinct drop else except fetch for glob grant having ilike inner insert
    intersect into join lateral like localtime localtimestamp minus not notnull on only or
    outer partitioned_by qualify regexp returning revoke rlike rollback select session_user
    tablesample then uncache union using variadic when where with xor"""
_WORDS = frozenset(_LIST.split())
_BEFORE_A_VALUE = "select by where having and or on when then else , ( . as = < > + - * / % |"
_BEFORE = frozenset(_BEFORE_A_VALUE.split())
_AFTER_A_VALUE = "from as is in and or then end asc desc where group order , ) = < > / % | !"
_AFTER = frozenset(_AFTER_A_VALUE.split())
_FIRST = 0xE000


def with_names(sql: str) -> tuple[str, dict[str, str]]:
    """The query with other words of the same length for such names, and what they stand for."""
    # With texts: the word between two of them is no name.
    words = words_of(sql, '"', texts=True)
    found: dict[str, str] = {}
    text = sql
    for n, word in enumerate(words):
        if _is_name(words, n):
            instead = chr(_FIRST + len(found)) * (word.end - word.start)
            found[instead] = sql[word.start : word.end]
            text = text[: word.start] + instead + text[word.end :]
    return text, found


def _is_name(words: list[Word], n: int) -> bool:
    word = words[n].text
    before = words[n - 1].text if n else ""
    after = words[n + 1].text if n + 1 < len(words) else ","
    if before == "." and re.fullmatch(r"\w+", word):
        return word in _WORDS
    return word in _WORDS and before in _BEFORE and after in _AFTER


def name_again(tree: exp.Expression, names: dict[str, str]) -> None:
    """Give such names their words again, in place."""
    for node in tree.find_all(exp.Identifier) if names else ():
        if node.name in names:
            node.set("this", names[node.name])
            node.set("quoted", True)
