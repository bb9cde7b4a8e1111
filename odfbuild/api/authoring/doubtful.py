"""Rules of `odfbuild lint` about what a query or a source most likely means otherwise.

Each needs the parsed query, or the columns of a source. Silent where either is not understood.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from odfbuild.errors import Location
from odfbuild.odf.model import SetPollingSource, SetTransform, SetVocab
from odfbuild.plan.columns.evolution import result_of_source
from odfbuild.project.lint.finding import Flaw, Path
from odfbuild.project.model import Definition
from odfbuild.sql.parsed import parsed
from odfbuild.sql.places import place_of
from odfbuild.sql.translate.runnable import is_spark
from odfbuild.wording import did_you_mean

_OF_DATES = frozenset(
    (
        *("to_timestamp", "try_to_timestamp", "to_date", "try_to_date", "date_format"),
        *("unix_timestamp", "to_unix_timestamp", "from_unixtime"),
    )
)
"""Functions that take a pattern of a date."""
_NAMED_BY_THEMSELVES = frozenset(
    (
        *("explode", "explode_outer", "posexplode", "posexplode_outer"),
        *("inline", "inline_outer", "stack", "json_tuple"),
    )
)
"""Functions that make columns with names of their own."""


def doubtful_parts(definition: Definition) -> Iterator[Flaw]:
    """Findings in the queries and the event time of a definition."""
    for index, event in enumerate(definition.snapshot.metadata):
        if isinstance(event, SetTransform) and is_spark(event.transform):
            steps = event.transform.queries or ()
            for number, step in enumerate(steps):
                tree = parsed(step.query)
                if tree is None:
                    continue
                found = [*_patterns(tree), *_commas(tree, step.query)]
                found += _unnamed(tree) if number == len(steps) - 1 else ()
                for rule, message, help_, node in found:
                    place = place_of(node, step.query, number)
                    path: Path = ("metadata", index, "transform")
                    yield Flaw(rule, message, help_, path, _at(place, number), place.length)
        if isinstance(event, SetVocab) and event.event_time_column is not None:
            yield from _event_time(definition, event.event_time_column, index)


_Found = tuple[str, str, str, exp.Expression]
"""Rule, message, help, and the part of the query."""


def _at(place: Location, step: int) -> tuple[int, int, int]:
    return step, place.line or 1, place.column or 1


def _patterns(tree: exp.Expression) -> Iterator[_Found]:
    """Minutes where months are meant in the pattern of a date, and months for minutes."""
    for call in tree.find_all(exp.Anonymous):
        if call.name.lower() not in _OF_DATES:
            continue
        for given in call.expressions[1:]:
            if not (isinstance(given, exp.Literal) and given.is_string):
                continue
            letters = re.sub(r"'[^']*'", "", given.name)
            if "mm" in letters and not re.search("[HhKk]", letters):
                better = given.name.replace("mm", "MM")
                wrong = "`mm` are minutes, and there are no hours beside them"
            elif re.search(r"[HhKk]\W?MM", letters):
                better = re.sub(r"([HhKk]\W?)MM", r"\1mm", given.name)
                wrong = "`MM` are months, and they stand behind hours"
            else:
                continue
            message = f"in the pattern '{given.name}', {wrong}"
            yield "date-pattern", message, f"did you mean '{better}'?", call


def _commas(tree: exp.Expression, text: str) -> Iterator[_Found]:
    """Tables behind commas where nothing says which of their records belong together."""
    for select in tree.find_all(exp.Select):
        if select.args.get("where") is not None:
            continue
        for join in select.args.get("joins") or ():
            # The parser makes the same of CROSS JOIN.
            if isinstance(join.this, exp.Table) and _is_behind_comma(join.this, text):
                yield (
                    "comma-join",
                    "a comma joins each record with each one, as no condition says which belong "
                    "together",
                    "write JOIN … ON …; CROSS JOIN if each with each is meant",
                    join.this,
                )


def _is_behind_comma(table: exp.Table, text: str) -> bool:
    starts = [each.meta["start"] for each in table.walk() if "start" in each.meta]
    return bool(starts) and text[: min(starts)].rstrip(" \t\n`").endswith(",")


def _unnamed(tree: exp.Expression) -> Iterator[_Found]:
    """Columns of the result that are called like the text of an expression."""
    while isinstance(tree, exp.SetOperation | exp.Subquery):
        tree = tree.this
    for item in tree.selects if isinstance(tree, exp.Select) else ():
        if isinstance(item, exp.Alias | exp.Aliases | exp.Column | exp.Star | exp.Dot):
            continue
        if isinstance(item, exp.Anonymous) and item.name.lower() in _NAMED_BY_THEMSELVES:
            continue
        yield (
            "unnamed-column",
            "a column of the result has no name, so that the text of its expression becomes one",
            "give it a name: `… AS name`",
            item,
        )


def _event_time(definition: Definition, name: str, index: int) -> Iterator[Flaw]:
    """An event time that is none of the columns that a source declares."""
    for event in definition.snapshot.metadata:
        if not isinstance(event, SetPollingSource):
            continue
        result = result_of_source(event, meanings=False)
        if result is None or getattr(event.fetch, "event_time", None) is not None:
            continue
        columns = [each.name for each in result.columns]
        if name not in columns:
            yield Flaw(
                "event-time-column",
                f"the source declares no column '{name}', so the event time is that of ingestion",
                did_you_mean(name, columns, "declare it, or say by `fetch.eventTime` what it is"),
                ("metadata", index, "eventTimeColumn"),
                length=len(name),
            )
