"""DataFusion as an engine of Open Data Fabric: `python engine.py`, on the socket ODF_ENGINE_SOCKET.

It computes queries that handle each record alone (`SELECT`, `WHERE`, `UNION ALL`, `unnest`), over
new records only, in DataFusion's own SQL. Anything that needs earlier records is refused.
"""

import json
import os
import re
import signal
import traceback
from collections.abc import Iterator
from concurrent import futures
from datetime import UTC, datetime
from pathlib import Path

import datafusion
import grpc
import messages
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from messages import Fields

TIME = pa.timestamp("ms", "UTC")
ROW_WISE = {"Projection", "Filter", "SubqueryAlias", "TableScan", "Union", "Unnest"}
UNREPEATABLE = r"\b(now|random|uuid|current_date|current_time|current_timestamp|today)\("
OPTIONS = datafusion.SQLOptions().with_allow_ddl(False).with_allow_dml(False)
OPTIONS = OPTIONS.with_allow_statements(False)


class InvalidQuery(Exception):
    """The author of the query has to change it."""


def execute_transform(request: Fields) -> bytes:
    offset, op, system_time, event_time = vocabulary(request.table(3))
    # One partition: the same order of records on every machine.
    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(1))
    retracts = False
    for each in request.tables(6):
        records = new_records(each)
        batches = records.to_batches() or [pa.RecordBatch.from_pylist([], records.schema)]
        context.register_record_batches(f'"{each.text(2)}"', [batches])
        operations = records[vocabulary(each.table(3))[1]]
        retracts = retracts or bool(pc.any(pc.not_equal(operations, 0)).as_py())
    result = computed(context, request.table(5))
    names = result.schema().names
    if clash := {offset, system_time}.intersection(names):
        raise InvalidQuery(f"the result has a column '{clash.pop()}', which the engine adds")
    if event_time not in names:
        raise InvalidQuery(f"the result has no column '{event_time}', only {', '.join(names)}")
    if retracts and op not in names:
        raise InvalidQuery(f"an input retracts records: select its column '{op}', too")
    first = request.number(7)
    count = write(result, request, first)
    interval = (first, first + count - 1) if count else None
    return messages.success(interval, watermark(request))


def vocabulary(fields: Fields | None) -> list[str]:
    """The names of the columns that each record has."""
    usual = ["offset", "op", "system_time", "event_time"]
    return [(fields and fields.text(n)) or name for n, name in enumerate(usual)]


def new_records(each: Fields) -> pa.Table:
    """The new records of an input by offset, with the columns that its schema has now."""
    offset, interval, schema = (
        vocabulary(each.table(3))[0],
        each.table(4),
        pq.read_schema(each.text(6)),
    )
    tables = [pq.read_table(path) for path in each.texts(5)]
    records = pa.concat_tables([schema.empty_table(), *tables], promote_options="permissive")
    records = records.select(schema.names).cast(schema).sort_by(offset)
    if interval is None:
        return records.slice(0, 0)
    first, last = interval.number(0), interval.number(1)
    return records.filter((pc.field(offset) >= first) & (pc.field(offset) <= last))


def computed(context: datafusion.SessionContext, sql: Fields | None) -> datafusion.DataFrame:
    """The result of the last query, if all of them handle each record alone."""
    result = None
    for number, step in enumerate(sql.tables(3) if sql else (), 1):
        try:
            result = context.sql_with_options(step.text(1), OPTIONS)
        except Exception as error:
            raise InvalidQuery(f"in query {number}: {error}") from None
        plan = result.logical_plan().display_indent()
        plan = re.sub(r'Utf8\w*\("(?:[^"\\]|\\.)*"\)', "''", plan)
        for node in (line.strip().partition(":")[0] for line in plan.splitlines()):
            if node not in ROW_WISE:
                raise InvalidQuery(
                    f"query {number} has a node {node}, which needs other records than new ones: "
                    "this engine handles each record alone (SELECT, WHERE, UNION ALL, unnest)"
                )
        if found := re.search(UNREPEATABLE, plan):
            raise InvalidQuery(f"{found[1]}() gives another value each time: use event_time")
        if step.text(0):
            context.register_view(f'"{step.text(0)}"', result)
    if result is None:
        raise InvalidQuery("there is no query")
    return result


