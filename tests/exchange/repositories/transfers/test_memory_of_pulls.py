"""Pulls of much keep to little memory: ten thousand blocks, and an object of a gigabyte."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from odfbuild.odf.flatbuffers.form import encode_block
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import (
    AddData,
    DatasetKind,
    DataSlice,
    MetadataBlock,
    MetadataEvent,
    OffsetInterval,
    Seed,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.store.dataset import DatasetStore
from tests.store.chains import NOW, SCHEMA, info

MEGABYTES = 300


def publish(folder: Path, *events: MetadataEvent) -> None:
    """A chain of these events behind its seed and schema."""
    seed = Seed(dataset_id=DatasetId(bytes(32)), dataset_kind=DatasetKind.Root)
    head, blocks = None, []
    for number, event in enumerate((seed, SCHEMA, *events)):
        block = MetadataBlock(
            system_time=NOW, prev_block_hash=head, sequence_number=number, event=event
        )
        blocks.append(encode_block(block))
        head = Multihash.sha3_256(blocks[-1])
    store = DatasetStore(folder)
    store.put_blocks(blocks)
    store.swap_head(None, head)


def pull(root: Path, dataset: Path) -> int:
    """Megabytes of memory that the program takes for a pull."""
    root.mkdir()
    settings = "kind: Project\nversion: 1\ncontent:\n  name: puller\n"
    (root / "odfbuild.yaml").write_text(settings)
    command = [sys.executable, "-m", "odfbuild", "-C", str(root), "pull", str(dataset)]
    process = os.posix_spawn(sys.executable, command, os.environ)
    _, status, usage = os.wait4(process, 0)
    assert status == 0
    return usage.ru_maxrss // 1024


@pytest.mark.slow
def test_ten_thousand_blocks_are_pulled_within_little_memory(tmp_path: Path) -> None:
    publish(tmp_path / "long", *(info(f"{number} {'x' * 1500}") for number in range(10_000)))
    assert pull(tmp_path / "project", tmp_path / "long") < MEGABYTES


@pytest.mark.slow
def test_an_object_of_a_gigabyte_is_pulled_within_little_memory(tmp_path: Path) -> None:
    (tmp_path / "large" / "data").mkdir(parents=True)
    file = tmp_path / "large" / "data" / "file"
    with file.open("wb") as sparse:
        sparse.truncate(1 << 30)
    hash = Multihash.of_contents(file)
    file.rename(file.with_name(str(hash)))
    offsets = OffsetInterval(start=0, end=0)
    data = DataSlice(logical_hash=hash, physical_hash=hash, offset_interval=offsets, size=1 << 30)
    publish(tmp_path / "large", AddData(new_data=data))
    assert pull(tmp_path / "project", tmp_path / "large") < MEGABYTES
