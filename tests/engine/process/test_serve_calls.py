"""What the server answers to requests of any kind, and how it keeps calls apart; without Spark."""

from __future__ import annotations

import io
import json
import re
import socket
import tarfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.engine.contract import SliceFile, TransformResult, TransformTask
from odfbuild.engine.process.server.calls import Calls
from odfbuild.engine.process.server.checkpoint import (
    InputState,
    State,
    read_checkpoint,
    write_checkpoint,
)
from odfbuild.engine.process.server.serve import Serving, listening
from odfbuild.engine.process.wire import CHANNEL_OPTIONS, EXECUTE_TRANSFORM, SERVICE, enveloped
from odfbuild.errors import QueryError
from odfbuild.odf.flatbuffers.form import encode_message
from odfbuild.odf.model.data import OffsetInterval
from odfbuild.odf.model.messages import (
    DatasetVocabulary,
    TransformResponseInternalError,
    TransformResponseInvalidQuery,
    TransformResponseProgress,
    TransformResponseSuccess,
)
from odfbuild.odf.timestamp import Timestamp
from tests.apply.plain_engine import PlainEngine
from tests.engine.inputs import sql
from tests.engine.process.coordinator import Chain, Line, head_of, id_of
from tests.engine.stepwise import Source, millis

COLUMNS = [pa.field("id", pa.int64()), pa.field("value", pa.int64())]
QUERY = sql("SELECT event_time, id, value * 10 AS value FROM sales")


class Patient(PlainEngine):
    """Waits when it is asked to, until it is cancelled or let go."""

    def __init__(self) -> None:
        self.began, self.go_on = threading.Event(), threading.Event()
        self.slow = False
        self.cancelled = 0

    def transform(self, task: TransformTask) -> TransformResult:
        if "unfit" in str(task.transform):
            raise QueryError("it does not fit", code="E0515", help="write another one")
        if "broken" in str(task.transform):
            raise RuntimeError("something broke")
        if self.slow:
            self.began.set()
            assert self.go_on.wait(60)
            if self.cancelled:
                raise RuntimeError("cancelled")
        return super().transform(task)

    def cancel(self) -> None:
        self.cancelled += 1
        self.go_on.set()


@pytest.fixture
def engine() -> Patient:
    return Patient()


@pytest.fixture
def line(engine: Patient) -> Iterator[Line]:
    calls = Calls(lambda: engine, progress_seconds=0.1)
    with listening(calls, Serving(addresses=("127.0.0.1:0",))) as (address,):
        yield Line(address)


@pytest.fixture
def sales(tmp_path: Path) -> Source:
    source = Source(tmp_path, "sales", COLUMNS)
    source.add([("10:00", 1, 10), ("10:05", 2, 20), ("10:10", 3, 30)])
    return source


@pytest.fixture
def chain(line: Line, tmp_path: Path, sales: Source) -> Chain:
    return Chain(line, tmp_path / "derived", QUERY, [sales])


# --- What is computed ---


def test_records_get_offsets_operation_and_the_system_time_of_the_request(chain, sales) -> None:
    assert chain.step() == [(0, "10:00", 1, 100), (0, "10:05", 2, 200), (0, "10:10", 3, 300)]
    assert chain.answer.new_offset_interval == OffsetInterval(start=0, end=2)
    sales.add([("11:00", 4, 40)])
    assert chain.step() == [(0, "11:00", 4, 400)]
    assert chain.answer.new_offset_interval == OffsetInterval(start=3, end=3)
    assert chain.watermark == Timestamp.from_millis(millis("11:00"))


def test_the_first_record_alone_is_not_lost(chain) -> None:
    chain.sources[0].blocks[:] = []
    chain.sources[0].next_offset = 0
    chain.sources[0].add([("10:00", 1, 10)])
    assert chain.step() == [(0, "10:00", 1, 100)]
    assert chain.answer.new_offset_interval == OffsetInterval(start=0, end=0)


def test_a_result_without_records_still_has_a_file_with_its_columns(chain, sales) -> None:
    sales.blocks[:] = []
    assert chain.step() == []
    assert chain.answer == TransformResponseSuccess()
    names = ["offset", "op", "system_time", "event_time", "id", "value"]
    assert pq.read_schema(chain.folder / "out-1" / "data").names == names


