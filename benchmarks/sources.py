"""Time a table of a database that becomes records of a root, beside plain libraries.

python benchmarks/sources.py [--database postgresql|mariadb] [--rows 1000000] [--runs 3]

odfbuild reads one snapshot in the order of the primary key, keeps a digest, and commits one slice;
no engine is needed for that. The others read the table into memory, sort it and write one Parquet
file; ADBC and PyMySQL are the libraries by which odfbuild reads, too. CPU is that of all processes,
the server's included. Needs the server and the root user or another one that may start it
(`tests/servers`).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from odfbuild.apply.ingest import Arrival, stage_ingest
from odfbuild.apply.transaction import Transaction
from odfbuild.ingest.fetch import FetchContext, fetch
from odfbuild.odf.model import (
    DatasetKind,
    FetchStepUrl,
    MergeStrategyLedger,
    ReadStepParquet,
    SetPollingSource,
    SetVocab,
)
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.workspace import Workspace
from tests.servers.mariadb import mariadb
from tests.servers.postgres import postgres

_TABLE = """
CREATE TABLE orders AS SELECT
  id, timestamptz '2024-01-01' + id * interval '1 second' AS at,
  'customer ' || (id::bigint * 7919 % 50000) AS name,
  (ARRAY['Lviv', 'Kyiv', 'Odesa', 'Vancouver', 'Seattle', 'Porto', 'Lima', 'Accra'])[id % 8 + 1]
    AS city,
  ((id::bigint * 104729 % 100000) / 100.0)::numeric(10, 2) AS amount,
  (id % 100)::int AS quantity
FROM generate_series(1, {rows}) AS id
"""
_OF_MARIADB = """
CREATE TABLE orders (
  id int PRIMARY KEY, at datetime NOT NULL, name varchar(30), city varchar(30),
  amount decimal(10, 2), quantity int, KEY (at)
) AS SELECT
  seq AS id, timestamp('2024-01-01') + INTERVAL seq SECOND AS at,
  concat('customer ', seq * 7919 % 50000) AS name,
  elt(seq % 8 + 1, 'Lviv', 'Kyiv', 'Odesa', 'Vancouver', 'Seattle', 'Porto', 'Lima', 'Accra')
    AS city,
  (seq * 104729 % 100000) / 100 AS amount,
  seq % 100 AS quantity
