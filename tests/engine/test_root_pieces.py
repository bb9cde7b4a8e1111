"""An object of a source is cut at ends of records, and read only as what it was."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.engine.contract import IngestTask
from odfbuild.engine.in_pieces import RootTask, StorageAddress
from odfbuild.engine.spark.pieces import root_tasks
from odfbuild.engine.spark.pieces.roots import _cut
from odfbuild.engine.spark.pieces.tasks import NotByTasks, TaskError, Writing, problem_of
from odfbuild.errors import EngineProblem, OdfbuildError
from odfbuild.odf.model import ReadStep, ReadStepCsv, ReadStepNdJson, ReadStepParquet
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import vocabulary_of
from odfbuild.store.remote_object import RemoteObject
from tests.servers.objects import BUCKET, Objects, s3_endpoint

COLUMNS = pa.schema([("event_time", pa.timestamp("ms", "UTC")), ("id", pa.int64())])
CSV = ReadStepCsv(escape=None, header=True)
ROWS = 200
LINES = [f"2026-01-01T00:00:00.{number ^ 3:03}Z,{number}\n" for number in range(ROWS)]
TEXT = "event_time,id\n" + "".join(LINES)


@pytest.fixture(scope="module")
def objects() -> Iterator[Objects]:
    with s3_endpoint() as found:
        yield found


def put(objects: Objects, body: bytes) -> RemoteObject:
    objects.put("raw/a", body)
    etag = objects.client.head_object(Bucket=BUCKET, Key="raw/a")["ETag"]
    return RemoteObject(f"s3://{BUCKET}/raw/a", len(body), etag)


def cut(
    source: RemoteObject, read: ReadStep, piece_bytes: int
) -> tuple[tuple[tuple[int, int], ...], list[int] | None]:
    task = RootTask(
        dataset="a",
        ingest=cast(IngestTask, None),  # to cut asks nothing of it
        source=source,
        storage=StorageAddress("store", Path()),
        piece_bytes=piece_bytes,
        first_offset=0,
        system_time=Timestamp(0),
        schema_of=lambda schema: schema,
    )
    with root_tasks.reading(source, "a") as opened:
        pieces, counts = _cut(opened, read, task, COLUMNS)
    return pieces, None if counts is None else [*counts]


def how(source: RemoteObject, read: ReadStep, *pieces: tuple[int, int]) -> root_tasks.ReadingRoot:
    return root_tasks.ReadingRoot("a", source, read, COLUMNS, "event_time", Timestamp(0), pieces)


def numbers(count: int) -> Iterator[pa.RecordBatch]:
    yield pa.record_batch([pa.array(range(count))], ["id"])


def problem(error: Exception) -> OdfbuildError:
    found = problem_of(str(error))
    assert found is not None
    return found


@pytest.mark.parametrize("piece_bytes", [299, 300, 301, 10_000_000])
@pytest.mark.parametrize("ends", [True, False])
def test_pieces_of_text_end_with_lines(objects: Objects, piece_bytes: int, ends: bool) -> None:
    text = (TEXT if ends else TEXT[:-1]).encode()
    source = put(objects, text)
    pieces, _ = cut(source, CSV, piece_bytes)
    assert "".join(text[start:end].decode() for start, end in pieces) == text[14:].decode()
    assert all(text[:start].endswith(b"\n") for start, _ in pieces)
    counted = [*root_tasks.count(how(source, CSV, *pieces), numbers(len(pieces)))]
    assert sum(each["records"].to_pylist()[0] for each in counted) == ROWS


def test_pieces_of_parquet_are_row_groups(objects: Objects) -> None:
    times = pa.array(range(ROWS), pa.timestamp("us", "UTC"))
    file = io.BytesIO()
    pq.write_table(pa.table({"id": range(ROWS), "event_time": times}), file, row_group_size=40)
    source = put(objects, file.getvalue())
    assert cut(source, ReadStepParquet(), 1) == (
        tuple((number, number + 1) for number in range(5)),
        [40] * 5,
    )
    assert cut(source, ReadStepParquet(), 1 << 20) == (((0, 5),), [ROWS])


def test_a_piece_becomes_a_slice_in_order_of_time(objects: Objects, tmp_path: Path) -> None:
    source = put(objects, TEXT.encode())
    pieces, _ = cut(source, CSV, 3_000)
    vocab = vocabulary_of(None)
    schema = pa.schema(
        [
            pa.field("offset", pa.int64(), nullable=False),
            pa.field("op", pa.int32(), nullable=False),
            pa.field("system_time", pa.timestamp("ms", "UTC"), nullable=False),
            pa.field("event_time", pa.timestamp("ms", "UTC"), nullable=False),
            pa.field("id", pa.int64()),
        ]
    )
    where = StorageAddress("store", tmp_path)
    writing = Writing("a", schema, vocab, tuple(range(len(pieces))), Timestamp(0), where)
    told = [*root_tasks.write(how(source, CSV, *pieces), writing, numbers(len(pieces)))]
    found = []
    for each in told:
        data = tmp_path / "store" / "data" / each["physical"].to_pylist()[0]
        found += pq.read_table(data, columns=["event_time", "id"]).to_pylist()
    assert sorted(each["id"] for each in found) == [*range(ROWS)]
    assert sum(each["records"].to_pylist()[0] for each in told) == ROWS
    first = [each["id"] for each in found[: told[0]["records"].to_pylist()[0]]]
    assert first[:8] == [3, 2, 1, 0, 7, 6, 5, 4]


@pytest.mark.parametrize(
    ("text", "read", "why"),
    [
        ("id,event_time\n1,2\n", CSV, "another header"),
        ("event_time,id\n", CSV, "no records"),
        ("", CSV, "no bytes"),
        ("\ufeffevent_time,id\n1,2\n", CSV, "a mark"),
        (TEXT, ReadStepCsv(escape=None, quote="'"), "what stands for quotes"),
    ],
)
def test_what_is_unusual_is_not_for_tasks(
    objects: Objects, text: str, read: ReadStep, why: str
) -> None:
    with pytest.raises(NotByTasks, match=why):
        cut(put(objects, text.encode()), read, 100)


@pytest.mark.parametrize(
    ("line", "read", "why"),
    [
        ('2026-01-01T00:00:00Z,"1\n', CSV, "a quoted value"),
        ("2026-01-01T00:00:00Z,1\r", CSV, "a carriage return"),
        ("{}\n", ReadStepNdJson(), "without event time"),
    ],
)
def test_a_task_says_what_it_leaves_to_spark(
    objects: Objects, tmp_path: Path, line: str, read: ReadStep, why: str
) -> None:
    source = put(objects, line.encode())
    asked = how(source, read, (0, len(line)))
    where = StorageAddress("store", tmp_path)
    writing = Writing("a", COLUMNS, vocabulary_of(None), (0,), Timestamp(0), where)
    with pytest.raises(TaskError) as caught:
        [*root_tasks.write(asked, writing, numbers(1))]
    found = problem(caught.value)
    assert isinstance(found, NotByTasks)
    assert why in found.message


def test_an_object_that_is_replaced_meanwhile_is_not_read(objects: Objects) -> None:
    source = put(objects, TEXT.encode())
    put(objects, TEXT.replace("1", "2").encode())
    with pytest.raises(EngineProblem) as caught:
        cut(source, CSV, 1_000)
    assert caught.value.code == "E1686"


def test_an_object_that_a_worker_cannot_read_is_an_error_of_its_own(objects: Objects) -> None:
    absent = RemoteObject(f"s3://{BUCKET}/raw/absent", 100, "a")
    with pytest.raises(TaskError) as caught:
        [*root_tasks.count(how(absent, CSV, (0, 100)), numbers(1))]
    assert problem(caught.value).code == "E1685"