def test_a_watermark_that_comes_alone_is_passed_on(chain, sales) -> None:
    chain.step()
    sales.add([], watermark="12:00")
    assert chain.step() == []
    assert chain.watermark == Timestamp.from_millis(millis("12:00"))


def test_without_any_watermark_nothing_is_promised(line, tmp_path) -> None:
    silent = Source(tmp_path, "sales", COLUMNS)
    silent.add([("10:00", 1, 10)], watermark=None)
    chain = Chain(line, tmp_path / "derived", QUERY, [silent])
    assert chain.step() == [(0, "10:00", 1, 100)]
    assert chain.watermark is None


def test_the_slower_of_two_inputs_holds_the_watermark_back_also_where_it_stands_still(
    line, tmp_path
) -> None:
    first, second = (Source(tmp_path, name, COLUMNS) for name in ("first", "second"))
    first.add([("10:00", 1, 10)])
    second.add([("05:00", 2, 20)])
    chain = Chain(line, tmp_path / "derived", QUERY, [first, second])
    chain.step()
    assert chain.watermark == Timestamp.from_millis(millis("05:00"))
    first.add([("12:00", 3, 30)])
    assert chain.step() == [(0, "12:00", 3, 300)]
    assert chain.watermark == Timestamp.from_millis(millis("05:00"))


def test_only_records_of_the_interval_are_read(chain, sales) -> None:
    asked = chain.request()
    (one,) = asked.query_inputs
    part = replace(one, offset_interval=OffsetInterval(start=1, end=1))
    answer = chain.line.transform(replace(asked, query_inputs=(part,), next_offset=7))
    assert answer.new_offset_interval == OffsetInterval(start=7, end=7)
    assert pq.read_table(asked.new_data_path)["id"].to_pylist() == [2]


def test_records_come_by_offset_however_files_and_rows_are_ordered(chain, sales, tmp_path) -> None:
    for number in range(4, 9):
        sales.add([(f"11:0{number}", number, 1)])
    asked = chain.request()
    (one,) = asked.query_inputs
    table = pq.read_table(one.data_paths[0])
    turned = tmp_path / "turned"
    pq.write_table(table.take(pa.array([2, 0, 1])), turned)
    paths = (*reversed(one.data_paths[1:]), str(turned))
    chain.answer = chain.line.transform(
        replace(asked, query_inputs=(replace(one, data_paths=paths),))
    )
    chain.commit(asked)
    assert pq.read_table(chain.files[-1])["id"].to_pylist() == [1, 2, 3, 4, 5, 6, 7, 8]


def test_offsets_may_be_large(chain) -> None:
    asked = replace(chain.request(), next_offset=2**40)
    answer = chain.line.transform(asked)
    assert answer.new_offset_interval == OffsetInterval(start=2**40, end=2**40 + 2)
    assert pq.read_schema(asked.new_data_path).field("offset").type == pa.int64()


def test_system_columns_have_the_names_of_the_vocabulary(chain) -> None:
    vocab = DatasetVocabulary(
        offset_column="nr", operation_type_column="what", system_time_column="seen"
    )
    chain.vocab = vocab
    chain.step()
    names = ["nr", "what", "seen", "event_time", "id", "value"]
    assert pq.read_schema(chain.files[0]).names == names


# --- What is refused ---


def test_an_invalid_query_is_told_with_its_code_and_the_way_out(chain) -> None:
    answer = chain.asks(transform=sql("SELECT unfit"))
    assert answer == TransformResponseInvalidQuery(
        message="E0515 it does not fit\n  help: write another one"
    )


def test_what_nobody_expected_is_an_internal_error_with_a_backtrace(chain) -> None:
    answer = chain.asks(transform=sql("SELECT broken"))
    assert isinstance(answer, TransformResponseInternalError)
    assert answer.message == "RuntimeError: something broke"
    assert "transform" in answer.backtrace
    chain.step()  # it lives


def damaged(path: Path) -> None:
    path.write_bytes(b"PAR1 and nothing else")


def of_another_type(path: Path) -> None:
    table = pq.read_table(path)
    at = table.schema.get_field_index("value")
    pq.write_table(table.set_column(at, "value", table["value"].cast(pa.string())), path)


