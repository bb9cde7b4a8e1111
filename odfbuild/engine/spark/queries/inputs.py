"""Views of inputs for queries: new records, or the current state of the whole history.

Sources: Open Data Fabric, "Retractions and corrections"; RFC-015.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from odfbuild.engine.contract import InputSlices
from odfbuild.engine.spark.internals.catalyst import Catalyst
from odfbuild.engine.spark.queries.present import write_state
from odfbuild.engine.spark.results.executor import computes_here
from odfbuild.engine.spark.results.frames import marked, quote, read_slices, union
from odfbuild.odf.operation import APPEND, CORRECT_FROM, CORRECT_TO, RETRACT
from odfbuild.odf.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_READ_IN_TURN = 16
"""Files of one step; each is planned apart, and more of them are cheaper to read at once and sort.
"""

LONG = 100_000
"""Records from which on it pays to look for those that were taken away first."""
_FEW_TAKEN = 10_000
_PLAIN = frozenset({"tinyint", "smallint", "int", "bigint", "string", "date", "timestamp"})
"""Types whose equal values have equal hashes, whatever the collation and the sign of zero."""


def empty_view(spark: SparkSession, each: InputSlices) -> None:
    """Make a view without records, with the columns of an input."""
    frame = read_slices(spark, (), each.schema, each.vocab)
    Catalyst(spark).show(frame, each.alias)


def new_records(spark: SparkSession, each: InputSlices, scratch: Path | None = None) -> DataFrame:
    """The new records of an input, in order of offsets; with `scratch`, few are handed over."""
    if not each.slices or each.first is None or each.last is None:
        return read_slices(spark, (), each.schema, each.vocab)
    offset = quote(each.vocab.offset)
    if len(each.files) <= _READ_IN_TURN:
        # Spark keeps the order of one file, but not that of several.
        frame = union(
            [read_slices(spark, [file], each.schema, each.vocab, scratch) for file in each.files]
        )
    else:
        frame = read_slices(spark, each.files, each.schema, each.vocab).orderBy(offset)
    if only_new(each):
        return frame
    return frame.where(f"{offset} BETWEEN {each.first} AND {each.last}")


def from_first(frame: DataFrame, each: InputSlices) -> DataFrame:
    """The new records of `frame`, which come from `each.slices`."""
    return frame if only_new(each) else frame.where(f"{quote(each.vocab.offset)} >= {each.first}")


def upto_last(frame: DataFrame, each: InputSlices) -> DataFrame:
    """The records of `frame`, which come from files of `each`, up to the newest."""
    return frame if only_new(each) else frame.where(f"{quote(each.vocab.offset)} <= {each.last}")


def only_new(each: InputSlices) -> bool:
    """Whether the new slices hold nothing else; a condition would read a column more."""
    if each.first is None or each.last is None:
        return not each.slices
    found: int = sum(pq.read_metadata(file).num_rows for file in each.files)
    return found == each.last - each.first + 1


def state(
    spark: SparkSession, each: InputSlices, files: Sequence[Path], scratch: Path | None = None
) -> DataFrame:
    """What all records of an input up to its newest amount to, in any order.

    `files` hold them. Each retraction takes away the newest equal record; what stays is appended.
    With `scratch`, few are handed over, and Arrow finds out about inputs that fit in memory.
    """
    takes_back = has_operations(files, each.vocab)
    if takes_back and scratch is not None and may_be_kept(each) and computes_here(spark):
        target = Path(tempfile.mkdtemp(dir=scratch)) / "state.parquet"
        if write_state(each, files, target):
            return read_slices(spark, (target,), each.schema, each.vocab, scratch)
    frame = upto_last(read_slices(spark, files, each.schema, each.vocab, scratch), each)
    if not takes_back:
        return frame
    is_long = each.last is not None and each.last >= LONG
    fold = _folded_where_taken if is_long else folded
    return marked(fold(frame, each.vocab), each.schema)


def may_be_kept(each: InputSlices) -> bool:
    """Whether what is found of an input may be used again; proofs read slices, by Spark alone."""
    return each.copies.side_cars is not None


def weight(vocab: Vocabulary) -> str:
    """How many records an operation adds: 1 or -1, as SQL."""
    return f"IF({quote(vocab.operation_type)} IN ({APPEND}, {CORRECT_TO}), 1, -1)"


def has_operations(files: Iterable[Path], vocab: Vocabulary) -> bool:
    """Whether files hold anything but appended records, from their statistics alone."""
    for file in files:
        metadata = pq.read_metadata(file)
        index = metadata.schema.names.index(vocab.operation_type)
        for group in range(metadata.num_row_groups):
            statistics = metadata.row_group(group).column(index).statistics
            if statistics is None or not statistics.has_min_max or statistics.max != 0:
                return True
    return False


def takes_too_much(spark: SparkSession, each: InputSlices, files: Sequence[Path]) -> bool:
    """Whether `files` retract more of some record than they hold, which then adds up to none."""
    from pyspark.sql.functions import expr

    if not has_operations(files, each.vocab):
        return False
    frame = upto_last(read_slices(spark, files, each.schema, each.vocab), each)
    near, _ = _near_taken(frame, each.vocab) or (frame, None)
    same = [quote(name) for name in _values(frame, each.vocab)]
    net = near.groupBy(*same).agg(expr(f"SUM({weight(each.vocab)}) AS __odf_net"))
    return bool(net.where("__odf_net < 0").limit(1).count())


def _folded_where_taken(frame: DataFrame, vocab: Vocabulary) -> DataFrame:
    """`folded`, where few records of a long history were ever taken away.

    Only records that may equal one of these are compared with each other, which sorts them.
    """
    found = _near_taken(frame, vocab)
    if found is None:
        return folded(frame, vocab)
    near, others = found
    return folded(near, vocab).unionAll(others.selectExpr(*_appended(frame, vocab)))


def _near_taken(frame: DataFrame, vocab: Vocabulary) -> tuple[DataFrame, DataFrame] | None:
    """Records that may equal one that was taken away, and the others; `None`: they are many."""
    plain = [
        quote(field.name)
        for field in frame.schema.fields
        if field.name in _values(frame, vocab) and field.dataType.simpleString() in _PLAIN
    ]
    mark = f"xxhash64({', '.join(plain)})"
    # In this form Spark leaves out files in which all is appended.
    removed = f"{quote(vocab.operation_type)} IN ({RETRACT}, {CORRECT_FROM})"
    taken = frame.where(removed).selectExpr(f"{mark} AS mark").distinct()
    marks = taken.limit(_FEW_TAKEN + 1).collect() if plain else []
    if not 0 < len(marks) <= _FEW_TAKEN:
        return None
    is_near = f"{mark} IN ({', '.join(str(row.mark) for row in marks)})"
    return frame.where(is_near), frame.where(f"NOT {is_near}")


def _values(frame: DataFrame, vocab: Vocabulary) -> list[str]:
    system = (vocab.offset, vocab.operation_type, vocab.system_time)
    return [name for name in frame.columns if name not in system]


def _appended(frame: DataFrame, vocab: Vocabulary) -> list[str]:
    name = vocab.operation_type
    return [f"{APPEND} AS {quote(n)}" if n == name else quote(n) for n in frame.columns]


def changes(spark: SparkSession, each: InputSlices, *, taken: bool) -> DataFrame:
    """The new records of an input that stay, or the earlier ones that they retract: `taken`."""
    frame = new_records(spark, each)
    if taken or has_operations(each.files, each.vocab):
        frame = marked(folded(frame, each.vocab, -1 if taken else 1), each.schema)
    return frame


def folded(frame: DataFrame, vocab: Vocabulary, kept: int = 1) -> DataFrame:
    """Records that are there more often than they are retracted; or less often, by `kept` -1."""
    same = ", ".join(map(quote, _values(frame, vocab)))
    sign = weight(vocab)
    return (
        frame.selectExpr(
            "*",
            f"SUM({sign}) OVER (PARTITION BY {same}) AS __odf_net",
            f"ROW_NUMBER() OVER (PARTITION BY {same}, {sign} ORDER BY {quote(vocab.offset)} DESC)"
            " AS __odf_rank",
        )
        .where(f"{sign} = {kept} AND __odf_rank <= {kept} * __odf_net")
        .selectExpr(*_appended(frame, vocab))
    )
