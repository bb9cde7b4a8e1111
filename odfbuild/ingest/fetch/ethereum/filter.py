"""`fetch.filter`: SQL over the columns of log entries, and the part that the node evaluates.

The node can narrow down by block number, address and topics; what it cannot do is done here, so
every filter gives exactly the entries that it describes. Pure. Source: reference behaviour,
`EthereumLogs`; JSON-RPC, `eth_getLogs`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from odfbuild.errors import InDefinition, IngestError
from odfbuild.ingest.fetch.ethereum.event import parse_event
from odfbuild.ingest.fetch.ethereum.log import COLUMNS, TOPICS, Log
from odfbuild.values import Value

if TYPE_CHECKING:
    from sqlglot import exp

Values = frozenset[bytes] | None
"""Values that a column may have; `None`: any."""

_SELECTOR = "eth_event_selector"
_LAST = 2**64 - 1
_MIRRORED = {"lt": "gt", "lte": "gte", "gt": "lt", "gte": "lte", "eq": "eq", "neq": "neq"}
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "neq": operator.ne,
    "lt": operator.lt,
    "lte": operator.le,
    "gt": operator.gt,
    "gte": operator.ge,
}


class FileAccess(Value):
    """Entries that the node is asked for: blocks `first` to `last`, and values of columns."""

    first: int = 0
    last: int = _LAST
    address: Values = None
    topics: tuple[Values, Values, Values, Values] = (None, None, None, None)

    @property
    def is_empty(self) -> bool:
        """Whether no entry at all can be meant."""
        return self.first > self.last or frozenset() in (self.address, *self.topics)

    def both(self, other: FileAccess) -> FileAccess:
        """Entries within this and `other`."""
        return FileAccess(
            max(self.first, other.first),
            min(self.last, other.last),
            _common(self.address, other.address),
            _four(map(_common, self.topics, other.topics)),
        )

    def either(self, other: FileAccess) -> FileAccess:
        """At least the entries within this or `other`."""
        if self.is_empty or other.is_empty:
            return other if self.is_empty else self
        return FileAccess(
            min(self.first, other.first),
            max(self.last, other.last),
            _united(self.address, other.address),
            _four(map(_united, self.topics, other.topics)),
        )


class LogFilter(Value):
    """`accepts` is the condition (`None`: unknown, which is no); `reach` covers what it accepts."""

    accepts: Callable[[Log], bool | None]
    reach: FileAccess


EVERYTHING = LogFilter(lambda log: True, FileAccess())
_NOTHING = FileAccess(first=1, last=0)


def parse_filter(text: str) -> LogFilter:
    """Read the condition of a `WHERE` clause. Raises `IngestError`."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        # The nearest relative of the reference's dialect; `;` ends statements, not conditions.
        tree = sqlglot.parse_one(text.strip(), read="postgres")
        return _condition(tree)
    except SqlglotError as error:
        first = str(error).splitlines()[0]
        raise _refused(text, f"it cannot be parsed: {first}") from None
    except _Unusable as error:
        raise _refused(text, str(error)) from None


def of_event(selector: bytes) -> LogFilter:
    """Entries with `selector` as their first topic."""
    return _equal_to("topic0", [selector])


def all_of(filters: Sequence[LogFilter]) -> LogFilter:
    """What every one of `filters` accepts."""
    found = EVERYTHING
    for each in filters:
        found = _and(found, each)
    return found


class _Unusable(Exception):
    pass


def _condition(node: exp.Expression) -> LogFilter:
    from sqlglot import exp

    match node:
        case exp.Paren():
            return _condition(node.this)
        case exp.And():
            return _and(_condition(node.left), _condition(node.right))
        case exp.Or():
            return _or(_condition(node.left), _condition(node.right))
        case exp.Not():
            return _not(_condition(node.this))
        case exp.Boolean():
            value = bool(node.this)
            return LogFilter(lambda log: value, FileAccess() if value else _NOTHING)
        case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            return _comparison(node)
        case exp.Between():
            low, high = exp.GTE, exp.LTE
            return _and(
                _comparison(low(this=node.this, expression=node.args["low"])),
                _comparison(high(this=node.this, expression=node.args["high"])),
            )
        case exp.In() if node.expressions:
            column = _column(node.this)
            return _equal_to(column, [_value(each, column) for each in node.expressions])
        case exp.Is() if isinstance(node.expression, exp.Null):
            found = _is_null(_column(node.this))
            return _not(found) if node.args.get("negate") else found
    raise _Unusable(f"`{node.sql('postgres')}` is not a condition that it may hold")


