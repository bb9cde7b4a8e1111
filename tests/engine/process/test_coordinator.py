"""What the coordinator asks of an engine, and does with what it answers.

Numbers (C1 …) are those of the table in docs/compatibility.md.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from odfbuild.engine.contract import InputSlices, SliceFile, TransformTask
from odfbuild.engine.process.files import step_files, transform_request
from odfbuild.engine.process.wire import EXECUTE_TRANSFORM, MalformedMessage
from odfbuild.odf.model import OffsetInterval, SqlQueryStep, TransformSql
from odfbuild.odf.model.messages import (
    TransformResponseInternalError,
    TransformResponseInvalidQuery,
    TransformResponseProgress,
    TransformResponseSuccess,
)
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import Vocabulary
from tests.apply.tiny import QUERY
from tests.engine.process.fake_engine import MILLIS, FakeEngine, Script, for_ever, serving
from tests.engine.process.project import Remote, remote

__all__ = ["remote"]


AT = {"version": "1.0", "timeout": 20}


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def served(script: Script, remote: Remote) -> Iterator[Remote]:
    """The project, with an engine that follows `script`."""
    with serving(script) as address:
        remote.engines(mine={**AT, "address": address})
        yield remote


def test_a_derivative_is_computed_by_the_program_that_is_its_engine(
    served: Remote, script: Script
) -> None:
    served.program.apply()
    assert served.values() == [10, 20, 30]
    assert served.versions() == ["mine@1.0"]
    served.tiny.arrive(2)
    served.program.apply()
    assert served.values() == [10, 20, 30, 40]
    assert "No changes" in served.program.ok("plan").out
    served.program.ok("verify")


# --- C1 to C5: what is asked ---


def test_c1_the_first_request_names_all_that_the_step_follows_from(
    served: Remote, script: Script
) -> None:
    served.program.apply()
    asked = [each for each in script.requests if each.query_inputs[0].data_paths]
    [first] = asked
    root = served.tiny.workspace().projection("root")
    [block] = [b for _, b in blocks(served, "derived") if b.event == served.steps()[0]]
    [given] = first.query_inputs
    assert (str(first.dataset_alias), first.next_offset) == ("derived", 0)
    assert first.system_time == block.system_time
    assert first.prev_checkpoint_path is None
    assert (first.transform.version, first.transform.query) == ("mine@1.0", None)
    assert [each.alias for each in first.transform.queries] == [None]
    assert (given.dataset_id, given.query_alias) == (root.dataset_id, "source")
    assert (given.offset_interval.start, given.offset_interval.end) == (0, 2)
    assert [each.event_time for each in given.explicit_watermarks] == [root.watermark]
    assert given.vocab == first.vocab
    assert all((first.vocab.offset_column, first.vocab.event_time_column))
    assert Path(first.new_data_path).parent == Path(first.new_checkpoint_path).parent


def test_c1_a_later_request_goes_on_where_the_dataset_ended(served: Remote, script: Script) -> None:
    served.program.apply()
    served.tiny.arrive(2)
    served.program.apply()
    last = script.requests[-1]
    assert last.next_offset == 3
    assert last.dataset_id == served.tiny.workspace().projection("derived").dataset_id
    [given] = last.query_inputs
    assert (given.offset_interval.start, given.offset_interval.end) == (3, 3)
    assert len(given.data_paths) == 1


def test_c2_an_idle_input_has_a_schema_and_neither_files_nor_an_interval(
    served: Remote, script: Script
) -> None:
    two_inputs(served)
    served.program.apply()
    (served.tiny.root / "data" / "more.csv").write_text(
        "event_time,id,value\n2024-03-01 00:00:00,9,9\n"
    )
    served.program.apply()
    busy, idle = script.requests[-1].query_inputs
    assert busy.offset_interval is not None and busy.data_paths
    assert (idle.offset_interval, idle.data_paths, idle.explicit_watermarks) == (None, (), ())
    assert idle.schema_file.endswith(".parquet")


def test_c3_slices_with_other_types_are_copied_in_those_that_engines_read(
    tmp_path: Path,
) -> None:
    stored = pa.schema([("offset", pa.uint64()), ("op", pa.uint8()), ("id", pa.int64())])
    file = tmp_path / "slice"
    pq.write_table(pa.table([[0, 1], [0, 1], [7, 8]], schema=stored), file)
    before = file.read_bytes()
    given = InputSlices(
        alias="a",
        schema=stored,
        vocab=Vocabulary(),
        slices=(SliceFile(file),),
        first=0,
        last=1,
    )
    [[copy]] = step_files(task(tmp_path, given)).slices
    found = pq.ParquetFile(copy).read()
    assert found.schema.types == [pa.int64(), pa.int32(), pa.int64()]
    assert found["id"].to_pylist() == [7, 8]
    assert file.read_bytes() == before


def test_c4_the_same_slice_in_two_inputs_is_in_one_folder(tmp_path: Path) -> None:
    schema = pa.schema([("offset", pa.int64()), ("op", pa.int32())])
    file = tmp_path / "slice"
    pq.write_table(schema.empty_table(), file)
    given = [
        InputSlices(
            alias=alias,
            schema=schema,
            vocab=Vocabulary(),
            slices=(SliceFile(file),),
            first=0,
            last=0,
        )
        for alias in ("a", "b")
    ]
    files = step_files(task(tmp_path, *given))
    assert files.slices[0] == files.slices[1]
    assert files.read.count(tmp_path) == 1


def test_c5_ten_thousand_slices_take_one_mount(tmp_path: Path) -> None:
    schema = pa.schema([("offset", pa.int64()), ("op", pa.int32())])
    slices = tuple(SliceFile(tmp_path / f"f1620{number:064}") for number in range(10_000))
    given = InputSlices(
        alias="a", schema=schema, vocab=Vocabulary(), slices=slices, first=0, last=9_999
    )
    asked = task(tmp_path, given)
    files = step_files(asked)
    assert len(files.read) == 2  # that of the slices, and ours with the schema
    request = transform_request(asked, files, lambda file: f"/opt/engine/in/0/{file.name}")
    assert len(EXECUTE_TRANSFORM.encode_request(request)) > 900_000
    sent = EXECUTE_TRANSFORM.decode_request(EXECUTE_TRANSFORM.encode_request(request))
    assert len(sent.query_inputs[0].data_paths) == 10_000


# --- C6 to C8: how an engine answers ---


def test_c6_progress_before_success_is_only_a_sign_of_life(served: Remote, script: Script) -> None:
    script.progress = 3
    served.program.apply()
    assert served.values() == [10, 20, 30]


@pytest.mark.parametrize(
    ("answers", "code", "said"),
    [
        pytest.param([], "E1437", "ended without an answer", id="c7"),
        pytest.param([TransformResponseProgress()], "E1437", "without an answer", id="c7 late"),
        pytest.param(
            [TransformResponseInvalidQuery(message="no column 'x' %s")],
            "E1438",
            "refuses the query: no column 'x' %s",
            id="c8 query",
        ),
        pytest.param(
            [TransformResponseInternalError(message="disk full", backtrace="at A\nat B")],
            "E1439",
            "failed: disk full",
            id="c8 engine",
        ),
        pytest.param([b"\x0a\x04\xff\xff\xff\xff"], "E1440", "cannot be read", id="c39 bytes"),
        pytest.param([RuntimeError("boom")], "E1435", "broke off", id="status"),
    ],
)
def test_a_fault_of_an_engine_has_its_own_error_and_nothing_is_committed(
    served: Remote, script: Script, answers: list[Any], code: str, said: str
) -> None:
    def answer(request: Any) -> Iterator[Any]:
        for each in answers:
            if isinstance(each, Exception):
                raise each
            yield each

    script.answers = answer
    found = served.program("apply", "-y")
    assert found.code == 4
    assert f"error[{code}]: engine 'mine' " in found.err + found.out, found.err + found.out
    assert said in found.err + found.out
    assert "its version: mine@1.0" in found.err + found.out
    assert served.was_not_touched()


def test_c8_the_backtrace_of_an_engine_is_among_the_details(served: Remote, script: Script) -> None:
    error = TransformResponseInternalError(message="bad", backtrace="at A\nat B")
    script.answers = lambda request: iter([error])
    found = served.program("apply", "-y")
    assert "at A" in found.err + found.out and "at B" in found.err + found.out


def test_c10_a_hanging_engine_is_given_up_after_its_timeout(remote: Remote) -> None:
    with serving(Script(answers=for_ever)) as address:
        remote.engines(mine={"address": address, "version": "1", "timeout": 0.5})
        found = remote.program("apply", "-y")
    assert "error[E1436]: engine 'mine' did not answer within 0.5 seconds" in found.err + found.out
    assert "raise `timeout` in `engines.mine`" in found.err + found.out
    assert remote.was_not_touched()


def test_c11_an_address_where_nobody_listens_is_told(remote: Remote) -> None:
    nobody = {"address": "unix:/tmp/odf-nobody", "version": "1", "startTimeout": 0.3}
    remote.engines(mine=nobody)
    found = remote.program("apply", "-y")
    assert "error[E1434]: engine 'mine' does not listen at unix:/tmp/odf-nobody" in (
        found.err + found.out
    )
    assert remote.was_not_touched()


# --- C15 to C20: lies ---


def column(name: str, values: list[Any], kind: Any) -> Any:
    def spoil(table: pa.Table) -> pa.Table:
        at = table.schema.get_field_index(name)
        return table.set_column(at, pa.field(name, kind), pa.array(values[: table.num_rows], kind))

    return spoil


def moved(days: int) -> Any:
    def spoil(table: pa.Table) -> pa.Table:
        times = pc.add(table["system_time"], pa.scalar(days * 86_400_000, pa.duration("ms")))
        return table.set_column(2, "system_time", times)

    return spoil


LIES = [
    pytest.param(
        {"interval": lambda i: i and replace(i, start=i.start + 1)},
        "E1442",
        "begin at 0",
        id="start",
    ),
    pytest.param(
        {"interval": lambda i: i and replace(i, end=i.end + 1)},
        "E1442",
        "and wrote 3",
        id="too few",
    ),
    pytest.param(
        {"interval": lambda i: i and OffsetInterval(start=5, end=2)},
        "E1442",
        "end before they begin",
        id="end before start",
    ),
    pytest.param({"interval": lambda i: None}, "E1442", "says that it made none", id="no interval"),
    pytest.param(
        {"spoil": column("offset", [0, 2, 1], pa.int64())}, "E1442", "record 1", id="out of order"
    ),
    pytest.param(
        {"spoil": column("offset", [0, 1, 3], pa.int64())}, "E1442", "record 2", id="a gap"
    ),
    pytest.param({"spoil": moved(1)}, "E1443", "record 0 has another 'system_time'", id="time"),
    pytest.param(
        {"spoil": column("op", [0, 9, 0], pa.int32())}, "E1443", "record 1 has operation 9", id="op"
    ),
    pytest.param(
        {"spoil": column("op", [0, 0, 2], pa.int32())}, "E1443", "none follows", id="half"
    ),
    pytest.param(
        {"spoil": column("op", [0, 2, 0], pa.int32())}, "E1443", "record 2 does not pair", id="pair"
    ),
    pytest.param(
        {"spoil": column("op", ["0", "0", "0"], pa.string())}, "E1443", "whole number", id="op text"
    ),
    pytest.param(
        {"spoil": column("event_time", [0, None, 0], MILLIS)}, "E1443", "record 1 has no", id="null"
    ),
    pytest.param(
        {"spoil": column("event_time", [0, 0, 0], pa.timestamp("ms"))},
        "E1443",
        "a timestamp in UTC",
        id="zone",
    ),
    pytest.param(
        {"spoil": lambda t: t.drop_columns(["op"])}, "E1444", "no column 'op'", id="column gone"
    ),
    pytest.param(
        {"spoil": lambda t: t.append_column("id", t["id"])}, "E1444", "there twice", id="twice"
    ),
    pytest.param({"after": lambda out: (out / "data").unlink()}, "E1441", "no file", id="no file"),
    pytest.param(
        {"after": lambda out: instead(out / "data", lambda f: f.symlink_to("/etc/hostname"))},
        "E1441",
        "data is a link",
        id="c17 link",
    ),
    pytest.param(
        {"after": lambda out: instead(out / "data", Path.mkdir)}, "E1441", "plain file", id="folder"
    ),
    pytest.param(
        {"after": lambda out: instead(out / "data", os.mkfifo)},
        "E1441",
        "plain file",
        id="c17 fifo",
    ),
    pytest.param(
        {"after": lambda out: os.link(out / "data", out.parents[1] / "elsewhere")},
        "E1441",
        "outside of its folder",
        id="hard link",
    ),
    pytest.param(
        {"after": lambda out: (out / "data").write_bytes(b"PAR1 nothing PAR1")},
        "E1441",
        "cannot be read",
        id="no Parquet",
    ),
    pytest.param(
        {"after": lambda out: (out / "checkpoint").mkdir()}, "E1445", "plain file", id="c23"
    ),
    pytest.param(
        {"after": lambda out: (out / "checkpoint").symlink_to("/etc/hostname")},
        "E1445",
        "checkpoint is a link",
        id="c23 link",
    ),
]


def instead(file: Path, make: Any) -> None:
    file.unlink()
    make(file)


@pytest.mark.parametrize(("lie", "code", "said"), LIES)
def test_c15_to_c17_a_lie_is_found_and_named_and_nothing_is_committed(
    served: Remote, script: Script, lie: dict[str, Any], code: str, said: str
) -> None:
    for name, value in lie.items():
        setattr(script, name, value)
    found = served.program("apply", "-y")
    text = found.err + found.out
    assert f"error[{code}]: engine 'mine' breaks the contract: " in text, text
    assert said in text, text
    assert "nothing of it was committed" in text
    assert served.was_not_touched()


def test_an_extra_column_is_found_when_the_query_is_the_same(
    served: Remote, script: Script
) -> None:
    served.program.apply()
    served.tiny.arrive(2)
    script.spoil = lambda table: table.append_column("extra", table["id"])
    found = served.program("apply", "-y")
    text = found.err + found.out
    assert "error[E1444]: engine 'mine' breaks the contract: the result has other columns" in text
    assert "the dataset has: " in text and "the result has: " in text and "extra int64" in text
    assert served.values() == [10, 20, 30]


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda t: t.select([0, 1, 2, 3, 5, 4]), id="order"),
        pytest.param(lambda t: t.set_column(5, "value", t["value"].cast(pa.float64())), id="type"),
    ],
)
def test_c20_other_columns_are_shown_beside_those_of_the_dataset(
    served: Remote, script: Script, spoil: Any
) -> None:
    served.program.apply()
    served.tiny.arrive(2)
    script.spoil = spoil
    found = served.program("apply", "-y")
    assert "error[E1444]" in found.err + found.out
    assert served.values() == [10, 20, 30]


def test_c20_a_required_column_holds_no_null(served: Remote, script: Script) -> None:
    def required(table: pa.Table) -> pa.Table:
        return table.cast(table.schema.set(5, pa.field("value", pa.int64(), nullable=False)))

    script.spoil = required
    served.program.apply()
    served.tiny.arrive(2)
    script.spoil = column("value", [None], pa.int64())
    found = served.program("apply", "-y")
    assert "error[E0520]" in found.err + found.out
    script.spoil = lambda table: table  # optional again, without nulls
    served.program.apply()
    assert served.values() == [10, 20, 30, 40]


def test_c18_a_file_without_records_tells_the_schema(served: Remote, script: Script) -> None:
    script.spoil = lambda table: table.slice(0, 0)
    served.program.apply()
    state = served.tiny.workspace().projection("derived")
    assert (state.schema is not None, state.records) == (True, 0)


def test_c19_without_file_and_records_the_schema_is_learnt_with_the_next_data(
    served: Remote, script: Script
) -> None:
    script.spoil, script.file_when_empty = lambda table: table.slice(0, 0), False
    served.program.apply()
    assert served.tiny.workspace().projection("derived").schema is None
    assert "No changes" in served.program.ok("plan").out
    script.spoil = lambda table: table
    served.tiny.arrive(2)
    served.program.apply()
    assert served.values() == [40]


# --- C21, C22, C24: watermarks and checkpoints ---


def mark(text: str) -> Timestamp:
    return Timestamp.parse(text)


@pytest.mark.parametrize(
    ("told", "kept", "note"),
    [
        pytest.param(None, "2024-01-03T00:00:00Z", "", id="absent"),
        pytest.param("2023-01-01T00:00:00Z", "2024-01-03T00:00:00Z", "holds", id="lower"),
        pytest.param("2050-01-01T00:00:00Z", "2024-02-02T00:00:00Z", "holds", id="too high"),
        pytest.param("2024-02-01T00:00:00Z", "2024-02-01T00:00:00Z", "", id="right"),
    ],
)
def test_c21_a_wrong_watermark_is_named_and_not_committed(
    served: Remote, script: Script, told: str | None, kept: str, note: str
) -> None:
    served.program.apply()
    served.tiny.arrive(2)
    script.watermark = lambda _: mark(told) if told else None
    said = served.program.apply()
    assert served.tiny.workspace().projection("derived").watermark == mark(kept)
    assert ("its engine's watermark" in said.out + said.err) is bool(note), said.out + said.err


def test_c22_a_checkpoint_comes_back_at_the_next_step_and_is_repeated_where_none_is_written(
    served: Remote, script: Script
) -> None:
    seen: list[bytes | None] = []

    def checkpoint(request: Any) -> bytes | None:
        before = request.prev_checkpoint_path
        seen.append(Path(before).read_bytes() if before else None)
        return b"state 1" if request.next_offset == 0 else None

    script.checkpoint = checkpoint
    served.program.apply()
    served.tiny.arrive(2)
    served.program.apply()
    first, second = served.steps()
    assert seen[-1] == b"state 1"
    assert first.new_checkpoint == second.new_checkpoint == second.new_checkpoint
    assert second.prev_checkpoint == first.new_checkpoint.physical_hash
    served.program.ok("verify")


def test_c22_an_engine_without_state_leaves_no_checkpoint(served: Remote) -> None:
    served.program.apply()
    assert [each.new_checkpoint for each in served.steps()] == [None]


def test_c24_other_files_of_an_engine_are_ignored_and_removed(
    served: Remote, script: Script
) -> None:
    def litter(out: Path) -> None:
        (out / ".data.crc").write_bytes(b"x")
        (out / ".tmp").mkdir()
        (out / ".tmp" / "part").write_bytes(b"y")

    script.after = litter
    served.program.apply()
    assert served.values() == [10, 20, 30]
    assert not any((served.tiny.root / ".odfbuild" / "scratch").iterdir())


def test_c25_proxies_are_not_asked(served: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "grpc_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with grpc_on_port(Script()) as address:
        served.engines(mine={"address": address, "version": "1.0"})
        served.program.apply()
    assert served.values() == [10, 20, 30]


def test_c27_several_steps_at_once_do_not_get_into_each_others_way(
    served: Remote, script: Script
) -> None:
    for number in range(2, 8):
        served.tiny.derive(f"derived-{number}", QUERY.replace("10", str(number)))
        file = served.tiny.root / "datasets" / f"derived-{number}.yaml"
        file.write_text(file.read_text().replace("engine: spark", "engine: mine"))
    served.program.ok("apply", "-y", "--jobs", "4")
    for number in range(2, 8):
        found = [each["value"] for each in served.tiny.records(f"derived-{number}")]
        assert found == [number, 2 * number, 3 * number]


# --- C30 to C36: versions, and verification ---


def test_c30_another_version_is_planned_recorded_and_used(served: Remote, script: Script) -> None:
    served.program.apply()
    served.tiny.arrive(2)
    with serving(Script()) as newer:
        served.engines(mine={"address": newer, "version": "2.0"})
        said = served.program.ok("plan")
        assert "mine@1.0 computed it until now, mine@2.0 continues" in said.out
        served.program.apply()
        assert served.versions() == ["mine@1.0", "mine@2.0"]
        assert len(script.requests) == 2  # one to see the query, one for the step


def test_c31_steps_of_a_version_that_is_gone_are_named_and_others_are_verified(
    served: Remote, script: Script
) -> None:
    served.program.apply()
    with serving(Script()) as newer:
        served.engines(mine={"address": newer, "version": "2.0"}, other={**AT, "address": newer})
        served.tiny.derive("more", QUERY.replace("10", "7"))
        file = served.tiny.root / "datasets" / "more.yaml"
        file.write_text(file.read_text().replace("engine: spark", "engine: other"))
        served.program.apply()
        found = served.program("verify")
    assert found.code == 3
    text = " ".join((found.out + found.err).split())
    assert "error[E1447]: its step cannot be recomputed: engine 'mine' is not here in the" in text
    assert "mine@1.0" in text and "odfbuild engine deprecate derived" in text
    assert "recomputed 2 steps of 2 derivatives" in text and "1 failed" in text


def test_c32_an_engine_that_gives_others_again_is_named_with_both_hashes(
    served: Remote, script: Script
) -> None:
    served.program.apply()
    script.spoil = lambda table: table.take([1, 0, 2]).set_column(0, "offset", table["offset"])
    found = served.program("verify")
    assert found.code == 3
    text = " ".join((found.out + found.err).split())
    assert "E0820" in text and "not reproducible" in text
    [step] = served.steps()
    assert f"logical hashes: {step.new_data.logical_hash}, now f" in text


def test_deprecate_records_that_a_newer_version_gives_the_same(
    served: Remote, script: Script
) -> None:
    served.program.apply()
    with serving(Script()) as newer:
        served.engines(mine={"address": newer, "version": "2.0"})
        served.program.ok("engine", "deprecate")
        assert served.versions() == ["mine@1.0", "mine@2.0"]
        before = len(script.requests)
        served.program.ok("verify")
        assert len(script.requests) == before  # the old one was not needed


def test_a_newer_version_that_gives_others_is_not_recorded(served: Remote) -> None:
    served.program.apply()
    other = Script(spoil=lambda table: table.set_column(5, "value", table["id"]))
    with serving(other) as newer:
        served.engines(mine={"address": newer, "version": "2.0"})
        found = served.program("engine", "deprecate")
    assert found.code == 3
    assert served.versions() == ["mine@1.0"]


def test_c35_an_engine_like_datafusion_overshoots_and_is_capped(
    served: Remote, script: Script
) -> None:
    two_inputs(served)
    script.watermark = lambda told: told and Timestamp(told.ns + 10**15)
    served.program.apply()
    inputs = [served.tiny.workspace().projection(name) for name in ("root", "other")]
    least = min(each.watermark for each in inputs)
    assert served.tiny.workspace().projection("derived").watermark == least


def test_c36_an_engine_like_spark_that_fails_on_an_idle_input_is_named(
    served: Remote, script: Script
) -> None:
    two_inputs(served)
    served.program.apply()
    error = TransformResponseInternalError(message="unable to infer schema for Parquet")
    script.answers = lambda request: iter([error])
    (served.tiny.root / "data" / "more.csv").write_text(
        "event_time,id,value\n2024-03-01 00:00:00,9,9\n"
    )
    found = served.program("apply", "-y")
    assert "E1439" in found.err + found.out
    assert "unable to infer schema for Parquet" in found.err + found.out


def test_c36_an_engine_like_flink_that_ignores_the_vocabulary_is_named(
    served: Remote, script: Script
) -> None:
    served.define(more="    - kind: SetVocab\n      systemTimeColumn: recorded_at\n")
    script.spoil = lambda table: table.rename_columns(
        ["system_time" if name == "recorded_at" else name for name in table.column_names]
    )
    found = served.program("apply", "-y")
    assert "E1444" in found.err + found.out
    assert "there is no column 'recorded_at'" in found.err + found.out


@pytest.mark.parametrize("seed", range(4))
def test_c39_answers_that_are_spoiled_anywhere_never_crash(tmp_path: Path, seed: int) -> None:
    source = random.Random(seed)
    interval = OffsetInterval(start=0, end=2)
    good = EXECUTE_TRANSFORM.encode_response(
        TransformResponseSuccess(new_offset_interval=interval, new_watermark=Timestamp(0))
    )
    for _ in range(5_000):
        spoiled = bytearray(good)
        for _ in range(source.randint(1, 4)):
            spoiled[source.randrange(len(spoiled))] = source.randrange(256)
        with contextlib.suppress(MalformedMessage):
            answer = EXECUTE_TRANSFORM.decode_response(bytes(spoiled[: source.randint(0, 90)]))
            assert answer.KIND in ("Progress", "Success", "InvalidQuery", "InternalError")


def test_c39_spoiled_answers_commit_nothing_that_is_not_right(
    served: Remote, script: Script
) -> None:
    source = random.Random(1)
    good = EXECUTE_TRANSFORM.encode_response(TransformResponseSuccess())

    def spoiled(request: Any) -> Iterator[bytes]:
        found = bytearray(good)
        found[source.randrange(len(found))] ^= 1 << source.randrange(8)
        yield bytes(found)

    script.answers = spoiled
    for _ in range(20):
        served.program("apply", "-y")
        state = served.tiny.workspace().projection("derived")
        assert state is None or state.records == 0


# --- What is the same for all engines ---


def test_an_input_may_have_a_name_in_the_query_that_no_dataset_can_have(
    served: Remote, script: Script
) -> None:
    served.define(query=QUERY.replace("FROM source", "FROM my_source"))
    file = served.tiny.root / "datasets" / "derived.yaml"
    file.write_text(file.read_text().replace("alias: source", "alias: my_source"))
    served.program.apply()
    assert {each.query_inputs[0].query_alias for each in script.requests} == {"my_source"}
    assert served.values() == [10, 20, 30]


def test_an_engine_with_state_is_not_asked_for_a_part_of_its_inputs(
    served: Remote, script: Script
) -> None:
    script.checkpoint = lambda request: b"state"
    served.program.apply()
    found = served.program("apply", "-y", *PART)
    assert "error[E1448]: 'derived' cannot be computed from a part" in found.out + found.err


def test_an_engine_without_state_computes_a_part_of_its_inputs_in_a_branch(
    served: Remote, script: Script
) -> None:
    served.program.apply()
    served.program.ok("apply", "-y", *PART)
    served.program.ok("verify", "-b", "small")
    assert "part-" in script.requests[-1].query_inputs[0].data_paths[0]


PART = ("-b", "small", "--since", "2024-01-02T00:00:00Z", "--allow", "rebuild:derived+")


def test_provenance_of_a_program_is_all_that_it_may_have_read(served: Remote) -> None:
    served.program.apply()
    said = served.program.ok("provenance", "derived", "1", "--json")
    [tree] = said.data
    [source] = tree["inputs"]
    assert "engine 'mine' does not tell which records it needed" in str(source)


def test_a_project_may_not_start_programs(remote: Remote) -> None:
    remote.engines(mine={"command": ["touch", "ran"], "version": "1"})
    found = remote.program("plan")
    assert "error[E0170]: a project may not set `engines.mine.command`" in found.err + found.out
    assert not (remote.tiny.root / "ran").exists()


def blocks(remote: Remote, name: str) -> list[Any]:
    store = remote.tiny.workspace().dataset(name)
    return list(store.walk(store.head()))


def two_inputs(remote: Remote) -> None:
    """Let the derivative read a second root, whose folder never changes again."""
    folder = remote.tiny.root
    text = (folder / "datasets" / "root.yaml").read_text()
    other = text.replace("name: root", "name: other").replace("data/*", "idle/*")
    (folder / "datasets" / "other.yaml").write_text(other)
    (folder / "idle").mkdir()
    (folder / "idle" / "1.csv").write_text("event_time,id,value\n2024-01-02 00:00:00,7,7\n")
    file = folder / "datasets" / "derived.yaml"
    more = "        - datasetRef: other\n          alias: other\n      transform:"
    file.write_text(file.read_text().replace("      transform:", more))


def task(scratch: Path, *inputs: InputSlices) -> TransformTask:
    query = TransformSql(engine="mine", queries=(SqlQueryStep(query="SELECT 1"),))
    return TransformTask(
        dataset="d", transform=query, inputs=inputs, vocab=Vocabulary(), scratch=scratch
    )


@contextlib.contextmanager
def grpc_on_port(script: Script) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    engine = FakeEngine(script, f"127.0.0.1:{port}")
    try:
        yield f"127.0.0.1:{port}"
    finally:
        engine.stop()
