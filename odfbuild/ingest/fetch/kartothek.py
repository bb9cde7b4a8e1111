"""A table of a kartothek dataset: `kartothek+file:///lake#uuid`, `kartothek+s3://bucket/lake#uuid`.

Partition keys and inverted indices answer the predicates before a data file is opened.

The state is a hash of the metadata file, which names all other files of one state of the dataset:
so what is fetched is consistent, and nothing but that file is read where nothing is new.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from odfbuild.errors import Code, IngestError, TableError
from odfbuild.ingest.fetch.context import FetchContext
from odfbuild.ingest.fetch.event_time import event_time_of
from odfbuild.ingest.fetch.kartothek_address import Wanted, wanted
from odfbuild.ingest.fetch.object_store import open_store, talking_about
from odfbuild.ingest.fetch.result import Fetched, etag
from odfbuild.odf.model import FetchStepUrl, SourceState
from odfbuild.records.kartothek.dataset import Kartothek, find_metadata, opened
from odfbuild.store.place import Folder, Place
from odfbuild.store.remote import scheme_of

if TYPE_CHECKING:
    import pyarrow as pa

_LOST_FILE = Code.KARTOTHEK_FILE_MISSING
_ATTEMPTS = 3
"""Whoever collects garbage without a grace period may remove files of a state that is read."""


def fetch_kartothek(
    step: FetchStepUrl, url: str, state: SourceState | None, context: FetchContext
) -> Iterator[Fetched]:
    """Yield the rows as a Parquet file if the dataset changed, or what is asked of it."""
    asked = wanted(url, step.url)
    with talking_about(step.url):
        place = _place(asked.place, step.url, context)
        found = _changed(place, asked.uuid, None if context.moved else state)
        if found is None:
            return
        target = context.scratch / "rows.parquet"
        for attempt in range(_ATTEMPTS):
            try:
                _write(found, asked, target)
                break
            except TableError as error:
                newer = _changed(place, asked.uuid, etag(found.token))
                if error.code != _LOST_FILE or newer is None or attempt == _ATTEMPTS - 1:
                    raise
                found = newer
    event_time = event_time_of(
        step.event_time, modified=None, default=None, now=context.now, name=step.url
    )
    yield Fetched(target, etag(found.token), event_time, step.url)


def _changed(place: Place, uuid: str, state: SourceState | None) -> Kartothek | None:
    """The dataset; `None` where `state` is its state."""
    found = find_metadata(place, uuid)
    if found is None:
        raise IngestError(
            f"there is no kartothek dataset '{uuid}' at {place.address}",
            code="E0405",
            help="correct the address or the name behind `#` in `fetch.url`",
        )
    return None if etag(found.token) == state else opened(place, uuid, found)


def _place(address: str, shown: str, context: FetchContext) -> Place:
    scheme = scheme_of(address)
    if scheme is None:
        from odfbuild.ingest.fetch.local_paths import local_path

        return Folder(Path(local_path(address, context.root, shown)), shown)
    from odfbuild.store.bucket import Bucket

    parts = urlsplit(address)
    prefix = f"{parts.netloc}{parts.path}".rstrip("/")
    return Bucket(address, open_store(scheme, context), prefix)


def _write(dataset: Kartothek, asked: Wanted, target: Path) -> None:
    """Write the rows that are asked for, one data file after the other."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = dataset.read(asked.table, asked.columns, asked.where)
    schema = pa.schema([each.with_type(_readable(each.type)) for each in rows.schema])
    with pq.ParquetWriter(target, schema, coerce_timestamps="us") as writer:
        for batch in rows:
            writer.write_batch(batch.cast(schema))


def _readable(kind: pa.DataType) -> pa.DataType:
    """Naive times of kartothek are those of UTC; a column without any value may be text."""
    import pyarrow as pa

    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC")
    return pa.string() if pa.types.is_null(kind) else kind
