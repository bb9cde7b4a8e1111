"""Policy for sources whose columns differ from those of the dataset (schema drift).

By default they are an error, raised where the schemas meet. Other policies fit the columns into the
dataset: those that are gone are empty, those of another type are converted, new ones are left out
or appended. Nothing is converted behind a query, which is there to do that itself.
Source: the policies are those of dbt's `on_schema_change`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from odfbuild.engine.contract import NO_DRIFT, Drift, IngestTask
from odfbuild.engine.spark.reading.values import converted, misfit
from odfbuild.engine.spark.results.frames import (
    in_members,
    more_members,
    quote,
    sql_type,
    to_spark_type,
)
from odfbuild.engine.spark.results.hidden import MISFIT, OF_READING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def fitted(frame: DataFrame, task: IngestTask, *, convert: bool) -> tuple[DataFrame, Drift]:
    """`frame` with the columns of the dataset in their order, and how it differed from them.

    `convert` converts columns of another type; values that cannot be are noted in `MISFIT`.
    """
    if task.on_schema_change == "fail" or task.history_schema is None:
        return frame, NO_DRIFT
    found = {f.name: sql_type(f.dataType) for f in frame.schema.fields}
    names = committed_names(frame, task) if convert else {name: name for name in found}
    by_committed = {new: old for old, new in names.items()}
    expected = {field.name: field for field in _data_columns(task)}
    columns, misfits, missing, retyped = [], [], [], []
    members: list[str] = []
    for name, field in expected.items():
        kind = sql_type(to_spark_type(field.type))
        source = by_committed.get(name)
        if source is None:
            # An event time that the source has not is filled in by the merge.
            if field.nullable:
                missing.append(name)
                columns.append(f"CAST(NULL AS {kind}) AS {quote(name)}")
        elif not convert or found[source] == kind or _becomes_a_time(source, found[source], task):
            columns.append(quote(source))
        elif more := more_members(frame.schema[source].dataType, to_spark_type(field.type), source):
            members += more
            value = quote(source)
            if task.on_schema_change == "ignore":
                before = frame.schema[source].dataType
                value = f"{in_members(value, before, to_spark_type(field.type))} AS {value}"
            columns.append(value)
        elif _can_convert(frame, source, kind):
            retyped.append(f"{source}: {found[source].upper()}, not {kind.upper()}")
            before = frame.schema[source].dataType
            value, lost = converted(source, before, to_spark_type(field.type), task.local_times)
            columns.append(f"{value} AS {quote(source)}")
            misfits.append(lost)
        else:
            columns.append(quote(source))
    operation = task.vocab.operation_type
    hidden = [n for n in found if n in OF_READING or names[n] == operation]
    new = [name for name in found if names[name] not in expected and name not in hidden]
    columns += [quote(name) for name in hidden]
    if task.on_schema_change == "append_new_columns":
        columns += [quote(name) for name in new]
    if misfits:
        found_here = misfit(misfits)
        if MISFIT in hidden:
            columns.remove(quote(MISFIT))
            found_here = f"coalesce({MISFIT}, {found_here})"
        columns.append(f"{found_here} AS {MISFIT}")
    return frame.selectExpr(*columns), Drift((*new, *members), tuple(missing), tuple(retyped))


def expected_columns(
    frame: DataFrame, task: IngestTask, found: pa.Schema | None
) -> pa.Schema | None:
    """The columns of a source as the dataset has them, in the order of the source.

    `found` are those that the source declares itself, and the result where nothing is converted.
    """
    if task.on_schema_change == "fail" or task.history_schema is None:
        return found
    names = committed_names(frame, task)
    committed = {field.name: field for field in task.history_schema}
    fields = []
    for name in frame.columns:
        if name in OF_READING:
            continue
        if names[name] in committed:
            field = committed[names[name]].with_name(name)
            # Records without an event time get one later.
            is_time = name == task.vocab.event_time
            fields.append(field.with_nullable(True) if is_time else field)
        elif found is not None:
            fields.append(found.field(name))
        else:
            fields.append(pa.field(name, pa.string()))
    return pa.schema(fields)


def committed_names(frame: DataFrame, task: IngestTask) -> dict[str, str]:
    """The name that each column will have: those called like system columns get an underscore."""
    vocab = task.vocab
    taken = {vocab.offset, vocab.system_time}
    if not task.merge.HAS_CHANGES:
        taken.add(vocab.operation_type)
    return {name: f"_{name}" if name in taken else name for name in frame.columns}


def _data_columns(task: IngestTask) -> Iterator[pa.Field]:
    system = (task.vocab.offset, task.vocab.operation_type, task.vocab.system_time)
    for field in task.history_schema or ():
        if field.name not in system:
            yield field


def _becomes_a_time(name: str, kind: str, task: IngestTask) -> bool:
    """Whether reading converts the column to a time anyway."""
    whole = ("string", "tinyint", "smallint", "int", "bigint")
    return name == task.vocab.event_time and kind in whole


def _can_convert(frame: DataFrame, name: str, kind: str) -> bool:
    from pyspark.errors import AnalysisException

    try:
        frame.selectExpr(f"try_cast({quote(name)} AS {kind})")
    except AnalysisException:
        return False
    return True
