"""Which rows of a batch are new or changed: the parts of merge strategies that compare keys.

Keys and values are compared null-safely, and each side of a comparison is a struct that is null
only where the side is absent, so that a NULL neither loses nor repeats a row, as it may in the
reference. Frames hold `OP` and `ROW` (`merge_input`) beside the data; results also hold `PAIR`.
Source: specification, "Merge Strategies"; RFC-015.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from odfbuild.engine.spark.results.frames import quote, sql_type
from odfbuild.engine.spark.results.hidden import FILE, OP, PAIR, ROW
from odfbuild.odf.operation import APPEND, CORRECT_FROM, CORRECT_TO, RETRACT
from odfbuild.odf.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_NEW = "__odfbuild_new"
_OLD = "__odfbuild_old"


def unseen(frame: DataFrame, seen: DataFrame, key: Sequence[str]) -> DataFrame:
    """Rows whose key is not among those `seen`."""
    return _join_keys(frame, seen, key, "left_anti")


def only(frame: DataFrame, seen: DataFrame, key: Sequence[str]) -> DataFrame:
    """Rows whose key is among those `seen`."""
    return _join_keys(frame, seen, key, "left_semi")


def first_file_of_each_key(frame: DataFrame, key: Sequence[str]) -> DataFrame:
    """Of files that are read together, rows whose key is in no file before theirs."""
    partition = ", ".join(map(quote, key))
    first = frame.selectExpr("*", f"min({FILE}) OVER (PARTITION BY {partition}) AS {_NEW}")
    return first.where(f"{_NEW} = {FILE}").drop(_NEW)


def _join_keys(frame: DataFrame, seen: DataFrame, key: Sequence[str], how: str) -> DataFrame:
    keys = seen.selectExpr(*[f"{quote(k)} AS {quote('__odfbuild_key_' + k)}" for k in key])
    same = " AND ".join(f"{quote(k)} <=> {quote('__odfbuild_key_' + k)}" for k in key)
    return frame.join(keys, _expr(same), how)


def project(ledger: DataFrame, key: Sequence[str], vocab: Vocabulary) -> DataFrame:
    """The current state: the latest record of each key, unless that is a retraction."""
    return latest(ledger, key, vocab).where(f"{quote(vocab.operation_type)} != {RETRACT}")


def latest(ledger: DataFrame, key: Sequence[str], vocab: Vocabulary) -> DataFrame:
    """The latest record of each key, whatever its operation."""
    return _last(ledger, key, quote(vocab.offset))


def last_of_each_key(frame: DataFrame, key: Sequence[str]) -> DataFrame:
    """Of the rows of a batch that share a key the one that came last."""
    return _last(frame, key, ROW)


def differences(
    frame: DataFrame,
    state: DataFrame,
    key: Sequence[str],
    compared: Sequence[str],
    vocab: Vocabulary,
    *,
    absent: Literal["retracted", "kept"],
) -> DataFrame:
    """Operations that bring the current state up to `frame`, in one pass over the joined sides.

    Rows of `frame` whose operation is a retraction delete their key. Keys that `frame` has not are
    `absent`.
    """
    columns = [name for name in frame.columns if name not in (ROW, OP)]
    new = frame.selectExpr(f"struct(*) AS {_NEW}")
    kinds = {f.name: sql_type(f.dataType) for f in frame.schema.fields}
    fields = [
        f"{quote(name) if name in state.columns else f'CAST(NULL AS {kinds[name]})'} "
        f"AS {quote(name)}"
        for name in columns
    ]
    old = state.selectExpr(f"struct({', '.join(fields)}, {quote(vocab.offset)} AS {ROW}) AS {_OLD}")
    same_key = " AND ".join(f"{_NEW}.{quote(k)} <=> {_OLD}.{quote(k)}" for k in key)
    sides = new.join(old, _expr(same_key), "full_outer" if absent == "retracted" else "left_outer")

    def record(operation: int, side: str, pair: str) -> str:
        values = [f"{side}.{quote(name)} AS {quote(name)}" for name in columns]
        return f"struct({operation} AS {OP}, {', '.join(values)}, {pair}.{ROW} AS {PAIR})"

    changed = " OR ".join(_is_changed(name, vocab) for name in compared) or "false"
    retracted = f"array({record(RETRACT, _OLD, _OLD)})"
    operations = (
        f"CASE WHEN {_NEW} IS NULL THEN {retracted} "
        f"WHEN {_NEW}.{OP} = {RETRACT} THEN CASE WHEN {_OLD} IS NOT NULL THEN {retracted} END "
        f"WHEN {_OLD} IS NULL THEN array({record(APPEND, _NEW, _NEW)}) "
        f"WHEN {changed} THEN array({record(CORRECT_FROM, _OLD, _NEW)}, "
        f"{record(CORRECT_TO, _NEW, _NEW)}) END"
    )
    return sides.selectExpr(f"inline({operations})")


def paired(frame: DataFrame, key: Sequence[str]) -> DataFrame:
    """A changelog with `PAIR`: operations of a key keep their order, corrections stand together.

    The n-th correction "to" of a key belongs to its n-th "from". One without the other stays where
    it is.
    """
    keys = ", ".join(quote(k) for k in key)
    half = f"({OP} IN ({CORRECT_FROM}, {CORRECT_TO}))"
    numbered = frame.selectExpr(
        "*", f"row_number() OVER (PARTITION BY {keys}, {OP} ORDER BY {ROW}) AS __odfbuild_nth"
    )
    start = f"min(CASE WHEN {OP} = {CORRECT_FROM} THEN {ROW} END)"
    partner = f"{start} OVER (PARTITION BY {keys}, {half}, __odfbuild_nth)"
    return numbered.selectExpr(
        *[quote(name) for name in frame.columns],
        f"CASE WHEN {half} THEN coalesce({partner}, {ROW}) ELSE {ROW} END AS {PAIR}",
    )


def with_times_of_undone(
    frame: DataFrame,
    state: DataFrame | None,
    key: Sequence[str],
    file: Sequence[str],
    vocab: Vocabulary,
) -> DataFrame:
    """A changelog of a source without event times, whose records all have that of their batch.

    A record that takes back another one is equal to it, so it gets its event time: of the record
    of its key before it in the batch, else of that in the current `state`.
    """
    name, columns = quote(vocab.event_time), frame.columns
    keys, order = ", ".join(map(quote, key)), ", ".join([*file, ROW])
    is_undone = f"{OP} IN ({RETRACT}, {CORRECT_FROM})"
    before = (
        f"last(CASE WHEN NOT {is_undone} THEN {name} END, true) OVER (PARTITION BY {keys} "
        f"ORDER BY {order} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    )
    found = frame.selectExpr("*", f"{before} AS {_NEW}", f"CAST(NULL AS TIMESTAMP) AS {_OLD}")
    if state is not None:
        kept = [each for each in key if each in state.columns]
        names = [f"{quote(each)} AS {quote('__odfbuild_key_' + each)}" for each in kept]
        times = state.selectExpr(*names, f"{name} AS {_OLD}")
        same = " AND ".join(f"{quote(k)} <=> {quote('__odfbuild_key_' + k)}" for k in kept)
        found = found.drop(_OLD).join(times, _expr(same), "left_outer")
    time = f"CASE WHEN {is_undone} THEN coalesce({_NEW}, {_OLD}, {name}) ELSE {name} END"
    return found.selectExpr(
        *[f"{time} AS {name}" if c == vocab.event_time else quote(c) for c in columns]
    )


def _last(frame: DataFrame, key: Sequence[str], order: str) -> DataFrame:
    names = ", ".join(quote(name) for name in frame.columns)
    newest = f"max_by(struct({names}), {order}) AS r"
    return frame.groupBy(*[quote(k) for k in key]).agg(_expr(newest)).select("r.*")


def _is_changed(name: str, vocab: Vocabulary) -> str:
    new, old = f"{_NEW}.{quote(name)}", f"{_OLD}.{quote(name)}"
    different = f"NOT ({new} <=> {old})"
    if name == vocab.event_time:
        # A batch without event time says nothing about it.
        return f"({new} IS NOT NULL AND {different})"
    return different


def _expr(text: str) -> Column:
    from pyspark.sql.functions import expr

    return expr(text)