def cut_short(path: Path) -> None:
    pq.write_table(pq.read_table(path).slice(0, 2), path)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (Path.unlink, "cannot be read: .*No such file"),
        (damaged, "cannot be read: .*[Pp]arquet"),
        (of_another_type, "column 'value' of .* is string, but the input has it as int64"),
        (cut_short, "the slices hold 2 records with offsets 0 to 2, and 3 are expected"),
    ],
)
def test_a_slice_that_is_not_as_it_should_be_is_named(chain, sales, spoil, words) -> None:
    spoil(sales.blocks[0][0].path)
    answer = chain.asks()
    assert isinstance(answer, TransformResponseInternalError)
    assert answer.message.startswith("E1404")
    assert re.search(words, answer.message), answer.message


def test_columns_whose_types_only_arrow_knows_are_read(chain, sales) -> None:
    path = sales.blocks[0][0].path
    table = pq.read_table(path).append_column("for", pa.array([1, 2, 3], pa.duration("us")))
    pq.write_table(table, path)
    plain = chain.folder / "plain"
    plain.parent.mkdir()
    pq.write_table(table.schema.empty_table(), plain, store_schema=False)
    asked = chain.request()
    (one,) = asked.query_inputs
    answer = chain.line.transform(
        replace(asked, query_inputs=(replace(one, schema_file=str(plain)),))
    )
    assert isinstance(answer, TransformResponseSuccess), answer


def test_a_folder_that_cannot_be_written_to_is_named(chain, tmp_path) -> None:
    answer = chain.asks(new_data_path=str(tmp_path / "nowhere" / "data"))
    assert isinstance(answer, TransformResponseInternalError)
    assert answer.message.startswith("E1406")
    assert re.search("nowhere/data cannot be written: .*No such file", answer.message)


def test_nothing_lies_under_the_final_name_where_a_later_file_cannot_be_written(chain) -> None:
    asked = chain.request()
    nowhere = str(chain.folder / "nowhere" / "checkpoint")
    answer = chain.line.transform(replace(asked, new_checkpoint_path=nowhere))
    assert answer.message.startswith("E1406")
    assert list(Path(asked.new_data_path).parent.iterdir()) == []


@pytest.mark.parametrize(
    "data",
    [
        b"",
        enveloped(b"no FlatBuffer at all"),
        enveloped(encode_message(TransformResponseSuccess())),
        b"\xff" * 20,
    ],
)
def test_bytes_that_are_no_request_are_answered_in_the_protocol(chain, data) -> None:
    (final,) = map(
        EXECUTE_TRANSFORM.decode_response, chain.line.bytes(EXECUTE_TRANSFORM.path, data)
    )
    assert isinstance(final, TransformResponseInternalError)
    assert final.message.startswith("the request cannot be read")
    chain.step()


def test_a_request_without_a_required_field_or_with_an_unknown_union_is_answered(chain) -> None:
    data = encode_message(replace(chain.request(), transform=None))
    (final,) = chain.line.bytes(EXECUTE_TRANSFORM.path, enveloped(data))
    assert "has no transform" in EXECUTE_TRANSFORM.decode_response(final).message
    other = bytearray(encode_message(chain.request()))
    whole = bytes(other)
    for at in [n for n, byte in enumerate(whole) if byte == 1]:
        changed = whole[:at] + b"\x09" + whole[at + 1 :]
        answers = chain.line.bytes(EXECUTE_TRANSFORM.path, enveloped(changed))
        kinds = [EXECUTE_TRANSFORM.decode_response(each).KIND for each in answers]
        assert kinds[-1] in ("InternalError", "InvalidQuery", "Success")


def test_unknown_fields_of_the_envelope_are_ignored(chain) -> None:
    asked = chain.request()
    data = b"\x12\x03new" + EXECUTE_TRANSFORM.encode_request(asked) + b"\x18\x07"
    answers = chain.line.bytes(EXECUTE_TRANSFORM.path, data)
    assert EXECUTE_TRANSFORM.decode_response(answers[-1]).KIND == "Success"


def test_a_request_of_more_than_four_mib_is_read(chain, sales) -> None:
    asked = chain.request()
    (one,) = asked.query_inputs
    many = (*one.data_paths, *(f"/opt/engine/in/f1620{n:064d}" for n in range(50_000)))
    answer = chain.line.transform(replace(asked, query_inputs=(replace(one, data_paths=many),)))
    assert "/opt/engine/in/f1620" in answer.message
    assert answer.message.startswith("E1404")


def test_an_unknown_method_is_refused_by_grpc(line) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        line.bytes(f"/{SERVICE}/Migrate", b"")
    assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED


