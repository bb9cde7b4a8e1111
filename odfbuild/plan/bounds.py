"""How many records can come out of records that go in.

Answers only "not more than went in" or "cannot tell": a query that reads each of its sources once
and neither joins nor multiplies rows can only drop records. Judged by the words of the query, on
the safe side: what is not recognised counts as "cannot tell".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from odfbuild.odf.model import MergeStrategy, MergeStrategyAppend, MergeStrategyLedger, TransformSql

# Comments (but not hints) and string literals say nothing about the number of rows.
_NOISE = re.compile(
    r"--[^\n]*|/\*(?!\+).*?\*/|'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"", re.S
)
_MULTIPLIES = re.compile(
    r"\b(join|lateral|cross|values|with|range|unnest|stack|inline\w*|json_tuple|explode\w*"
    r"|posexplode\w*|variant_explode\w*|flatten|pivot|unpivot|grouping|rollup|cube|parse_url_tuple"
    r"|from_json|table)\b",
    re.I,
)
_SOURCE = re.compile(
    r"\bfrom\s+(?P<name>`[^`]+`|[\w.]+)"
    r"(?:\s+(?:as\s+)?(?!(?:where|union|group|having|order|limit|select)\b)(?:`[^`]+`|\w+))?"
    r"\s*(?=$|;|\b(?:where|union|group|having|order)\b)",
    re.I,
)
_FROM = re.compile(r"\bfrom\b", re.I)


def never_adds_records(transform: TransformSql, inputs: Iterable[str]) -> bool:
    """Whether a transformation over `inputs` (their names in the query) can only drop records."""
    unused = {name.lower() for name in inputs}
    for step in transform.queries or ():
        sources = _read_once(step.query)
        if sources is None or not unused.issuperset(sources):
            return False
        unused.difference_update(sources)
        if step.alias:
            unused.add(step.alias.lower())
    return True


@lru_cache(1_024)  # sources of one kind are prepared by one query
def _read_once(query: str) -> frozenset[str] | None:
    """What a query reads, once each, where it can only drop records; `None`: cannot tell."""
    text = _NOISE.sub(" ", query)
    if _MULTIPLIES.search(text):
        return None
    sources = [m["name"].strip("`").lower() for m in _SOURCE.finditer(text)]
    found = frozenset(sources)
    return found if len(found) == len(sources) == len(_FROM.findall(text)) else None


def merge_never_adds_records(merge: MergeStrategy) -> bool:
    """Whether merging a batch appends at most one record for each record of the batch.

    A snapshot can need two for a change and one for what is gone, so it cannot be told.
    """
    return isinstance(merge, MergeStrategyAppend | MergeStrategyLedger)
