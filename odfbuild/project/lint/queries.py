"""Rules about queries of derivatives."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from odfbuild.odf.model import SetTransform, SqlQueryStep
from odfbuild.project.lint.finding import Flaw, Path
from odfbuild.project.model import Definition
from odfbuild.sql.sql_words import Quote, Word, words_of

_COPIES = 3
_FROM_LOCAL = ("to_utc_timestamp", "convert_timezone")
"""Functions that make instants of local times."""
_WORTH_A_TEMPLATE = 20
"""Words of a query below which a template would not be shorter."""

_STANDARD = frozenset(("datafusion", "risingwave"))
"""Engines that write names in double quotes."""

_LITERAL = re.compile(r"'(?:[^'\\]|\\.|'')*'|\b\d+(?:\.\d+)?\b")


def flaws_of_query(definition: Definition) -> Iterator[Flaw]:
    """Findings in the query of a derivative."""
    for index, event in enumerate(definition.snapshot.metadata):
        if isinstance(event, SetTransform):
            path: Path = ("metadata", index)
            steps = event.transform.queries or ()
            quote: Quote = '"' if event.transform.engine.lower() in _STANDARD else "`"
            words = [words_of(step.query, quote) for step in steps]
            yield from _unused_inputs(event, words, path)
            yield from _unused_steps(steps, words, path)
            for number, each in enumerate(words):
                yield from _stars(each, event, number, path)
                yield from _local_times(each, number, path)


def _unused_inputs(
    event: SetTransform, steps: Sequence[Sequence[Word]], path: Path
) -> Iterator[Flaw]:
    named = {word.name for words in steps for word in words}
    for number, each in enumerate(event.inputs):
        alias = each.alias or str(each.dataset_ref)
        # A name with dots is several words, unless it stands in quotes.
        parts = {alias.lower(), alias.lower().rpartition(".")[2]}
        if named.isdisjoint(parts):
            yield Flaw(
                "unused-input",
                f"no query reads the input '{alias}'",
                "remove it: each new record of it runs this dataset",
                (*path, "inputs", number),
            )


def _unused_steps(
    steps: Sequence[SqlQueryStep], words: Sequence[Sequence[Word]], path: Path
) -> Iterator[Flaw]:
    for number, step in enumerate(steps[:-1]):
        later = {word.name for each in words[number + 1 :] for word in each}
        if step.alias is not None and step.alias.lower() not in later:
            yield Flaw(
                "unused-input",
                f"no later step reads '{step.alias}'",
                "remove the step",
                (*path, "transform", "queries", number),
            )


def _stars(words: Sequence[Word], event: SetTransform, number: int, path: Path) -> Iterator[Flaw]:
    aliases = {(each.alias or str(each.dataset_ref)).lower() for each in event.inputs}
    if aliases.isdisjoint(word.name for word in words):
        return  # a step over steps: their columns are all written here
    for at, word in enumerate(words):
        before = words[at - 1].text if at else ""
        is_all = before in ("select", "distinct", "all", ",")
        is_of = before == "." and at > 1 and not words[at - 2].text.isdigit()
        if word.text == "*" and (is_all or is_of):
            yield Flaw(
                "select-star",
                "`*` takes all columns of an input, including columns added later",
                "name the columns: system columns of an input are not allowed in a result",
                (*path, "transform"),
                (number, word.line, word.column),
            )


def _local_times(words: Sequence[Word], number: int, path: Path) -> Iterator[Flaw]:
    for word, following in pairwise(words):
        if word.name in _FROM_LOCAL and following.text == "(":
            yield Flaw(
                "local-time",
                f"`{word.name}` moves a local time that clocks never showed, and takes the earlier "
                "instant of one that they showed twice",
                "read times with the name of their zone from the source, where both are refused, "
                "or with their offset",
                (*path, "transform"),
                (number, word.line, word.column),
            )


def copied_queries(definitions: Iterable[Definition]) -> Iterator[tuple[Definition, Flaw]]:
    """Queries in files of their own that differ from each other in literals only."""
    alike: dict[tuple[str, ...], list[tuple[Definition, int]]] = defaultdict(list)
    for definition in definitions:
        if definition.instance is not None:
            continue
        for index, event in enumerate(definition.snapshot.metadata):
            if isinstance(event, SetTransform):
                shape = tuple(_shape(step.query) for step in event.transform.queries or ())
                words = sum(len(words_of(each)) for each in shape)
                if words >= _WORTH_A_TEMPLATE:
                    alike[shape].append((definition, index))
    for group in alike.values():
        if len(group) >= _COPIES:
            (first, index), *others = group
            names = ", ".join(each.name for each, _ in others)
            yield (
                first,
                Flaw(
                    "copied-query",
                    f"this query occurs in {len(group)} definitions, with different literals only",
                    "write one template (docs/templates.md), so that a change is made once",
                    ("metadata", index, "transform"),
                    notes=(f"also in {names}",),
                ),
            )


def _shape(query: str) -> str:
    return " ".join(_LITERAL.sub("''", query).lower().split())
