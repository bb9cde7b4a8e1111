"""The compiler of FlatBuffers reads our blocks with `schemas/odf.fbs` as we wrote them."""

import json
import shutil
import struct
import subprocess
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odfbuild.odf.extra_attributes import extra_to_json
from odfbuild.odf.flatbuffers.form import MalformedBlock, encode_message
from odfbuild.odf.flatbuffers.tables import timestamp
from odfbuild.odf.generate import DEFAULT_FOLDER
from odfbuild.odf.introspect import FieldType, Scalar, Table, Union, Vector, fields_of
from odfbuild.odf.model import MetadataBlock, MetadataEvent
from odfbuild.odf.timestamp import Timestamp
from tests.odf.values import SCALARS, objects

FLATC = shutil.which("flatc")
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]

pytestmark = pytest.mark.skipif(FLATC is None, reason="flatc (flatbuffers-compiler) is missing")


def _blocks(kind: type) -> st.SearchStrategy[MetadataBlock]:
    return st.builds(
        MetadataBlock,
        system_time=SCALARS["timestamp"],
        prev_block_hash=st.none() | SCALARS["multihash"],
        sequence_number=SCALARS["u64"],
        event=objects(kind),
    )


@settings(deadline=None, suppress_health_check=SLOW, max_examples=8)
@given(st.tuples(*[_blocks(kind) for kind in MetadataEvent.__args__]))
def test_flatc_finds_every_field_of_any_block(
    tmp_path: Path, blocks: tuple[MetadataBlock, ...]
) -> None:
    files = [tmp_path / f"{number}.bin" for number in range(len(blocks))]
    for file, block in zip(files, blocks, strict=True):
        file.write_bytes(encode_message(block))
    flags = ["--json", "--strict-json", "--defaults-json", "--raw-binary", "-o", str(tmp_path)]
    schema = str(DEFAULT_FOLDER / "schemas" / "odf.fbs")
    command = [str(FLATC), *flags, "--root-type", "MetadataBlock", schema, "--", *map(str, files)]
    subprocess.run(command, check=True, capture_output=True)
    for file, block in zip(files, blocks, strict=True):
        found = json.loads(file.with_suffix(".json").read_text("utf-8"))
        assert _without_absent(found) == _as_flatc_says(Table(MetadataBlock), block)


def _without_absent(data: Any) -> Any:
    """Without the fields that stand there although they are not in the bytes."""
    if isinstance(data, list):
        return [_without_absent(item) for item in data]
    if isinstance(data, dict):
        kept = {k: v for k, v in data.items() if v is not None and v != "NONE"}
        return {key: _without_absent(item) for key, item in kept.items()}
    return data


def _as_flatc_says(kind: FieldType, value: Any) -> Any:
    match kind:
        case Vector(Union() as item):
            return [
                {"value_type": type(each).__name__, "value": _as_flatc_says(item, each)}
                for each in value
            ]
        case Vector(item):
            return [_as_flatc_says(item, each) for each in value]
        case Table() | Union():
            data = {}
            for field in fields_of(type(value)):
                part = getattr(value, field.name)
                if part is not None and isinstance(field.type, Union):
                    data[f"{field.name}_type"] = type(part).__name__
                if part is not None:
                    data[field.name] = _as_flatc_says(field.type, part)
            return data
        case Scalar("open_map"):
            return {"entries": extra_to_json(value)}
        case Scalar("timestamp"):
            return _struct(value)
        case Scalar("bytes"):
            return list(value)
        case Scalar("multihash" | "id"):
            return list(value.binary)
        case Scalar("ref" | "alias"):
            return str(value)
    return value.name if isinstance(value, Enum) else value


def _struct(value: Timestamp) -> dict[str, int]:
    at = value.to_datetime()
    found = {
        "year": at.year,
        "ordinal": at.timetuple().tm_yday,
        "seconds_from_midnight": at.hour * 3_600 + at.minute * 60 + at.second,
        "nanoseconds": value.ns % 1_000_000_000,
    }
    assert timestamp(struct.pack("<iHxxII", *found.values()), 0) == value
    return found


@pytest.mark.parametrize("of_day,nanos", [(86_400, 0), (0, 1_000_000_000)])
def test_a_time_beyond_the_day_or_the_second_is_refused(of_day: int, nanos: int) -> None:
    with pytest.raises(MalformedBlock):
        timestamp(struct.pack("<iHxxII", 2024, 1, of_day, nanos), 0)
    last = timestamp(struct.pack("<iHxxII", 1970, 1, 86_399, 999_999_999), 0)
    assert last == Timestamp(86_399_999_999_999)