FROM seq_1_to_{rows}
"""
_COLUMNS = (
    "id INT",
    "at TIMESTAMP",
    "name STRING",
    "city STRING",
    "amount DECIMAL(10, 2)",
    "quantity INT",
)
_QUERY = "SELECT * FROM orders"


@dataclass(frozen=True)
class Figure:
    """Seconds of wall time and of CPU, and the peak memory in MiB of the process that did it."""

    seconds: float
    cpu: float
    peak: int | None = None


@dataclass(frozen=True)
class Server:
    """A running server with the table: its address, and the process to which all others belong."""

    url: str
    pid: int


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--database", choices=("postgresql", "mariadb"), default="postgresql")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3, help="medians of so many")
    options = parser.parse_args()
    print(f"{options.rows:,} rows, {len(_COLUMNS)} columns, {os.cpu_count()} cores", flush=True)
    jobs: dict[str, Callable[[str, str], None]] = {
        "odfbuild, rows to the local file": _fetched_alone,
        "odfbuild, the same with a cursor": _fetched_by_cursor,
        "odfbuild, rows to a committed root": _committed,
    }
    if options.database == "mariadb":
        others = {"PyMySQL, one sorted Parquet file": _by_pymysql}
    else:
        others = {"ADBC, one sorted Parquet file": _by_adbc}
        if find_spec("polars") is not None:
            others["polars, one sorted Parquet file"] = _by_polars
    start = _mariadb if options.database == "mariadb" else _postgresql
    with (
        start(options.rows) as server,
        tempfile.TemporaryDirectory(prefix="odfbuild-bench-") as folder,
    ):
        found: dict[str, list[Figure]] = {}
        for run in range(options.runs + 1):
            for name, job in (jobs | others).items():
                _note(found, name, _in_own_process(server, job, Path(folder)), run)
    _print({name: _median(each) for name, each in found.items()}, next(iter(others)))


@contextmanager
def _postgresql(rows: int) -> Iterator[Server]:
    with postgres() as server:
        database = server.database()
        database.execute(
            _TABLE.format(rows=rows),
            "ALTER TABLE orders ADD PRIMARY KEY (id)",
            "CREATE INDEX ON orders (at)",
            "VACUUM ANALYZE orders",
        )
        pid = (server.folder / "data" / "postmaster.pid").read_text().partition("\n")[0]
        yield Server(database.url(), int(pid))


@contextmanager
def _mariadb(rows: int) -> Iterator[Server]:
    with mariadb() as server:
        database = server.database()
        database.execute(_OF_MARIADB.format(rows=rows))
        assert server.process is not None
        yield Server(database.url(), server.process.pid)


def _note(found: dict[str, list[Figure]], name: str, figure: Figure, run: int) -> None:
    """Keep a figure, unless it is of the first run, which warms everything up."""
    print(f"  {name}: {figure.seconds:.2f} s, CPU {figure.cpu:.2f} s", flush=True)
    if run:
        found.setdefault(name, []).append(figure)


def _in_own_process(server: Server, job: Callable[[str, str], None], folder: Path) -> Figure:
    before = _server_cpu(server)
    with ProcessPoolExecutor(1, get_context("spawn")) as other:
        figure = other.submit(_timed, job, server.url, folder).result()
    return Figure(figure.seconds, figure.cpu + _server_cpu(server) - before, figure.peak)


def _timed(job: Callable[[str, str], None], url: str, folder: Path) -> Figure:
    target = tempfile.mkdtemp(dir=folder)
    job("", target)  # imports count for nobody
    started, used = time.monotonic(), sum(os.times()[:2])
    job(url, target)
    figure = Figure(
        time.monotonic() - started,
        sum(os.times()[:2]) - used,
        _peak(),
    )
    shutil.rmtree(target)
    return figure


def _peak() -> int:
    """Peak memory of this process in MiB; what `getrusage` says counts its parent, too."""
    status = Path("/proc/self/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) >> 10


def _fetched_alone(url: str, folder: str) -> None:
    _import_libraries()
    if url:
        list(_fetched(f"{url}#orders", Path(folder)))


def _fetched_by_cursor(url: str, folder: str) -> None:
    _import_libraries()
    if url:
        list(_fetched(f"{url}?cursor=at#orders", Path(folder)))


def _import_libraries() -> None:
    import pymysql  # noqa: F401


def _fetched(url: str, folder: Path) -> Any:
    context = FetchContext(
        project="bench",
        dataset="bench",
        root=folder,
        scratch=folder,
        cache=folder,
        inbox=folder,
        now=Timestamp.now(),
    )
    return fetch(FetchStepUrl(url=url), None, context)


def _by_adbc(url: str, folder: str) -> None:
    import adbc_driver_postgresql.dbapi as adbc
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not url:
        return
    with adbc.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(_QUERY)
        table = cursor.fetch_arrow_table()
    at = table.schema.get_field_index("amount")
    amount = pa.chunked_array([each.storage for each in table["amount"].chunks])
    table = table.set_column(at, "amount", amount.cast(pa.decimal128(10, 2)))
    pq.write_table(table.sort_by("at"), Path(folder) / "sorted.parquet")


def _by_polars(url: str, folder: str) -> None:
    import adbc_driver_postgresql.dbapi  # noqa: F401
    import polars as pl

    if not url:
        return
    query = "SELECT id, at, name, city, amount::text AS amount, quantity FROM orders"
    frame = pl.read_database_uri(query, url, engine="adbc")
    amount = pl.col("amount").cast(pl.Decimal(10, 2))
    frame.with_columns(amount).sort("at").write_parquet(Path(folder) / "sorted.parquet")


def _by_pymysql(url: str, folder: str) -> None:
    from urllib.parse import unquote, urlsplit

    import pyarrow as pa
    import pyarrow.parquet as pq
    import pymysql

    if not url:
        return
    parts = urlsplit(url)
    with (
        pymysql.connect(
            host=parts.hostname,
            port=parts.port or 3306,
            user=parts.username,
            password=unquote(parts.password or ""),
            database=parts.path.strip("/"),
        ) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(_QUERY)
        names = [each[0] for each in cursor.description]
        columns = map(list, zip(*cursor.fetchall(), strict=True))
        table = pa.table(dict(zip(names, columns, strict=True)))
    pq.write_table(table.sort_by("at"), Path(folder) / "sorted.parquet")


def _no_engine() -> Any:
    raise AssertionError("rows that odfbuild wrote itself are committed without an engine")


def _committed(url: str, root: str) -> None:
    """A new root with all rows."""
    _import_libraries()
    if not url:
        return
    folder = Path(root)
    workspace = Workspace(folder / "chains", folder / "keys", folder / "cache")
    source = SetPollingSource(
        fetch=FetchStepUrl(url=f"{url}?cursor=at#orders"),
        read=ReadStepParquet(ddl_schema=_COLUMNS),
        merge=MergeStrategyLedger(primary_key=("id",)),
    )
    begun = Transaction(workspace, "bench", DatasetKind.Root, None, Timestamp.now())
    begun.add(source)
    begun.add(SetVocab(event_time_column="at"))
    begun.commit()
    base = workspace.projection("bench")
    transaction = Transaction(workspace, "bench", DatasetKind.Root, base, Timestamp.now())
    for fetched in _fetched(f"{url}?cursor=at#orders", folder):
        arrival = Arrival(
            source=source,
            file=fetched.file,
            display_name=fetched.display_name,
            event_time=None,
            source_state=fetched.state,
            own_rows=fetched.own_rows,
        )
        scratch = Path(tempfile.mkdtemp(dir=folder))
        stage_ingest(transaction, _no_engine, arrival, scratch)
        transaction.commit()


def _server_cpu(server: Server) -> float:
    """Seconds of CPU of the server and of all connections that ended."""
    time.sleep(0.3)  # Its processes end a moment after their connections.
    return sum(_ticks(server.pid))


def _ticks(pid: int) -> list[float]:
    """Seconds of a process: user, system, and both of its children that ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return [int(each) / os.sysconf("SC_CLK_TCK") for each in fields[11:15]]


def _median(figures: list[Figure]) -> Figure:
    peaks = [each.peak for each in figures if each.peak is not None]
    return Figure(
        statistics.median(each.seconds for each in figures),
        statistics.median(each.cpu for each in figures),
        max(peaks) if peaks else None,
    )


def _print(figures: dict[str, Figure], baseline: str) -> None:
    least = figures[baseline]
    ratio_of = f"CPU, {baseline.partition(',')[0]} = 1"
    print(f"\n{'':<40}{'seconds':>9}{'CPU s':>9}{ratio_of:>18}{'peak MiB':>10}")
    for name, figure in figures.items():
        peak = "" if figure.peak is None else f"{figure.peak:,}"
        ratio = figure.cpu / least.cpu
        print(f"{name:<40}{figure.seconds:>9.2f}{figure.cpu:>9.2f}{ratio:>18.2f}{peak:>10}")


if __name__ == "__main__":
    main()
