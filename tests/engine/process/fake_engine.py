"""An engine over gRPC whose every answer can be spoiled: in this process, on a unix socket.

It multiplies `value` of all new records, as `SELECT …, value * N`. What it writes and says goes
through a `Script`, so that a test can let it lie in one way.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odfbuild.engine.process.wire import (
    CHANNEL_OPTIONS,
    EXECUTE_TRANSFORM,
    SERVICE,
    SOCKET_VARIABLE,
)
from odfbuild.odf.model import OffsetInterval
from odfbuild.odf.model.messages import (
    TransformRequest,
    TransformResponseInternalError,
    TransformResponseProgress,
    TransformResponseSuccess,
)

MILLIS = pa.timestamp("ms", "UTC")


@dataclass
class Script:
    """What differs from an honest engine. `spoil` changes the table, `after` what lies in `out`.

    `answers` stand in for the whole work; `interval`, `watermark` change what is said.
    """

    spoil: Callable[[pa.Table], pa.Table] = lambda table: table
    after: Callable[[Path], None] = lambda out: None
    interval: Callable[[Any], Any] = lambda interval: interval
    watermark: Callable[[Any], Any] = lambda watermark: watermark
    answers: Callable[[TransformRequest], Iterator[Any]] | None = None
    checkpoint: Callable[[TransformRequest], bytes | None] = lambda request: None
    file_when_empty: bool = True
    progress: int = 0
    single: bool = False
    requests: list[TransformRequest] = field(default_factory=list)


class FakeEngine:
    """Serves `script` at `address` until it is stopped."""

    def __init__(self, script: Script, address: str) -> None:
        self.script = script
        self._server = grpc.server(ThreadPoolExecutor(4), options=CHANNEL_OPTIONS)
        handler = grpc.unary_stream_rpc_method_handler(self._execute)
        handlers = grpc.method_handlers_generic_handler(SERVICE, {"ExecuteTransform": handler})
        self._server.add_generic_rpc_handlers((handlers,))
        self._server.add_insecure_port(address)
        self._server.start()

    def stop(self) -> None:
        self._server.stop(0).wait()

    def _execute(self, data: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        request = EXECUTE_TRANSFORM.decode_request(data)
        self.script.requests.append(request)
        for answer in self._answers(request):
            if isinstance(answer, bytes):
                yield answer
            else:
                yield EXECUTE_TRANSFORM.encode_response(answer)

    def _answers(self, request: TransformRequest) -> Iterator[Any]:
        for _ in range(self.script.progress):
            yield TransformResponseProgress()
        if self.script.single and len(self.script.requests) > 1:
            yield TransformResponseInternalError(message="I serve one request")
        elif self.script.answers is not None:
            yield from self.script.answers(request)
        else:
            try:
                yield self._work(request)
            except Exception as error:
                yield TransformResponseInternalError(message=repr(error))

    def _work(self, request: TransformRequest) -> TransformResponseSuccess:
        table = self.script.spoil(computed(request))
        out = Path(request.new_data_path)
        if table.num_rows or self.script.file_when_empty:
            pq.write_table(table, out, store_schema=False)
        kept = self.script.checkpoint(request)
        if kept is not None:
            Path(request.new_checkpoint_path).write_bytes(kept)
        self.script.after(out.parent)
        interval = None
        if table.num_rows:
            end = request.next_offset + table.num_rows - 1
            interval = OffsetInterval(start=request.next_offset, end=end)
        marks = [m.event_time for each in request.query_inputs for m in each.explicit_watermarks]
        return TransformResponseSuccess(
            new_offset_interval=self.script.interval(interval),
            new_watermark=self.script.watermark(max(marks, default=None)),
        )


def computed(request: TransformRequest) -> pa.Table:
    """The result of a step as an honest engine writes it."""
    query = request.transform.queries[-1].query
    factor = int(re.search(r"value \* (\d+)", query)[1])
    tables = []
    for given in request.query_inputs:
        assert bool(given.data_paths) == (given.offset_interval is not None)
        interval, vocab = given.offset_interval, given.vocab
        for path in given.data_paths or (given.schema_file,):
            table = pq.ParquetFile(path).read()
            offsets = table[vocab.offset_column]
            inside = pc.and_(
                pc.greater_equal(offsets, interval.start if interval else 0),
                pc.less_equal(offsets, interval.end if interval else -1),
            )
            names = [vocab.event_time_column, "id", "value"]
            renamed = ["event_time", "id", "value"]
            tables.append(table.filter(inside).select(names).rename_columns(renamed))
    rows = pa.concat_tables(tables)
    count, vocab = rows.num_rows, request.vocab
    moment = pa.scalar(request.system_time.millis, MILLIS)
    offsets = pa.array(range(request.next_offset, request.next_offset + count), pa.int64())
    columns = {
        vocab.offset_column: (offsets, False),
        vocab.operation_type_column: (pa.repeat(pa.scalar(0, pa.int32()), count), False),
        vocab.system_time_column: (pa.repeat(moment, count), False),
        vocab.event_time_column: (rows["event_time"].combine_chunks(), True),
        "id": (rows["id"].combine_chunks(), True),
        "value": (pc.multiply(rows["value"], factor).combine_chunks(), True),
    }
    schema = pa.schema([pa.field(n, v.type, o) for n, (v, o) in columns.items()])
    return pa.table([v for v, _ in columns.values()], schema=schema)


@contextlib.contextmanager
def serving(script: Script) -> Iterator[str]:
    """The address of an engine that follows `script`."""
    with tempfile.TemporaryDirectory(prefix="odf-", dir="/tmp") as folder:
        address = f"unix:{folder}/engine"
        engine = FakeEngine(script, address)
        try:
            yield address
        finally:
            engine.stop()


def for_ever(request: TransformRequest) -> Iterator[Any]:
    """An engine that hangs."""
    threading.Event().wait(30)
    yield from ()


def main(mode: str) -> None:
    """The engine as a program, on the socket that it is told, or on port 2884."""
    if mode == "crash":
        print("cannot find my configuration", flush=True)
        raise SystemExit(7)
    if mode == "silent":
        threading.Event().wait(60)
    script = MODES.get(mode, Script())
    own = f"unix:{os.environ[SOCKET_VARIABLE]}"
    FakeEngine(script, "127.0.0.1:2884" if mode == "port" else own)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    print(f"listening as {mode}", flush=True)
    while True:
        signal.pause()


def _die(request: TransformRequest) -> Iterator[Any]:
    print("a bad thing happened", flush=True)
    os._exit(3)
    yield


def _only_with_data(work: Callable[[], object]) -> Callable[[pa.Table], pa.Table]:
    def spoil(table: pa.Table) -> pa.Table:
        if table.num_rows:
            print("at work", flush=True)
            work()
        return table

    return spoil


def _take_memory() -> None:
    taken = []
    while True:
        taken.append(bytearray(os.urandom(1 << 20) * 16))


def _link(data: Path) -> None:
    data.unlink()
    data.symlink_to("/etc/hostname")


def _take_processes() -> None:
    # By no fork: gRPC has handlers of forks that can wait for its own threads for ever.
    kept = [os.posix_spawnp("sleep", ["sleep", "60"], os.environ) for _ in range(200)]
    raise AssertionError(f"it could start {len(kept)} processes")


def _probe() -> None:
    """Print what can be seen and reached from inside."""

    def tried(work: Callable[[], object]) -> str:
        try:
            work()
        except OSError as error:
            return str(error)
        return "reached"

    inputs = [each for each in Path("/opt/engine/in").glob("*/*") if each.is_file()]
    status = Path("/proc/self/status").read_text()
    seen = {
        "environment": dict(os.environ),
        "others": [str(each) for top in ("/tmp", "/opt") for each in Path(top).rglob("*wx4711*")],
        "network": tried(lambda: socket.create_connection(("192.0.2.1", 80), 2)),
        "name": tried(lambda: socket.getaddrinfo("example.org", 80)),
        "input": tried(lambda: inputs[0].open("ab")),
        "root": tried(lambda: Path("/new").write_text("x")),
        "capabilities": status.partition("CapEff:")[2].split()[0],
    }
    print(f"SEEN {json.dumps(seen)}", flush=True)
    raise AssertionError("logs of what fails are kept")


MODES = {
    "die": Script(answers=_die),
    "hang": Script(spoil=_only_with_data(lambda: threading.Event().wait(60))),
    "memory": Script(spoil=_only_with_data(_take_memory)),
    "fork": Script(spoil=_only_with_data(_take_processes)),
    "probe": Script(spoil=_only_with_data(_probe)),
    "once": Script(single=True),
    "outside": Script(after=lambda out: _link(out / "data")),
}


if __name__ == "__main__":
    main(sys.argv[1])
