"""Transfers keep to little memory and time, however long chains and large objects are."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from odfbuild.odf.model import AddData, Checkpoint, DatasetKind
from odfbuild.odf.multihash import Multihash
from odfbuild.repository.outcome import TransferStatus
from odfbuild.repository.pull import Pull, pull
from tests.repository.chains import NOW, info, workspace
from tests.repository.peers import Peer

MIB = 1 << 20


def large(root: Path, blocks: int, size: int) -> None:
    """A dataset `large` of so many blocks, and with an object of so many bytes."""
    store = workspace(root).create(
        "large", DatasetKind.Root, [info(f"{n} " + "x" * 500) for n in range(blocks)], NOW
    )
    file = root / "object"
    with file.open("wb") as out:
        for number in range(size // MIB):
            out.write(number.to_bytes(8, "big") * (MIB // 8))
    hash = Multihash.of_contents(file)
    store.put_object("checkpoints", file, hash)
    event = AddData(new_checkpoint=Checkpoint(physical_hash=hash, size=size))
    store.append(store.head(), [event], NOW)


def memory_of(root: Path, *arguments: str) -> int:
    """Run the program; the most memory that it had, in MiB."""
    process = subprocess.Popen(
        [sys.executable, "-c", "from odfbuild.cli.main import main; main()", *arguments],
        cwd=root,
        stdout=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) // MIB


@pytest.mark.parametrize(
    ("blocks", "size", "most"),
    [
        pytest.param(300, 256 * MIB, 180, id="small"),
        pytest.param(10_000, 1024 * MIB, 300, id="full", marks=pytest.mark.slow),
    ],
)
def test_a_long_chain_and_a_large_object_take_little_memory(
    tmp_path: Path, blocks: int, size: int, most: int
) -> None:
    large(tmp_path / "origin", blocks, size)
    here = tmp_path / "here"
    here.mkdir()
    (here / "odfbuild.yaml").write_text("kind: Project\nversion: 1\ncontent:\n  name: here\n")
    assert memory_of(here, "pull", "../origin/chains/large") <= most
    assert memory_of(here, "push", "large", "--to", "../there") <= most


def test_a_pull_with_nothing_new_takes_20_ms_of_cpu_for_each_dataset(tmp_path: Path) -> None:
    space, wanted = workspace(tmp_path / "here"), []
    for number in range(50):
        name = f"d{number}"
        origin = workspace(tmp_path / "origin").create(name, DatasetKind.Root, [info("one")], NOW)
        wanted.append(
            Pull(name=name, address="", reference=f"r/{name}", open=partial(Peer, origin.path))
        )
    assert {each.status for each in pull(space, wanted)} == {TransferStatus.NEW}
    again = workspace(tmp_path / "here")  # as a process that knows nothing yet
    before = time.process_time()
    found = pull(again, wanted)
    assert time.process_time() - before <= 0.02 * len(wanted)
    assert {each.status for each in found} == {TransferStatus.UP_TO_DATE}