# --- Calls ---


def test_long_work_gives_signs_of_life_and_one_final_answer(engine, chain) -> None:
    engine.slow = True
    threading.Timer(0.5, engine.go_on.set).start()
    answers = chain.line.call(EXECUTE_TRANSFORM, chain.request())
    assert [type(each) for each in answers[:-1]] == [TransformResponseProgress] * len(answers[:-1])
    assert len(answers) > 2
    assert isinstance(answers[-1], TransformResponseSuccess)


def test_a_second_call_waits_for_the_first_and_both_are_answered(engine, chain) -> None:
    engine.slow = True
    found = []
    requests = [chain.request(), chain.request()]
    threads = [
        threading.Thread(target=lambda each=each: found.append(chain.line.transform(each)))
        for each in requests
    ]
    for each in threads:
        each.start()
    assert engine.began.wait(60)
    time.sleep(0.3)
    assert found == []
    engine.go_on.set()
    for each in threads:
        each.join(60)
    assert [each.KIND for each in found] == ["Success", "Success"]


def test_a_caller_who_leaves_ends_the_work_and_the_next_call_is_answered(engine, chain) -> None:
    engine.slow = True
    with grpc.insecure_channel(chain.line.address, CHANNEL_OPTIONS) as channel:
        data = EXECUTE_TRANSFORM.encode_request(chain.request())
        method: Any = channel.unary_stream(EXECUTE_TRANSFORM.path)
        call = method(data, wait_for_ready=True)
        assert engine.began.wait(60)
        call.cancel()
    deadline = time.monotonic() + 10
    while not engine.cancelled and time.monotonic() < deadline:
        time.sleep(0.05)
    assert engine.cancelled
    engine.slow = False
    chain.step()


def test_connections_that_say_nothing_do_no_harm(chain) -> None:
    host, _, port = chain.line.address.rpartition(":")
    for _ in range(100):
        with socket.create_connection((host, int(port)), timeout=60) as idle:
            assert idle.recv(1)  # the server speaks first
    chain.step()


# --- Checkpoints ---


