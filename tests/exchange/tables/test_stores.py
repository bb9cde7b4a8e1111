"""Tables in stores of objects: increments, read by others after each.

Not those of Delta: its library asks a store of Azure's kind for names behind another one
(`startFrom`), which Azurite does not know, so that it finds versions that it has seen. In S3 they
are in `test_open_formats.py` and `test_kills_at_requests.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import fsspec
import pandas as pd
import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

from odfbuild.exchange.tables.storage_options import for_iceberg
from odfbuild.records.kartothek.dataset import open_dataset
from odfbuild.store.bucket import Bucket
from tests.exchange.tables.tables import Lake, in_utc, rows_of
from tests.servers.objects import BUCKET, az_endpoint, s3_program

STORES = {"s3": s3_program, "az": az_endpoint}


@pytest.fixture(scope="module", params=STORES)
def location(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    with STORES[request.param](tmp_path_factory.mktemp("store")):
        yield f"{request.param}://{BUCKET}/tables"


def read_parquet(lake: Lake) -> pa.Table:
    """As docs/tables.md says."""
    with fsspec.open(f"{lake.location}/d/current.json") as file:
        files = [each["file"] for each in json.load(file)["files"]]
    frames = [pd.read_parquet(f"{lake.location}/d/{each}") for each in files]
    return pa.Table.from_pandas(pd.concat(frames))


def read_kartothek(lake: Lake) -> pa.Table:
    return in_utc(open_dataset(Bucket.at(lake.location), "d").read().read_all())


def read_iceberg(lake: Lake) -> pa.Table:
    uri = f"sqlite:///{lake.root}/lake.db"
    catalogue = load_catalog("default", uri=uri, **for_iceberg(lake.location))
    return catalogue.load_table(("default", "d")).scan().to_arrow()


READERS: dict[str, Callable[[Lake], pa.Table]] = {
    "parquet": read_parquet,
    "kartothek": read_kartothek,
    "iceberg": read_iceberg,
}


@pytest.mark.parametrize("format", READERS)
def test_a_table_in_a_store_is_the_current_state_after_each_increment(
    format: str, location: str, tmp_path: Path
) -> None:
    settings = f"format: {format}"
    if format == "kartothek":
        settings += ", indices: [id]"
    if format == "iceberg":
        settings += f", catalogue: {{uri: 'sqlite:///{tmp_path}/lake.db'}}"
    lake = Lake(tmp_path, settings, location=f"{location}/{format}")
    for number in range(3):
        touched = lake.grow()
        published = lake.publish()
        assert (published.anew is not None) is (number == 0)
        assert published.partitions == len(touched)
        assert rows_of(READERS[format](lake)) == lake.expected()
    assert not lake.publish().written
    opened = lake.opened()
    opened.collect(timedelta(0))
    state = opened.read_state()
    assert state is not None
    assert list(opened.missing(state)) == []
    assert rows_of(READERS[format](lake)) == lake.expected()
