"""Windows of Flink as Spark's `window` and `session_window`, or as rows for each window.

Two forms become one. `GROUP BY TUMBLE(time, INTERVAL …)` with `TUMBLE_START(…)` and the like beside
it, and the table function `TABLE(TUMBLE(TABLE t, DESCRIPTOR(time), INTERVAL …))` whose columns
`window_start`, `window_end` and `window_time` are grouped by. HOP and SESSION are written likewise.
`CUMULATE` is a table function only: a record stands there once for each window that it lies in.
All but sessions begin at multiples of their length since 1970, and windows of one length are final
when the watermark passes their end; those of RisingWave change until then, which a result that is
only appended to cannot tell. Source: Apache Flink, "Group Window Aggregation", "Windowing
table-valued functions".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

from odfbuild.sql.translate.allowed import FIXED_MICROS
from odfbuild.sql.translate.spark_calls import call, start_of_bin

Refuse = Callable[[exp.Expression, str], None]

_GROUPED = {"TUMBLE": "window", "HOP": "window", "SESSION": "session_window"}
"""Windows that are grouped by, and the function of Spark that makes them."""
_INTERVALS = {"TUMBLE": 1, "HOP": 2, "SESSION": 1}
_CUMULATE = "CUMULATE"
_COLUMNS = ("window_start", "window_end", "window_time")
_PARTS = {"START": "start", "END": "end", "ROWTIME": "time"}
_WAY_OUT = "Spark's own form is GROUP BY window(time, '1 hour')"


def to_spark_windows(tree: exp.Expression, engine: str, refuse: Refuse) -> None:
    """Put windows of `engine` in Spark's terms, in place; `refuse` is told of what cannot be."""
    told: list[exp.Expression] = []

    def tell(node: exp.Expression, why: str) -> None:
        told.append(node)
        refuse(node, why)

    if engine == "flink":
        for select in list(tree.find_all(exp.Select)):
            _functions(select, tell)
            _tables(select, tell)
            _cumulated(select, tell)
    for node in () if told else tree.find_all(exp.Anonymous):
        name = node.name.upper()
        if name in (*_GROUPED, _CUMULATE, "DESCRIPTOR"):
            refuse(node, f"{name} of {engine} has no translation here: {_WAY_OUT}")


# --- GROUP BY TUMBLE(…) ---


def _functions(select: exp.Select, refuse: Refuse) -> None:
    group = select.args.get("group")
    found = [each for each in (group.expressions if group else ()) if _shape(each)]
    if not found:
        return
    if len(found) > 1:
        refuse(found[1], "a query groups by one window")
        return
    made = found[0]
    shape, arguments = made.name.upper(), made.expressions
    window = _window(shape, arguments[0], arguments[1:], refuse)
    if window is None:
        return
    wanted = [each.sql() for each in arguments]
    for node in list(_of(select, exp.Anonymous)):
        head, _, part = node.name.upper().partition("_")
        if head != shape or part not in _PARTS:
            continue
        if [each.sql() for each in node.expressions] != wanted:
            refuse(node, f"{node.name}() is of another window than the one that is grouped by")
            return
        node.replace(_part(window, _PARTS[part]))
    made.replace(window)


def _shape(node: exp.Expression) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.upper() in _GROUPED


# --- TABLE(TUMBLE(…)) ---


def _tables(select: exp.Select, refuse: Refuse) -> None:
    source = select.args.get("from_")
    table = source.this if source else None
    made = _table_call(table)
    if table is None or made is None or made.name.upper() == _CUMULATE:
        return
    shape = made.name.upper()
    told = _arguments(made, refuse)
    if told is None:
        return
    name, keys, time, lengths = told
    group = select.args.get("group")
    grouped = {e.name: e for e in (group.expressions if group else ()) if _is_column(e)}
    if not {"window_start", "window_end"} <= grouped.keys():
        refuse(made, "group by window_start, window_end: windows without that have no translation")
        return
    window = _window(shape, time, lengths, refuse)
    if window is None or group is None:
        return
    rest = [each for each in group.expressions if each not in grouped.values()]
    if shape == "SESSION" and {e.name for e in keys} != {e.name for e in rest}:
        refuse(made, "group by the columns of PARTITION BY, for each of which sessions are found")
        return
    group.set("expressions", [window, *rest])
    for node in list(_of(select, exp.Column)):
        if node.name in _COLUMNS and node.find_ancestor(exp.Group) is None:
            part = _part(window, node.name.removeprefix("window_"))
            is_named = isinstance(node.parent, exp.Alias) or node.parent is not select
            node.replace(part if is_named else exp.alias_(part, node.name))
    table.replace(_table(name, table.args.get("alias")))


def _table_call(table: exp.Expression | None) -> exp.Anonymous | None:
    """The window function that a table is made by."""
    node = table.this if isinstance(table, exp.Table) else None
    if isinstance(node, exp.Anonymous) and node.name.upper() == "TABLE" and node.expressions:
        node = node.expressions[0]
    is_window = isinstance(node, exp.Anonymous) and node.name.upper() in (*_GROUPED, _CUMULATE)
    return node if is_window else None


Arguments = tuple[exp.Column, list[exp.Expression], exp.Expression, list[exp.Expression]]
"""A table, its keys, its time, and intervals."""


