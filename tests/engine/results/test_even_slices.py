"""The bytes of a data file do not tell in which pieces its records were computed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odfbuild.engine import slice as module
from odfbuild.engine.contract import EngineResult
from odfbuild.engine.slice import dataset_schema, write_slice
from odfbuild.odf.digest import physical_hash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import Vocabulary

RESULT = pa.schema(
    [
        pa.field("event_time", pa.timestamp("ms", "UTC"), nullable=False),
        pa.field("id", pa.int64()),
        pa.field("name", pa.string()),
    ]
)
NOW = Timestamp.parse("2026-01-01T00:00:00Z")


def rows(number: int) -> pa.Table:
    return pa.table(
        {
            "event_time": pa.array(range(number), RESULT.field(0).type),
            "id": pa.array([None if i % 5 == 0 else i for i in range(number)], pa.int64()),
            "name": pa.array([None if i % 3 == 0 else f"n{i}" for i in range(number)]),
        },
        RESULT,
    )


def written(folder: Path, pieces: list[pa.Table]) -> bytes:
    folder.mkdir()
    parts = tuple(folder / f"{number}.parquet" for number in range(len(pieces)))
    for part, piece in zip(parts, pieces, strict=True):
        pq.write_table(piece, part)
    vocab = Vocabulary()
    staged = write_slice(
        EngineResult(parts=parts, schema=RESULT),
        dataset="d",
        schema=dataset_schema(RESULT, vocab),
        vocab=vocab,
        first_offset=0,
        system_time=NOW,
        target=folder / "slice",
    )
    assert staged is not None
    assert staged.data.offset_interval.end == sum(piece.num_rows for piece in pieces) - 1
    assert (staged.data.physical_hash, staged.data.size) == physical_hash(staged.path)
    return staged.path.read_bytes()


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=8))
def test_pieces_of_any_size_give_the_same_file(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("even")
    whole = rows(sum(sizes))
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    pieces = [whole.slice(start, size) for start, size in zip(starts, sizes, strict=True)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BATCH_ROWS", 16)
        assert written(folder / "pieces", pieces) == written(folder / "whole", [whole])


def test_microseconds_are_cut_to_the_millisecond_before_also_ahead_of_1970(tmp_path: Path) -> None:
    kind = pa.timestamp("us", "UTC")
    micros = [-1_500, -1_000, -1, 0, 1, 1_999]
    for number, some in enumerate((micros, micros[3:])):  # without and with the shorter way
        table = pa.table({"event_time": pa.array(some, kind)})
        pq.write_table(table, tmp_path / "part")
        staged = write_slice(
            EngineResult(parts=(tmp_path / "part",), schema=table.schema),
            dataset="d",
            schema=dataset_schema(table.schema, Vocabulary()),
            vocab=Vocabulary(),
            first_offset=0,
            system_time=NOW,
            target=tmp_path / f"slice{number}",
        )
        assert staged is not None
        found = pq.read_table(staged.path).column("event_time").cast(pa.int64()).to_pylist()
        assert found == [each // 1000 for each in some]


def test_a_full_disk_is_an_error_of_the_system(tmp_path: Path) -> None:
    pq.write_table(rows(3), tmp_path / "part")
    with pytest.raises(OSError, match="No space left"):
        write_slice(
            EngineResult(parts=(tmp_path / "part",), schema=RESULT),
            dataset="d",
            schema=dataset_schema(RESULT, Vocabulary()),
            vocab=Vocabulary(),
            first_offset=0,
            system_time=NOW,
            target=Path("/dev/full"),
        )
