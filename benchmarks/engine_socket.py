"""Time small steps through the engine protocol beside the same steps built in, in turns.

python benchmarks/engine_socket.py [--steps 40] [--rows 100]

One warm session computes both. Times are wall time, and CPU of Python, in which both sides of the
socket run: what Java does is the same. A step through the socket writes the request, reads it,
checks the slices, computes, writes data file and checkpoint, and answers. README.md says how to
read it.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1]))

from odfbuild.engine.process.server.calls import Calls
from odfbuild.engine.process.server.serve import Serving, listening
from odfbuild.engine.spark.start import start_engine
from tests.engine.inputs import sql
from tests.engine.process.coordinator import NOW, Chain, Line
from tests.engine.stepwise import Derived, Source

COLUMNS = [pa.field("id", pa.int64()), pa.field("value", pa.int64())]
QUERIES = {
    "map": "SELECT event_time, id, value * 10 AS value FROM sales",
    "window": "SELECT window.start AS event_time, COUNT(*) AS n FROM sales"
    " GROUP BY window(event_time, '1 hour')",
    "changelog": "SELECT MAX(event_time) AS event_time, id, SUM(value) AS total FROM sales"
    " GROUP BY id",
}
HOUR = 3_600_000


def main() -> None:
    """Run all queries, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--rows", type=int, default=100)
    options = parser.parse_args()
    engine = start_engine()
    with tempfile.TemporaryDirectory(prefix="odf-", dir="/tmp") as name:
        address = f"unix:{name}/socket"
        with (
            contextlib.redirect_stdout(io.StringIO()),
            listening(Calls(lambda: engine), Serving(addresses=(address,))),
        ):
            rows = [
                " | ".join([f"| {kind}", *(f"{each:.1f}" for each in figures), ""])
                for kind, query in QUERIES.items()
                for figures in [measure(Path(name) / kind, query, engine, address, options)]
            ]
    engine.stop()
    print("| ms | built in | over the socket | more | CPU built in | CPU over the socket | more |")
    print("\n".join(["| --- | ---: | ---: | ---: | ---: | ---: | ---: |", *map(str.strip, rows)]))


def measure(
    folder: Path, query: str, engine: object, address: str, options: argparse.Namespace
) -> list[float]:
    """Medians of a step built in, of one over the socket, and of the differences of both."""
    folder.mkdir()
    source = Source(folder, "sales", COLUMNS)
    here = Derived(engine, folder / "here", sql(query), [source], system_time=NOW)
    there = Chain(Line(address), folder / "there", sql(query), [source])
    found: list[list[float]] = []
    with there.line.kept():
        for step in range(options.steps + 5):
            start = 1_714_521_600_000 + step * HOUR // 4
            source.add([(start + n * 1000, n % 50, step) for n in range(options.rows)])
            # Who is first meets cold caches, so they take turns.
            turns = [here.step, there.send] if step % 2 else [there.send, here.step]
            times = {turn: timed(turn) for turn in turns}
            there.take()
            if step >= 5:
                built_in, socket = times[here.step], times[there.send]
                pairs = zip(built_in, socket, strict=True)
                found.append([each for one, two in pairs for each in (one, two, two - one)])
    assert there.hashes == here.hashes
    return [statistics.median(each) for each in zip(*found, strict=True)]


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds of wall time and of CPU."""
    began = time.perf_counter(), time.process_time()
    work()
    return (time.perf_counter() - began[0]) * 1000, (time.process_time() - began[1]) * 1000


if __name__ == "__main__":
    main()
