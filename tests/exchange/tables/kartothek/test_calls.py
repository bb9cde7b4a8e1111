"""What a plan and an increment ask of the store does not follow the number of partitions."""

from __future__ import annotations

import datetime as dt
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from odfbuild.records.kartothek import index as indices
from odfbuild.records.kartothek import metadata as metadata_form
from odfbuild.records.kartothek import names
from odfbuild.records.kartothek.dataset import open_dataset
from odfbuild.records.kartothek.metadata import Metadata, digest
from odfbuild.records.kartothek.notes import Notes, TableNote, noted
from odfbuild.store.bucket import Bucket
from odfbuild.store.place import Folder
from tests.exchange.tables.kartothek.tables import pin, table_at, touched
from tests.servers.objects import BUCKET, Objects, s3_endpoint

SCHEMA = pa.schema({"offset": pa.int64(), "part": pa.string(), "name": pa.string()})
UUID = "shop_orders"
SETTINGS: dict[str, Any] = {"schema": SCHEMA, "partition_by": ("part",), "indices": ("name",)}


@pytest.fixture(scope="module")
def s3() -> Iterator[Objects]:
    with s3_endpoint() as objects:
        yield objects


@pytest.fixture(params=[10, 10_000])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A dataset of so many partitions; those behind the tenth have no files."""
    table = table_at(tmp_path, **SETTINGS)
    rows = [{"offset": n, "part": f"p{n}", "name": f"n{n}"} for n in range(10)]
    table.commit(None, pin(1), None, touched(rows, ["part"], SCHEMA))
    _enlarge(tmp_path, request.param)
    return tmp_path


def _enlarge(folder: Path, wanted: int) -> None:
    dataset = open_dataset(Folder(folder), UUID)
    more = {
        names.label([("part", f"p{n}")], f"table+odfbuild-{n:032x}"): f"n{n % 500}"
        for n in range(10, wanted)
    }
    partitions = {
        **dataset.partitions,
        **{label: {"table": names.data_file(UUID, "table", label)} for label in more},
    }
    index = dataset.index("name", pa.string())
    assert index is not None
    (name,) = dataset.metadata.indices.values()
    larger = index.updated((), [(label, pa.array([each])) for label, each in more.items()])
    (folder / str(name)).write_bytes(indices.encode(larger))
    metadata = Metadata(UUID, partitions, ("part",), dataset.metadata.indices)
    (note,) = dataset.notes.tables.values()
    part = digest((label, files["table"]) for label, files in partitions.items())
    tables = {"table": TableNote(note.pin, note.schema, note.indices, part)}
    metadata = noted(metadata, Notes(tables, dt.datetime.now(dt.UTC)))
    assert Notes.of(metadata).is_ours
    (folder / names.metadata_file(UUID)).write_bytes(metadata_form.encode(metadata))


class Requests(logging.Handler):
    """What a server was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def test_a_plan_asks_a_store_at_most_three_times_for_ten_and_ten_thousand_partitions(
    lake: Path, s3: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in [lake / names.metadata_file(UUID), *(lake / UUID / "indices").rglob("*.parquet")]:
        s3.put(f"lake/{file.relative_to(lake)}", file.read_bytes())
    requests, logger = Requests(), logging.getLogger("werkzeug")
    monkeypatch.setattr(logger, "handlers", [requests])
    monkeypatch.setattr(logger, "propagate", False)
    logger.setLevel(logging.INFO)
    dataset = open_dataset(Bucket.at(f"s3://{BUCKET}/lake"), UUID)
    found = dataset.plan([[("name", "==", "n3"), ("part", "==", "p3")]])
    logger.setLevel(logging.CRITICAL)
    assert [each.keys for each in found] == [{"part": "p3"}]
    assert len(dataset.plan([[("name", "==", "n3")]])) == 1 + (len(dataset.partitions) > 10) * 19
    assert 1 <= len(requests.lines) <= 3, requests.lines


class Counted(Folder):
    """A folder that counts what it is asked."""

    asked = 0

    def read(self, name: str, limit: int) -> bytes | None:
        self.asked += 1
        return super().read(name, limit)

    def size(self, name: str) -> int | None:
        self.asked += 1
        return super().size(name)

    def write(self, name: str, data: bytes) -> None:
        self.asked += 1
        super().write(name, data)

    def upload(self, file: Path, name: str, progress: Any = None) -> None:
        self.asked += 1
        super().upload(file, name, progress)


def test_an_increment_of_one_partition_asks_a_store_as_often_for_ten_thousand_partitions(
    lake: Path,
) -> None:
    table = table_at(lake, **SETTINGS)
    place = table._place = Counted(lake)
    start = time.process_time()
    state = table.read_state()
    assert state is not None
    old = [row for batch in table.content_of(state, [("p3",)]) for row in batch.to_pylist()]
    rows = [*old, {"offset": 99, "part": "p3", "name": "new"}]
    after = table.commit(state, pin(2), [("p3",)], touched(rows, ["part"], SCHEMA))
    seconds = time.process_time() - start
    assert (state.partitions, after.partitions) == (state.files, state.partitions)
    assert place.asked == 9
    # The metadata and the index are whole files: all of them is read and written.
    assert seconds < 2
    found = open_dataset(Folder(lake), UUID).plan([[("name", "==", "new")]])
    assert [each.keys["part"] for each in found] == ["p3"]
