"""Formats of tables as the shared tests see them: how a project declares one, and who reads it.

A new format joins every shared test by an entry in `FORMATS`.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.exchange.tables.contract import TableFormat, TableSpec
from odfbuild.exchange.tables.formats import open_table
from odfbuild.exchange.tables.publish import Published, publish
from odfbuild.project.config import load_config
from odfbuild.project.model import Config
from odfbuild.project.tables import Table, declared_tables
from odfbuild.records.duckdb_views import connect
from odfbuild.records.kartothek.dataset import open_dataset
from odfbuild.store.place import Folder
from tests.records.chains import A, Chain, F, R, T, workspace

Row = tuple[Any, ...]
Reader = Callable[[Path], pa.Table]
"""Reads the table in a folder with somebody else's library."""
SparkReader = Callable[[Any, Path], pa.Table]
"""Reads the table in a folder with a session of Spark, without packages for formats."""

COLUMNS = (pa.field("k", pa.string()), pa.field("id", pa.int64()), pa.field("v", pa.float64()))


@dataclass(frozen=True)
class Format:
    """A format: settings in odfbuild.yaml, its readers by name, and which files hold data.

    `has_steps` tells whether its steps are calls of Python and its files may be copied elsewhere:
    not so where a library writes them, whose tests are in `test_kills_at_requests.py`.
    """

    name: str
    settings: str
    readers: Mapping[str, Reader]
    data_files: Callable[[Path], set[str]]
    spark: SparkReader
    is_there: Callable[[Path], bool] = Path.exists
    options: Mapping[str, Any] = field(default_factory=dict)
    has_steps: bool = True


def _pandas_folder(folder: Path) -> pa.Table:
    import pandas as pd

    return pa.Table.from_pandas(pd.read_parquet((folder / "current").resolve()))


def _duckdb_folder(folder: Path) -> pa.Table:
    with connect() as connection:
        state = (folder / "current").resolve()
        return connection.sql(f"FROM read_parquet('{state}/*.parquet')").to_arrow_table()


def _delta(folder: Path) -> Any:
    import deltalake

    return deltalake.DeltaTable(str(folder))


def _delta_by_duckdb(folder: Path) -> pa.Table:
    found = _delta(folder).to_pyarrow_dataset()  # noqa: F841 - DuckDB finds it by its name
    return duckdb.sql("FROM found").to_arrow_table()


def _iceberg(folder: Path) -> Any:
    from pyiceberg.catalog import load_catalog

    catalogue = load_catalog("default", uri=f"sqlite:///{folder.parent}/iceberg.db")
    return catalogue.load_table(("default", folder.name))


def _iceberg_by_duckdb(folder: Path) -> pa.Table:
    found = _iceberg(folder).scan().to_arrow_batch_reader()  # noqa: F841 - as above
    return duckdb.sql("FROM found").to_arrow_table()


def delta_files(folder: Path) -> set[str]:
    return set(_delta(folder).file_uris()) if folder.exists() else set()


def iceberg_files(folder: Path) -> set[str]:
    if not folder.exists():
        return set()
    return {each.file.file_path for each in _iceberg(folder).scan().plan_files()}