def tar_of(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w") as archive:
        for info, data in members:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def member(name: str, data: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = ""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info, data


def test_the_same_state_has_the_same_bytes(chain) -> None:
    bytes_ = []
    for _ in range(2):
        asked = chain.request()
        chain.line.transform(asked)
        bytes_.append(Path(asked.new_checkpoint_path).read_bytes())
    assert bytes_[0] == bytes_[1]
    with tarfile.open(fileobj=io.BytesIO(bytes_[0])) as archive:
        assert archive.getnames()[0] == "odfbuild.json"


def test_a_checkpoint_is_an_archive_that_any_program_reads(tmp_path) -> None:
    files = []
    for name, content in (("first", b"x" * 1000), ("second", b""), ("third", b"y" * 512)):
        files.append(tmp_path / name)
        files[-1].write_bytes(content)
    state = State(inputs={id_of("sales"): InputState(slices=(SliceFile(files[0], None),))})
    write_checkpoint(replace(state, results=(*files[1:], files[0])), tmp_path / "checkpoint")
    contents = {}
    with tarfile.open(tmp_path / "checkpoint") as archive:
        for each in archive.getmembers():
            contents[each.name] = archive.extractfile(each).read()
    head = json.loads(contents["odfbuild.json"])
    tar_of(tmp_path / "other", *(member(name, data) for name, data in contents.items()))
    assert (tmp_path / "checkpoint").read_bytes() == (tmp_path / "other").read_bytes()
    found = [contents[str(number)] for number in range(4)]
    assert found == [
        (tmp_path / each).read_bytes() for each in ("first", "second", "third", "first")
    ]
    assert [each["sha256"] for each in head["files"]] == [
        sha256(each).hexdigest() for each in found
    ]
    (tmp_path / "scratch").mkdir()
    read = read_checkpoint(tmp_path / "checkpoint", tmp_path / "scratch", [])
    assert [each.read_bytes() for each in read.files] == found


HOSTILE = {
    "another engine": lambda f, head: tar_of(f, member("savepoint-1", b"x")),
    "outside": lambda f, head: tar_of(f, member("../../evil.watermark", b"x")),
    "a link": lambda f, head: tar_of(
        f, member("odfbuild.json", kind=tarfile.SYMTYPE, link="/etc/passwd")
    ),
    "a device": lambda f, head: tar_of(f, member("odfbuild.json", kind=tarfile.CHRTYPE)),
    "no JSON": lambda f, head: tar_of(f, member("odfbuild.json", b"{")),
    "another format": lambda f, head: tar_of(f, member("odfbuild.json", b'{"format": 99}')),
    "more files": lambda f, head: tar_of(
        f, member("odfbuild.json", json.dumps(head).encode()), member("/tmp/evil", b"x")
    ),
    "fewer files": lambda f, head: tar_of(
        f,
        member(
            "odfbuild.json",
            json.dumps({**head, "files": [{"size": 3, "sha256": "0" * 64}]}).encode(),
        ),
    ),
    "changed files": lambda f, head: tar_of(
        f,
        member(
            "odfbuild.json",
            json.dumps({**head, "files": [{"size": 3, "sha256": "0" * 64}]}).encode(),
        ),
        member("0", b"abc"),
    ),
    "a file without an end": lambda f, head: tar_of(
        f,
        member(
            "odfbuild.json",
            json.dumps({**head, "files": [{"size": 1 << 99, "sha256": "0" * 64}]}).encode(),
        ),
        member("0", b"abc"),
    ),
    "a link in place of a file": lambda f, head: tar_of(
        f,
        member(
            "odfbuild.json",
            json.dumps({**head, "files": [{"size": 0, "sha256": "0" * 64}]}).encode(),
        ),
        member("0", kind=tarfile.LNKTYPE, link="odfbuild.json"),
    ),
    "no archive": lambda f, head: f.write_bytes(b"nothing"),
    "empty": lambda f, head: f.write_bytes(b""),
    "cut off": lambda f, head: f.write_bytes(
        tar_of(f, member("odfbuild.json", b"x" * 2000)).read_bytes()[:1000]
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_checkpoint_that_is_damaged_or_foreign_is_refused(chain, sales, tmp_path, kind) -> None:
    chain.step()
    sales.add([("11:00", 4, 40)])
    head = head_of(chain.checkpoint)
    before = set(tmp_path.rglob("*"))
    HOSTILE[kind](tmp_path / "bad", head)
    answer = chain.asks(prev_checkpoint_path=str(tmp_path / "bad"))
    assert isinstance(answer, TransformResponseInternalError), answer
    assert answer.message.startswith("E1405"), answer.message
    assert "reset the dataset" in answer.message
    new = set(tmp_path.rglob("*")) - before
    assert {path.name for path in new} <= {"bad", "out-2"}


def test_a_missing_checkpoint_is_named(chain, tmp_path) -> None:
    answer = chain.asks(prev_checkpoint_path=str(tmp_path / "gone"))
    assert answer.message.startswith("E1405")
    assert "No such file" in answer.message


def test_watermarks_of_the_spark_engine_of_the_reference_are_taken_over(chain, sales) -> None:
    chain.step()
    old = chain.folder / "old"
    data = b"2024-05-01T10:30:00Z\n"
    tar_of(old, member(f"{id_of('sales')}.watermark", data))
    sales.add([("11:00", 4, 40)], watermark=None)
    sales.blocks[-1] = (*sales.blocks[-1][:2], None)
    chain.checkpoint = old
    assert chain.step() == [(0, "11:00", 4, 400)]
    assert chain.watermark == Timestamp.from_millis(millis("10:30"))
    assert head_of(chain.checkpoint)["inputs"][0]["nextOffset"] == 4


def test_a_checkpoint_of_another_step_is_refused(chain, sales) -> None:
    chain.step()
    sales.add([("11:00", 4, 40)])
    answer = chain.asks(next_offset=99)
    assert "E1404 the checkpoint belongs to the step before offset 3" in answer.message
    asked = chain.request()
    (one,) = asked.query_inputs
    again = replace(one, offset_interval=OffsetInterval(start=0, end=3))
    answer = chain.line.transform(replace(asked, query_inputs=(again,)))
    assert "does not come just before 0" in answer.message


def test_slices_with_the_types_of_the_specification_are_read(chain, sales) -> None:
    path = sales.blocks[0][0].path
    table = pq.read_table(path)
    for name, kind in (("offset", pa.uint64()), ("op", pa.uint8())):
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, table[name].cast(kind))
    pq.write_table(table, path)
    assert len(chain.step()) == 3
    assert np.array(pq.read_table(chain.files[0])["id"]).tolist() == [1, 2, 3]