def write(result: datafusion.DataFrame, request: Fields, offset: int) -> int:
    """Write the result with its system columns; returns the number of records."""
    first, path = offset, request.text(10)
    empty = with_system_columns(result.schema().empty_table(), request, offset)
    with pq.ParquetWriter(path, empty.schema, store_schema=False) as writer:
        writer.write_table(empty)  # a result without records tells its columns
        for partition in result.execute_stream_partitioned():  # sides of a UNION ALL, in order
            for batch in partition:
                table = pa.Table.from_batches([batch.to_pyarrow()])
                table = with_system_columns(table, request, offset)
                writer.write_table(table.cast(empty.schema))
                offset += table.num_rows
    return offset - first


def with_system_columns(table: pa.Table, request: Fields, first: int) -> pa.Table:
    offset, op, system_time, event_time = vocabulary(request.table(3))
    columns = {name: plain(table[name], name) for name in table.schema.names}
    times = columns.pop(event_time)
    if times.null_count or times.type not in (TIME, pa.date32()):
        raise InvalidQuery(f"'{event_time}' is {times.type}, or NULL in some records")
    system = {
        offset: pa.array(range(first, first + len(table)), pa.int64()),
        op: columns.pop(op, pa.array([0] * len(table))).cast(pa.int32()),
        system_time: pa.array([request.time(2)] * len(table), TIME),
        event_time: times,
    }
    fields = [pa.field(name, each.type, nullable=False) for name, each in system.items()]
    fields += [pa.field(name, each.type) for name, each in columns.items()]
    return pa.table([*system.values(), *columns.values()], schema=pa.schema(fields))


def plain(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Times in milliseconds of UTC, texts without views: what all engines read."""
    if pa.types.is_timestamp(column.type):
        return pc.floor_temporal(column, unit="millisecond").cast(TIME)
    if pa.types.is_string_view(column.type):
        return column.cast(pa.string())
    if pa.types.is_null(column.type):
        raise InvalidQuery(f"'{name}' is NULL without a type: CAST(NULL AS TEXT)")
    return column


def watermark(request: Fields) -> datetime | None:
    """The earliest watermark of the inputs; a checkpoint keeps those of inputs that are idle."""
    before = request.text(8)
    known = json.loads(Path(before).read_text()) if before else {}
    for each in request.tables(6):
        key = each.raw(0).hex()
        times = [mark.time(1).timestamp() for mark in each.tables(7)]
        if times or key in known:
            known[key] = max([*times, known.get(key, float("-inf"))])
    if known:
        Path(request.text(9)).write_text(json.dumps(known, sort_keys=True))
    if len(known) < len(request.tables(6)):
        return None
    return datetime.fromtimestamp(min(known.values()), UTC)


def answer(message: bytes, _: grpc.ServicerContext) -> Iterator[bytes]:
    try:
        yield execute_transform(messages.request(message))
    except InvalidQuery as error:
        yield messages.failure(messages.INVALID_QUERY, str(error))
    except Exception as error:
        yield messages.failure(messages.INTERNAL_ERROR, repr(error), traceback.format_exc())


def main() -> None:
    handlers = {"ExecuteTransform": grpc.unary_stream_rpc_method_handler(answer)}
    options = [("grpc.max_receive_message_length", -1), ("grpc.so_reuseport", 0)]
    server = grpc.server(futures.ThreadPoolExecutor(2), options=options)
    service = grpc.method_handlers_generic_handler("engine.Engine", handlers)
    server.add_generic_rpc_handlers([service])
    socket = os.environ.get("ODF_ENGINE_SOCKET")
    server.add_insecure_port(f"unix:{socket}" if socket else "0.0.0.0:2884")
    server.start()
    signal.signal(signal.SIGTERM, lambda *_: server.stop(1))
    server.wait_for_termination()


if __name__ == "__main__":
    main()
