"""What the text of a query tells of the steps that keep its result: which records they need.

The engine asks the same rules about the plan of Spark's optimiser when it runs, and decides. Where
only that plan can tell, this says so. Source of the rules: `affected_keys`, `kept_totals` and
`one_by_one`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from odfbuild.fallbacks import fell_back
from odfbuild.odf.schema import arrow
from odfbuild.sql.answers import told_once
from odfbuild.sql.increments.affected_keys import parts_of
from odfbuild.sql.increments.kept_totals import KeptLevels, kept_totals_of
from odfbuild.sql.increments.nodes import Node
from odfbuild.sql.increments.one_by_one import additions_of
from odfbuild.sql.increments.parts import Parts, Place
from odfbuild.sql.increments.plan_inputs import Undivided, Views
from odfbuild.sql.increments.text_nodes import INTEGERS, TextNode, Texts, Unknown, type_in_spark
from odfbuild.sql.increments.text_plan import plan_of
from odfbuild.values import Value

Steps = tuple[tuple[str, str | None], ...]
Columns = tuple[tuple[str, str | None, bool], ...]
"""Names of columns, their types in Spark, and whether they are times without microseconds."""
Question = tuple[Steps, tuple[tuple[str, Columns], ...], tuple[str, ...], tuple[str, ...]]


class Told(Value):
    """What a step needs.

    `added`: new records alone, if all of them are appended; `totals`: beside these the result so
    far; of inputs in `met`, which have none, what these meet. `kept`: totals of groups, which are
    kept, and new records, or those of `kept_keys`. `keys`: each entry is what is equal for the
    records of a key, such as `orders.id`; inputs in `whole` are read in full then. Without
    `keys`, `why` all records are needed, at which `place`, and what `help`s. `sure` is false where
    the engine may find another way.
    """

    added: bool = False
    totals: bool = False
    kept: bool = False
    kept_keys: tuple[tuple[str, ...], ...] = ()
    met: frozenset[str] = frozenset()
    keys: tuple[tuple[str, ...], ...] = ()
    whole: frozenset[str] = frozenset()
    why: str = ""
    help: str = ""
    place: Place | None = None
    sure: bool = True


NOT_TOLD = Told(
    why="only the engine can tell whether it needs them",
    help="divide the query into datasets of a join, a grouping or a window function each",
    sure=False,
)
"""For a query that is not followed."""


def columns_of(schema: arrow.Schema) -> Columns:
    """The columns of a committed dataset."""
    return tuple(
        (
            field.name,
            type_in_spark(field),
            field.type.name == "timestamp" and field.type.unit == "ms",
        )
        for field in schema
    )


def needed_records(
    steps: Steps,
    inputs: Mapping[str, Columns],
    unchanged: Sequence[str],
    system: Sequence[str] = ("offset", "op", "system_time"),
) -> Told:
    """What a step of the queries needs; inputs that are `unchanged` have no new records.

    `system` are the columns that no key is made of.
    """
    return _told((steps, tuple(sorted(inputs.items())), tuple(sorted(unchanged)), tuple(system)))


@told_once(Told)
def _told(question: Question) -> Told:
    steps, given, unchanged, system = question
    inputs = dict(given)
    views = Views(
        {alias: alias for alias in inputs},
        frozenset(unchanged),
        {alias: frozenset(system) for alias in inputs},
        {alias: frozenset(n for n, _, ms in columns if ms) for alias, columns in given},
    )
    try:
        plan = plan_of(steps, {a: [(n, t) for n, t, _ in columns] for a, columns in given})
        return _needed(plan, views, inputs)
    except (Unknown, RecursionError):
        return NOT_TOLD
    except Exception as error:  # a defect here must not keep a dataset from being planned
        fell_back(__name__, "which records a step needs is told at run time", error)
        return NOT_TOLD


def _needed(plan: TextNode, views: Views, inputs: Mapping[str, Columns]) -> Told:
    reader = Texts()
    sure = True
    try:
        additions = additions_of(reader, plan, views)
    except Unknown:
        additions, sure = None, False
    kept_keys: tuple[tuple[str, ...], ...] | None = None
    try:
        levels = kept_totals_of(reader, plan, views)
        kept_keys = None if levels is None else _keys_of(levels, inputs)
    except Unknown:
        sure = False
    kept = kept_keys is not None
    met: frozenset[str] = frozenset()
    added, totals = additions is not None, bool(additions and additions.totals)
    if additions is not None:
        met = additions.whole | views.unchanged
    try:
        parts = parts_of(reader, plan, views)
    except Undivided as why:
        return Told(
            added=added,
            totals=totals,
            kept=kept,
            kept_keys=kept_keys or (),
            met=met,
            why=str(why),
            help=why.help,
            place=_place(why.node),
            sure=sure or added or kept,
        )
    keys = _keys(parts, inputs)
    if keys is None:
        return Told(
            added=added,
            totals=totals,
            kept=kept,
            kept_keys=kept_keys or (),
            met=met,
            why="keys of these types cannot be compared",
            help="use columns of the same type on both sides",
        )
    return Told(added=added, totals=totals, kept=kept, met=met, keys=keys, whole=parts.whole)


def _keys_of(
    levels: KeptLevels, inputs: Mapping[str, Columns]
) -> tuple[tuple[str, ...], ...] | None:
    """The keys by which rows of levels are found; `None` where some cannot be compared."""
    found = [_keys(each.parts, inputs) for each in levels.levels if each.parts is not None]
    if None in found:
        return None
    return tuple(dict.fromkeys(chain.from_iterable(each for each in found if each)))


def _keys(parts: Parts, inputs: Mapping[str, Columns]) -> tuple[tuple[str, ...], ...] | None:
    """Columns that are equal for all records of a key; `None` where none can be compared."""
    found: dict[tuple[str, ...], None] = {}
    for space in parts.spaces:
        usable = 0
        for columns in zip(*(reading.columns for reading in space), strict=True):
            names = [(each.alias, c.name) for each, c in zip(space, columns, strict=True)]
            kinds = {_family(inputs[alias], name) for alias, name in names}
            is_cut = any(column.length for column in columns)
            usable += kinds <= {"timestamp", "date"} if is_cut else len(kinds) == 1
            found[tuple(dict.fromkeys(f"{alias}.{name}" for alias, name in names))] = None
        if not usable:
            return None
    return tuple(found)


def _family(columns: Columns, name: str) -> str:
    kind = next((kind for known, kind, _ in columns if known == name), None) or ""
    return "integer" if kind in INTEGERS else kind


def _place(node: Node) -> Place | None:
    from odfbuild.sql.places import place_of

    origin = getattr(node, "origin", None)
    if origin is None:
        return None
    found = place_of(origin.part, origin.text, origin.step, origin.word)
    return Place(origin.step, found.line or 1, found.column or 1)
