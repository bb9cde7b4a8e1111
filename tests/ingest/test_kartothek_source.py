"""Tables of kartothek as sources: `kartothek+file:///lake?columns=…&where=…#uuid`."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.errors import IngestError, OdfbuildError
from odfbuild.exchange.tables.kartothek.format import KartothekTable
from odfbuild.ingest.check import problems_of
from odfbuild.ingest.fetch import fetch
from odfbuild.ingest.fetch.url import check_url
from odfbuild.odf.model import (
    FetchStepUrl,
    MergeStrategyAppend,
    ReadStepCsv,
    SetPollingSource,
)
from odfbuild.store.place import Folder
from tests.exchange.tables.kartothek.tables import pin, table_at, touched
from tests.ingest.contexts import Poller, at
from tests.servers.objects import BUCKET, s3_endpoint

COLUMNS = pa.schema(
    [
        ("offset", pa.int64()),
        ("country", pa.string()),
        ("product", pa.string()),
        ("at", pa.timestamp("ms", "UTC")),
    ]
)
KEYS = ("country",)


def row(offset: int) -> dict[str, Any]:
    return {
        "offset": offset,
        "country": ("de", "fr", "a=b/c")[offset % 3],
        "product": None if offset % 5 == 4 else f"p{offset // 3 % 4}",
        "at": 1_700_000_000_000 + offset,
    }


def publish(location: str, folder: Path, offsets: range, *, name: str = "orders") -> KartothekTable:
    """Publish rows in further partitions; the first call makes the table."""
    table = table_at(
        folder,
        schema=COLUMNS,
        name=name,
        location=location,
        partition_by=KEYS,
        indices=("product",),
    )
    state = table.read_state()
    content = touched([row(each) for each in offsets], KEYS, COLUMNS)
    replaced = None if state is None else [each.key for each in content]
    table.commit(state, pin(offsets.stop), replaced, content)
    return table


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    (tmp_path / "lake").mkdir()
    publish(str(tmp_path / "lake"), tmp_path, range(30))
    return tmp_path / "lake"


def source(root: Path, address: str) -> Poller:
    return Poller(root, FetchStepUrl(url=address))


def address(lake: Path, **query: Any) -> str:
    asked = "&".join(
        f"{key}={quote(value if isinstance(value, str) else json.dumps(value))}"
        for key, value in query.items()
    )
    return f"kartothek+file://{lake}{'?' + asked if asked else ''}#orders"


def rows(found: list[bytes | None]) -> list[dict[str, Any]]:
    (data,) = found
    assert data is not None
    return sorted(pq.read_table(io.BytesIO(data)).to_pylist(), key=lambda each: each["offset"])


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Names of files that were read since the last call."""
    names: list[str] = []
    read = Folder.read

    def counted(self: Folder, name: str, limit: int) -> bytes | None:
        found = read(self, name, limit)
        if found is not None:
            names.append(name)
        return found

    monkeypatch.setattr(Folder, "read", counted)

    def since() -> list[str]:
        found, names[:] = list(names), []
        return found

    return since


def test_all_rows_come_once_for_each_state_of_the_dataset(tmp_path: Path, lake: Path) -> None:
    orders = source(tmp_path, address(lake))
    first = rows(orders.poll())
    assert [each["offset"] for each in first] == list(range(30))
    assert first[2]["country"] == "a=b/c"
    assert first[0]["at"].tzinfo is not None
    assert orders.poll() == []
    publish(str(lake), tmp_path, range(30, 33))
    assert [each["offset"] for each in rows(orders.poll())] == [30, 31, 32]
    assert orders.poll() == []


def test_where_nothing_is_new_only_the_metadata_file_is_read(
    tmp_path: Path, lake: Path, opened: Callable[[], list[str]]
) -> None:
    orders = source(tmp_path, address(lake))
    orders.poll()
    opened()
    orders.poll()
    assert opened() == ["orders.by-dataset-metadata.json"]


