"""Compare two definition events.

Three answers: the same, the same but for white space and comments in SQL, different. Absent fields
equal the defaults that the protocol gives them. Reads no files, resolves no names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from dataclasses import replace
from enum import Enum

from odfbuild.odf.defaults import with_defaults
from odfbuild.odf.introspect import fields_of, is_object
from odfbuild.odf.model import MetadataEvent, SetTransform, SqlQueryStep, TransformSql


class EventMatch(Enum):
    """How much two events have in common."""

    SAME = "same"
    COSMETIC = "cosmetic"
    DIFFERENT = "different"


def compare(before: MetadataEvent, after: MetadataEvent) -> EventMatch:
    """How `after` relates to `before`; inputs of transformations must be resolved in both."""
    if before == after or canonical(before) == canonical(after):
        return EventMatch.SAME
    if _differ_in_words(before, after):
        return EventMatch.DIFFERENT
    if canonical(before, tokens) == canonical(after, tokens):
        return EventMatch.COSMETIC
    return EventMatch.DIFFERENT


def _differ_in_words(before: MetadataEvent, after: MetadataEvent) -> bool:
    """Whether tokens cannot be the same; where that is not certain, only the tokens can tell."""
    try:
        return canonical(before, words) != canonical(after, words)
    except UncertainWords:
        return False


def canonical(value: object, sql: Callable[[str], object] = str) -> object:
    """`value` with defaults filled in and empty lists absent; `sql` is applied to query texts."""
    return _canonical(with_defaults(value), sql)


def _canonical(value: object, sql: Callable[[str], object]) -> object:
    if isinstance(value, tuple):
        return tuple(_canonical(item, sql) for item in value) or None
    kind = type(value)
    if not is_object(kind):
        return value
    is_query = kind in (SqlQueryStep, TransformSql)
    result: list[object] = [kind]
    for field in fields_of(kind):
        item = getattr(value, field.name)
        is_text = is_query and field.name == "query" and item is not None
        result.append(sql(item) if is_text else _canonical(item, sql))
    return tuple(result)


_WORD = re.compile(r"\w+")
_UNCERTAIN = re.compile(r"""--|/\*|\{\#|\\|\b\w{1,2}['"]""")
"""Comments, escapes, and letters that tell how a literal is to be read."""


class UncertainWords(Exception):
    """The words of a text are not those of its tokens."""


def words(text: str) -> Hashable:
    """The words of a query, which differ only where its tokens do; `UncertainWords` otherwise.

    Nearly all changed queries have other words, and the tokens of Spark's dialect are not at hand:
    importing sqlglot takes as long as planning a thousand datasets.
    """
    if _UNCERTAIN.search(text):
        raise UncertainWords
    return tuple(_WORD.findall(text))


def tokens(text: str) -> Hashable:
    """The tokens of a query in Spark's dialect, without white space and comments.

    A text that cannot be tokenised equals only itself. Letter case counts: it shows in the names of
    result columns.
    """
    # Importing sqlglot costs 0.1 s, so only for texts that differ.
    from sqlglot.dialects.spark import Spark
    from sqlglot.errors import SqlglotError

    try:
        return tuple((token.token_type, token.text) for token in Spark().tokenize(text))
    except SqlglotError:
        return text


def unpinned(committed: SetTransform, defined: SetTransform | None = None) -> SetTransform:
    """A committed transformation without the release of the engine, unless `defined` asks for one.

    `apply` wrote it down: no definition has to.
    """
    transform = committed.transform
    if transform.version is None or (defined and defined.transform.version is not None):
        return committed
    return replace(committed, transform=replace(transform, version=None))
