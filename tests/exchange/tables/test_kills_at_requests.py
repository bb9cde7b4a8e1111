"""`kill -9` at requests to a store of objects while libraries write a table, then a rerun.

Delta and Iceberg do their steps within libraries. What they do to a store are requests, which a
proxy sees: it kills an apply at one of them after the other. The catalogue of the tables of Iceberg
is a file of SQLite, which changes between two requests.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchTableError

from odfbuild.exchange.tables.storage_options import for_delta, for_iceberg
from tests.apply.tiny import Tiny
from tests.exchange.tables.processes import ended, start
from tests.servers.objects import BUCKET, Objects, s3_program
from tests.servers.proxy import Proxy, proxy

LAKE = f"s3://{BUCKET}/tables"
KILLED = -9
Read = Callable[[Path], pa.Table | None]


def read_delta(root: Path) -> pa.Table | None:
    options = for_delta(LAKE)
    if not deltalake.DeltaTable.is_deltatable(f"{LAKE}/root", options):
        return None
    return deltalake.DeltaTable(f"{LAKE}/root", storage_options=options).to_pyarrow_table()


def read_iceberg(root: Path) -> pa.Table | None:
    catalogue = load_catalog("default", uri=f"sqlite:///{root}/lake.db", **for_iceberg(LAKE))
    try:
        return catalogue.load_table(("default", "root")).scan().to_arrow()
    except NoSuchTableError:
        return None


READERS: dict[str, Read] = {"delta": read_delta, "iceberg": read_iceberg}


class Saved:
    """A project and a store as they were, to which both go back."""

    def __init__(self, root: Path, store: Objects, folder: Path) -> None:
        self._root, self._store, self._folder = root, store, folder
        shutil.copytree(root, folder, symlinks=True)
        self._objects = {key: self._content(key) for key in self._listed()}

    def restore(self) -> None:
        shutil.rmtree(self._root)
        shutil.copytree(self._folder, self._root, symlinks=True)
        for key in self._listed() - self._objects.keys():
            self._store.client.delete_object(Bucket=BUCKET, Key=key)
        for key, content in self._objects.items():
            self._store.put(key, content)

    def _listed(self) -> set[str]:
        found = self._store.client.list_objects_v2(Bucket=BUCKET).get("Contents", [])
        return {each["Key"] for each in found}

    def _content(self, key: str) -> bytes:
        content: bytes = self._store.client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        return content


class Publication:
    """An apply that has nothing to do but to publish a table: new, or with one record more."""

    def __init__(self, format: str, first: bool, folder: Path, store: Objects, seen: Proxy) -> None:
        self._read, self._proxy = READERS[format], seen
        tiny = Tiny.fresh(folder / "p")
        self.root = tiny.root
        config = tiny.root / "odfbuild.yaml"
        uri = f"catalogue: {{uri: 'sqlite:///{tiny.root}/lake.db'}}"
        settings = f"format: {format}" + (f", {uri}" if format == "iceberg" else "")
        entry = f"{{match: [root], {settings}, location: '{LAKE}', partitionBy: [id]}}"
        without = config.read_text()
        declared = f"{without}  tables: [{entry}]\n"
        self.old, self.new = (None, [1, 2, 3]) if first else ([1, 2, 3], [1, 2, 3, 4])
        if not first:
            config.write_text(declared)
            assert self.apply() == 0
            tiny.arrive(2)
        config.write_text(without)
        assert self.apply() == 0
        config.write_text(declared)
        assert self.ids() == self.old
        self.saved = Saved(tiny.root, store, folder / "saved")

    def apply(self, kill_at: int | None = None) -> int | None:
        through = {"AWS_ENDPOINT_URL": self._proxy.endpoint}
        return ended(self._proxy.watch(lambda: start(self.root, through), kill_at))

    def ids(self) -> list[int] | None:
        found = self._read(self.root)
        return None if found is None else sorted(found["id"].to_pylist())

    def requests(self) -> list[str]:
        """The methods of all requests of the publication when nothing happens to it."""
        assert self.apply() == 0
        assert self.ids() == self.new
        return list(self._proxy.requests)

    def killed_at(self, step: int) -> list[int] | None:
        """Kill at a request, publish again; what readers saw in between."""
        self.saved.restore()
        assert self.apply(kill_at=step) == KILLED
        between = self.ids()
        assert between in (self.old, self.new)
        assert self.apply() == 0
        assert self.ids() == self.new
        return between


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Objects]:
    with s3_program(tmp_path_factory.mktemp("s3")) as objects:
        yield objects


@pytest.fixture(scope="module")
def seen(store: Objects) -> Iterator[Proxy]:
    with proxy(store.endpoint) as made:
        yield made


@pytest.fixture(autouse=True)
def empty(store: Objects) -> None:
    found = store.client.list_objects_v2(Bucket=BUCKET).get("Contents", [])
    for each in found:
        store.client.delete_object(Bucket=BUCKET, Key=each["Key"])


def in_order(states: list[list[int] | None], publication: Publication) -> None:
    """Readers have the old state until one moment, and the new one from then on."""
    behind = states.count(publication.new)
    before = len(states) - behind
    assert states == [publication.old] * before + [publication.new] * behind
    assert before


@pytest.mark.long
@pytest.mark.parametrize("format", READERS)
def test_an_increment_that_is_killed_before_any_write_leaves_the_old_state(
    format: str, tmp_path: Path, store: Objects, seen: Proxy
) -> None:
    """Nothing changes in the store between two writes. The last request comes behind them."""
    publication = Publication(format, False, tmp_path, store, seen)
    requests = publication.requests()
    writes = [step for step, method in enumerate(requests) if method in ("PUT", "POST")]
    assert len(writes) > 1
    in_order([publication.killed_at(step) for step in (*writes, len(requests) - 1)], publication)


@pytest.mark.slow
@pytest.mark.parametrize("format", READERS)
@pytest.mark.parametrize("first", [True, False], ids=["creation", "increment"])
def test_a_publication_that_is_killed_at_any_request_leaves_the_old_state_or_the_new_one(
    format: str, first: bool, tmp_path: Path, store: Objects, seen: Proxy
) -> None:
    """Slow, because each of some thirty requests means two applies."""
    publication = Publication(format, first, tmp_path, store, seen)
    steps = range(len(publication.requests()))
    in_order([publication.killed_at(step) for step in steps], publication)