def _comparison(node: exp.Binary) -> LogFilter:
    from sqlglot import exp

    name, left, right = node.key, node.left, node.right
    if not isinstance(left, exp.Column):
        name, left, right = _MIRRORED[name], right, left
    column = _column(left)
    value = _value(right, column)
    compare = _OPERATORS[name]

    def accepts(log: Log) -> bool | None:
        found = getattr(log, column)
        return None if found is None else compare(found, value)

    if name == "eq":
        return _equal_to(column, [value])
    if column != "block_number":
        return LogFilter(accepts, FileAccess())
    reach = {
        "lt": FileAccess(last=value - 1),
        "lte": FileAccess(last=value),
        "gt": FileAccess(first=value + 1),
        "gte": FileAccess(first=value),
    }
    return LogFilter(accepts, reach.get(name, FileAccess()))


def _equal_to(column: str, values: Sequence[Any]) -> LogFilter:
    wanted = frozenset(values)

    def accepts(log: Log) -> bool | None:
        found = getattr(log, column)
        return None if found is None else found in wanted

    reach = FileAccess()
    if column == "block_number":
        reach = FileAccess(first=min(wanted), last=max(wanted))
    elif column == "address":
        reach = FileAccess(address=wanted)
    elif column in TOPICS:
        position = TOPICS.index(column)
        reach = FileAccess(topics=_four(wanted if n == position else None for n in range(4)))
    return LogFilter(accepts, reach)


def _is_null(column: str) -> LogFilter:
    return LogFilter(lambda log: getattr(log, column) is None, FileAccess())


def _and(one: LogFilter, other: LogFilter) -> LogFilter:
    def accepts(log: Log) -> bool | None:
        results = (one.accepts(log), other.accepts(log))
        return False if False in results else None if None in results else True

    return LogFilter(accepts, one.reach.both(other.reach))


def _or(one: LogFilter, other: LogFilter) -> LogFilter:
    def accepts(log: Log) -> bool | None:
        results = (one.accepts(log), other.accepts(log))
        return True if True in results else None if None in results else False

    return LogFilter(accepts, one.reach.either(other.reach))


def _not(inner: LogFilter) -> LogFilter:
    def accepts(log: Log) -> bool | None:
        result = inner.accepts(log)
        return None if result is None else not result

    return LogFilter(accepts, FileAccess())


def _column(node: exp.Expression) -> str:
    from sqlglot import exp

    if not isinstance(node, exp.Column):
        raise _Unusable(f"`{node.sql('postgres')}` stands where a column of the logs should")
    name = str(node.name)
    if node.table or name not in COLUMNS.names:
        raise _Unusable(f"there is no column '{node.sql('postgres')}'")
    if name == "block_timestamp":
        raise _Unusable("many nodes do not tell `block_timestamp` with a log entry")
    return name


def _value(node: exp.Expression, column: str) -> Any:
    from sqlglot import exp

    wants_bytes = column not in ("block_number", "transaction_index", "log_index")
    match node:
        case exp.HexString() if wants_bytes:
            try:
                return bytes.fromhex(node.this)
            except ValueError:
                raise _Unusable(f"X'{node.this}' has an odd number of digits") from None
        case exp.Anonymous() if wants_bytes and str(node.this).lower() == _SELECTOR:
            signature = node.expressions[0] if len(node.expressions) == 1 else None
            if isinstance(signature, exp.Literal) and signature.is_string:
                return parse_event(signature.this).selector
        case exp.Literal() if not wants_bytes and not node.is_string and node.this.isdecimal():
            return int(node.this)
    kind = "bytes (X'...')" if wants_bytes else "a whole number"
    raise _Unusable(f"`{column}` is compared with {kind}, not with `{node.sql('postgres')}`")


def _common(one: Values, other: Values) -> Values:
    return other if one is None else one if other is None else one & other


def _united(one: Values, other: Values) -> Values:
    return None if one is None or other is None else one | other


def _four(values: Any) -> tuple[Values, Values, Values, Values]:
    one, two, three, four = values
    return one, two, three, four


def _refused(text: str, reason: str) -> IngestError:
    return IngestError(
        f"`filter: {' '.join(text.split())}` cannot be used: {reason}",
        code="E0417",
        location=InDefinition.of("fetch", "filter"),
        notes=(f"the columns are {', '.join(COLUMNS.names)}",),
        help=f"compare columns with values by =, <>, <, <=, >, >=, between, in, is null, and join "
        f"that by and, or, not; X'00ff' writes bytes, {_SELECTOR}('Name(type)') a topic; "
        "everything else belongs to `preprocess`",
    )