def test_predicates_are_answered_before_a_data_file_is_opened(
    tmp_path: Path, lake: Path, opened: Callable[[], list[str]]
) -> None:
    def data_files() -> list[str]:
        return [each for each in opened() if each.startswith("orders/table/country")]

    where = [[["country", "==", "de"], ["product", "in", ["p1", "p2"]]]]
    found = rows(source(tmp_path, address(lake, where=where)).poll())
    expected = [row(each) for each in range(30)]
    expected = [
        each for each in expected if each["country"] == "de" and each["product"] in ("p1", "p2")
    ]
    assert [each["offset"] for each in found] == [each["offset"] for each in expected]
    assert len(data_files()) == 1
    nobody = source(tmp_path, address(lake, where=[[["product", "==", "none"]]]))
    assert rows(nobody.poll()) == []
    assert data_files() == []
    either = [[["country", "==", "fr"]], [["product", "==", None]]]
    found = rows(source(tmp_path, address(lake, where=either)).poll())
    assert {each["country"] for each in found} == {"de", "fr", "a=b/c"}
    assert len(data_files()) == 3


def test_only_the_columns_that_are_asked_for_come(tmp_path: Path, lake: Path) -> None:
    found = rows(source(tmp_path, address(lake, columns="product,offset")).poll())
    assert list(found[0]) == ["product", "offset"]


def test_another_question_is_asked_though_the_dataset_is_the_same(
    tmp_path: Path, lake: Path
) -> None:
    orders = source(tmp_path, address(lake))
    orders.poll()
    moved = at(tmp_path, moved=True)
    step = FetchStepUrl(url=address(lake, columns="offset"))
    assert len(list(fetch(step, orders.state, moved))) == 1


def test_files_that_garbage_collection_took_are_read_of_the_newer_state(
    tmp_path: Path, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, calls = Folder.read, []

    def racing(self: Folder, name: str, limit: int) -> bytes | None:
        if name.startswith("orders/table/country") and not calls:
            calls.append(name)
            table = publish(str(lake), tmp_path, range(30, 60))
            table.collect(timedelta(0))
        return read(self, name, limit)

    monkeypatch.setattr(Folder, "read", racing)
    found = rows(source(tmp_path, address(lake)).poll())
    assert [each["offset"] for each in found] == list(range(30, 60))


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with s3_endpoint():
        yield f"s3://{BUCKET}/lake"


def test_a_store_of_objects_is_asked_in_the_same_way(tmp_path: Path, bucket: str) -> None:
    publish(bucket, tmp_path, range(9))
    where = quote(json.dumps([[["country", "==", "fr"]]]))
    orders = source(tmp_path, f"kartothek+{bucket}?where={where}#orders")
    assert [each["offset"] for each in rows(orders.poll())] == [1, 4, 7]
    assert orders.poll() == []


WRONG = {
    "kartothek+file:///lake": ("E0407", "does not name the dataset"),
    "kartothek+file:///lake?colums=a#x": ("E0407", "did you mean 'columns'?"),
    "kartothek+file:///lake?table=a&table=b#x": ("E0407", "it has 'table' twice"),
    "kartothek+file:///lake?where=a%3D1#x": ("E0407", "`where` is not JSON"),
    "kartothek+file:///lake?where=[[1]]#x": ("E0407", "no list of lists"),
    "kartothek+http://host/lake#x": ("E0407", "kartothek+file:"),
}


@pytest.mark.parametrize("url", WRONG)
def test_a_wrong_address_is_refused_when_the_definition_is_read(url: str) -> None:
    code, said = WRONG[url]
    with pytest.raises(IngestError) as error:
        check_url(url)
    assert error.value.code == code
    assert said in f"{error.value.message} {error.value.help}"


ASKED = {
    "#nobody": ("E0405", "no kartothek dataset 'nobody'"),
    "?table=no#orders": ("E1334", "no table 'no'"),
    "?columns=no#orders": ("E1335", "no column 'no'"),
    '?where=[[["product","==",1]]]#orders': ("E1336", "cannot be compared"),
}


@pytest.mark.parametrize("asked", ASKED)
def test_what_a_dataset_does_not_have_is_an_error(tmp_path: Path, lake: Path, asked: str) -> None:
    code, said = ASKED[asked]
    with pytest.raises(OdfbuildError) as error:
        source(tmp_path, f"kartothek+file://{lake}{asked}").poll()
    assert (error.value.code, said in error.value.message) == (code, True)


def test_a_definition_that_reads_a_table_as_something_else_is_refused() -> None:
    polled = SetPollingSource(
        fetch=FetchStepUrl(url="kartothek+file:///lake#orders"),
        read=ReadStepCsv(),
        merge=MergeStrategyAppend(),
    )
    assert [error.code for _, error in problems_of(polled)] == ["E1367"]
