"""Queries that differ only in the tables that they read and in the numbers that they compare with.

Templates make hundreds of them. What checking one of them found, where it handles each record
alone, holds for all with its fingerprint: they are the same text but for the names of the inputs
behind FROM and for numbers behind `<`, `<=`, `>` or `>=`, over inputs with the same columns.
Where the text might say more than that, or be read in another way, a query has no fingerprint.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from odfbuild.engine.contract import InputSlices
from odfbuild.engine.spark.queries.findings import Report
from odfbuild.odf.model import TransformSql
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.sql.sql_words import Word, words_of
from odfbuild.sql.translate.runnable import is_spark

_UNCLEAR = re.compile(r"""["\\$\0]|/\*""")
"""Where Spark and `words_of` may disagree on where a text or a comment ends."""
_BEFORE_OTHER_FROM = frozenset(
    ["distinct", "extract", "overlay", "position", "substr", "substring", "trim"]
)
"""Words before a FROM that no table follows."""
_NAME = re.compile(r"\w+")
_PLAIN = re.compile(r"`[^`]+`|[a-z]\w*[_0-9]\w*", re.ASCII)
"""Names that are no words of SQL."""
_SMALL = re.compile(r"[0-9]{1,9}")
"""Numbers that are all of the type INT."""
_BEHIND_COMPARISON = frozenset({")", "and", "or", "union"})
_PARTS_OF_SIGNS = frozenset("-=<>!|")


def fingerprint_of(
    transform: TransformSql, inputs: Sequence[InputSlices], vocab: Vocabulary
) -> str | None:
    """What the queries of a dataset share with others like them; `None` where that is not clear."""
    if not is_spark(transform) or transform.temporal_tables or transform.query is not None:
        return None
    numbers = {each.alias.lower(): number for number, each in enumerate(inputs)}
    texts = []
    for step in transform.queries or ():
        text = _without_names(step.query, numbers)
        if text is None or (step.alias or "").lower() in numbers:
            return None
        texts.append((step.alias, text))
    columns = [(each.schema.serialize().to_pybytes(), each.vocab) for each in inputs]
    return repr((texts, columns, vocab))


def holds_for_all(report: Report, names: Sequence[str]) -> bool:
    """Whether what was found of a query, whose columns have `names`, holds for all of those.

    Other findings have places in the text, and a column without a name is called by its text.
    """
    return report.row_wise and all(map(_NAME.fullmatch, names))


def _without_names(sql: str, numbers: dict[str, int]) -> str | None:
    words = words_of(sql)
    texts = Counter(each.text for each in words)
    # Each FROM is that of a SELECT, and no name.
    if texts["from"] != texts["select"] or texts.keys() & _BEFORE_OTHER_FROM:
        return None
    if _UNCLEAR.search(sql):
        return None
    pieces, end = [], 0
    for at, word in enumerate(words):
        if word.name in numbers:
            if not _is_table(words, at):
                return None
            instead = f"\0{numbers[word.name]}"
        elif _is_compared(words, at):
            instead = "\0"
        elif word.text.startswith("`") and not _NAME.fullmatch(word.name):
            return None  # it may be the text of an expression
        else:
            continue
        pieces += [sql[end : word.start], instead]
        end = word.end
    return "".join([*pieces, sql[end:]])


def _is_table(words: Sequence[Word], at: int) -> bool:
    before, after = words[at - 1 : at], words[at + 1 : at + 2]
    return (
        [each.text for each in before] == ["from"]
        and _PLAIN.fullmatch(words[at].text) is not None
        and not any(each.text in "(." for each in after)
    )


def _is_compared(words: Sequence[Word], at: int) -> bool:
    """Whether a word is a number that something is compared with, and nothing else happens to."""
    if not _SMALL.fullmatch(words[at].text):
        return False
    if any(each.text not in _BEHIND_COMPARISON for each in words[at + 1 : at + 2]):
        return False
    signs = "".join(each.text for each in words[max(0, at - 3) : at])
    sign = re.search(r"[<>]=?$", signs)
    return sign is not None and signs[sign.start() - 1 : sign.start()] not in _PARTS_OF_SIGNS