def _metadata(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.by-dataset-metadata.json")


def kartothek_files(folder: Path) -> set[str]:
    if not _metadata(folder).exists():
        return set()
    partitions = json.loads(_metadata(folder).read_text())["partitions"]
    return {str(folder.parent / each["files"]["table"]) for each in partitions.values()}


def in_utc(table: pa.Table) -> pa.Table:
    """kartothek has times without a zone, which are those of UTC."""
    number = table.column_names.index("event_time")
    times = table.column(number).cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
    return table.set_column(number, "event_time", times)


def _kartothek(folder: Path) -> pa.Table:
    return in_utc(open_dataset(Folder(folder.parent), folder.name).read().read_all())


def _kartothek_by_pandas(folder: Path) -> pa.Table:
    """As the metadata says, without any code for kartothek."""
    import pandas as pd

    schema = pq.read_schema(folder / "table" / "_common_metadata")
    frames = []
    for file in sorted(kartothek_files(folder)):
        frame = pd.read_parquet(file, partitioning=None)
        for part in Path(file).relative_to(folder / "table").parts[:-1]:
            key, value = map(unquote, part.split("="))
            frame[key] = pa.scalar(value).cast(schema.field(key).type).as_py()
        frames.append(frame)
    return in_utc(pa.Table.from_pandas(pd.concat(frames)))


def _kartothek_by_duckdb(folder: Path) -> pa.Table:
    found = duckdb.read_parquet(sorted(kartothek_files(folder)), hive_partitioning=True)
    return in_utc(found.to_arrow_table())


def _by_spark(spark: Any, base: Path, files: set[str]) -> pa.Table:
    """Files that the metadata names; Spark has the partition columns from their folders."""
    return spark.read.option("basePath", str(base)).parquet(*sorted(files)).toArrow()


FORMATS = [
    Format(
        "parquet",
        "format: parquet",
        {"pandas": _pandas_folder, "duckdb": _duckdb_folder},
        lambda folder: {each.name for each in (folder / "data").glob("*")},
        lambda spark, folder: spark.read.parquet(str((folder / "current").resolve())).toArrow(),
        lambda folder: (folder / "current").exists(),
    ),
    Format(
        "delta",
        "format: delta",
        {
            "deltalake": lambda folder: _delta(folder).to_pyarrow_table(),
            "pandas": lambda folder: pa.Table.from_pandas(_delta(folder).to_pandas()),
            "duckdb": _delta_by_duckdb,
        },
        delta_files,
        lambda spark, folder: _by_spark(spark, folder, delta_files(folder)),
        has_steps=False,
    ),
    Format(
        "iceberg",
        "format: iceberg",
        {
            "pyiceberg": lambda folder: _iceberg(folder).scan().to_arrow(),
            "pandas": lambda folder: pa.Table.from_pandas(_iceberg(folder).scan().to_pandas()),
            "duckdb": _iceberg_by_duckdb,
        },
        iceberg_files,
        lambda spark, folder: spark.read.parquet(*sorted(iceberg_files(folder))).toArrow(),
        has_steps=False,
    ),
    Format(
        "kartothek",
        "format: kartothek, indices: [event_time]",
        {
            "odfbuild": _kartothek,
            "pandas": _kartothek_by_pandas,
            "duckdb": _kartothek_by_duckdb,
        },
        kartothek_files,
        lambda spark, folder: in_utc(_by_spark(spark, folder / "table", kartothek_files(folder))),
        lambda folder: _metadata(folder).exists(),
    ),
]


class Lake:
    """A project with one dataset, a table of it, and what its current state has to be."""

    def __init__(
        self,
        root: Path,
        settings: str,
        partition_by: str = "[k]",
        seed: int = 0,
        location: str = "lake",
    ) -> None:
        self.root, self.folder, self.location = root, root / "lake" / "d", location
        root.mkdir(parents=True, exist_ok=True)
        entry = f"{{match: [d], {settings}, location: '{location}', partitionBy: {partition_by}}}"
        (root / "odfbuild.yaml").write_text(
            f"kind: Project\nversion: 1\ncontent:\n  name: p\n  tables:\n    - {entry}\n"
        )
        self.chain = Chain(workspace(root), "d", *COLUMNS)
        self.random = random.Random(seed)
        self.rows: Counter[Row] = Counter()
        self._seconds = 0

    @property
    def config(self) -> Config:
        return load_config(self.root)

    @property
    def table(self) -> Table:
        return declared_tables(self.config, ["d"])[0]

    def publish(self, anew: str | None = None) -> Published:
        return publish(self.config, workspace(self.root), self.table, anew=anew)

    def opened(self) -> TableFormat:
        return open_table(TableSpec(self.table, self.chain.records().schema, self.root))

    def append(self, *values: Row) -> None:
        """Commit records `(k, id, v)`."""
        self._commit([(A, self._timed(each)) for each in values])

    def take_back(self, key: str) -> None:
        """Retract all records of a partition."""
        self._commit([(R, row) for row in self.rows.elements() if row[1] == key])

    def shift(self) -> None:
        """Correct every record: the number of each becomes one more."""
        made: list[tuple[int, Row]] = []
        for row in self.rows.elements():
            made += [(F, row), (T, (row[0], row[1], row[2] + 1, row[3]))]
        self._commit(made)

    def grow(self, keys: str = "abcdefgh", most: int = 3) -> set[Any]:
        """Commit a slice of new records, corrections and retractions; the keys that it touches."""
        made: list[tuple[int, Row]] = []
        there = self.rows.copy()
        touched = self.random.sample(list(keys), self.random.randint(1, most))
        for key in touched:
            for _ in range(self.random.randint(1, 4)):
                made.append((A, self._timed((key, self.random.randint(1, 9), 0.5))))
            mine = [row for row, count in there.items() if count and row[1] == key]
            if mine and self.random.random() < 0.6:
                old = self.random.choice(mine)
                there[old] -= 1
                if self.random.random() < 0.5:
                    made.append((R, old))
                else:
                    made += [(F, old), (T, (*old[:3], self.random.random()))]
        self._commit(made)
        return set(touched)

    def _commit(self, made: list[tuple[int, Row]]) -> None:
        self.chain.add([row for _, row in made], [op for op, _ in made])
        for op, row in made:
            self.rows[row] += 1 if op in (A, T) else -1

    def _timed(self, values: Row) -> Row:
        self._seconds += 1
        return (self._seconds * 1000, *values)

    def expected(self) -> list[Row]:
        return sorted(self.rows.elements(), key=repr)


def rows_of(table: pa.Table) -> list[Row]:
    """Rows as `Lake.expected` has them, whatever order and types a reader gives."""
    names = ("event_time", *(each.name for each in COLUMNS))
    found: Iterator[Row] = (
        (round(row["event_time"].timestamp() * 1000), *(row[name] for name in names[1:]))
        for row in table.select(names).to_pylist()
    )
    return sorted(found, key=repr)