def _arguments(made: exp.Anonymous, refuse: Refuse) -> Arguments | None:
    """What a table function is given."""
    name, *rest = made.expressions or [None]
    times = [n for n, e in enumerate(rest) if _is_descriptor(e)]
    if not isinstance(name, exp.Column) or not times or len(rest) < times[0] + 2:
        word = made.name.upper()
        refuse(made, f"write {word}(TABLE t, DESCRIPTOR(time), INTERVAL …), in this order")
        return None
    at = times[0]
    keys = [key for each in rest[:at] for key in _columns(each)]
    return name, keys, rest[at].expressions[0], rest[at + 1 :]


def _is_column(node: exp.Expression) -> bool:
    return isinstance(node, exp.Column) and node.name in _COLUMNS


def _columns(node: exp.Expression) -> list[exp.Expression]:
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node.unnest()]


def _is_descriptor(node: exp.Expression) -> bool:
    is_call = isinstance(node, exp.Anonymous) and node.name.upper() == "DESCRIPTOR"
    return is_call and len(node.expressions) == 1


def _table(name: exp.Column, alias: exp.Expression | None) -> exp.Table:
    parts = [each.copy() for each in name.parts]
    named = dict(zip(("this", "db", "catalog"), reversed(parts), strict=False))
    return exp.Table(**named, alias=alias)


# --- TABLE(CUMULATE(…)) ---


def _cumulated(select: exp.Select, refuse: Refuse) -> None:
    """Read the records, each once for every window from the first that it lies in."""
    for table in list(_of(select, exp.Table)):
        made = _table_call(table)
        if made is None or made.name.upper() != _CUMULATE:
            continue
        told = _arguments(made, refuse)
        if told is None:
            continue
        name, keys, time, lengths = told
        micros = [_micros(each) for each in lengths]
        if keys or not 2 <= len(micros) <= 3 or None in micros:
            refuse(made, "CUMULATE takes a time, a step and a length of days or less, as constants")
            continue
        step, length, offset = [*(each for each in micros if each is not None), 0][:3]
        if length % step:
            refuse(made, "the length of CUMULATE is a whole number of steps")
            continue
        table.replace(
            exp.Subquery(
                this=_with_windows(_table(name, None), time, step, length, offset),
                alias=table.args.get("alias"),
            )
        )


def _with_windows(
    table: exp.Table, time: exp.Expression, step: int, length: int, offset: int
) -> exp.Select:
    origin = exp.Literal.number(offset) if offset else None
    start = start_of_bin(time, length, origin)
    first = exp.Add(this=start_of_bin(time, step, origin), expression=exp.Literal.number(step))
    last = exp.Add(this=start, expression=exp.Literal.number(length))
    seconds = exp.Literal.string(f"{step // 10**6}.{step % 10**6:06}")
    ends = call(
        "sequence",
        call("timestamp_micros", first),
        call("timestamp_micros", last),
        exp.Interval(this=seconds, unit=exp.var("SECOND")),
    )
    started = exp.alias_(call("timestamp_micros", start), "window_start")
    ended = exp.alias_(call("explode", ends), "window_end")
    each = exp.select(exp.Star(), started, ended).from_(table)
    time_of = exp.alias_(_before(exp.column("window_end")), "window_time")
    return exp.select(exp.Star(), time_of).from_(exp.Subquery(this=each))


# --- Both ---


def _of(select: exp.Select, kind: type[exp.Expression]) -> Iterator[exp.Expression]:
    """Nodes of a query that are not those of a query in it."""
    for node in select.find_all(kind):
        if node.find_ancestor(exp.Select) is select:
            yield node


def _window(
    shape: str, time: exp.Expression, lengths: list[exp.Expression], refuse: Refuse
) -> exp.Expression | None:
    """`window(time, length, slide, offset)`; HOP says the slide first."""
    words = []
    for each in lengths:
        if not _micros(each):
            refuse(each, "the length of a window is an interval of days or less, as a constant")
            return None
        words.append(f"{each.name} {_unit(each).lower()}")
    steps = _INTERVALS[shape]
    if not steps <= len(words) <= steps + (shape != "SESSION"):
        refuse(time, f"{shape} takes a time and {steps} interval{'s' * (steps > 1)}")
        return None
    length, slide = words[steps - 1], words[0]
    given = [length]
    if len(words) > steps:
        given = [length, slide, words[steps]]
    elif steps > 1:
        given = [length, slide]
    return call(_GROUPED[shape], time, *map(exp.Literal.string, given))


def _micros(node: exp.Expression) -> int | None:
    """How long a constant interval is, if every one of its kind is as long."""
    if not isinstance(node, exp.Interval) or not isinstance(node.this, exp.Literal):
        return None
    width = FIXED_MICROS.get(_unit(node))
    return int(node.name) * width if width and node.name.isdigit() else None


def _unit(interval: exp.Expression) -> str:
    unit = interval.args.get("unit")
    return unit.name.upper().removesuffix("S") if isinstance(unit, exp.Var) else ""


def _part(window: exp.Expression, part: str) -> exp.Expression:
    """The start, end or time of the window that is grouped by."""
    if part != "time":
        return exp.column(part, table=window.name)
    return exp.paren(_before(exp.column("end", table=window.name)))


def _before(end: exp.Expression) -> exp.Expression:
    """The last millisecond that belongs to a window."""
    millisecond = exp.Interval(this=exp.Literal.string("0.001"), unit=exp.var("SECOND"))
    return exp.Sub(this=end.copy(), expression=millisecond)
