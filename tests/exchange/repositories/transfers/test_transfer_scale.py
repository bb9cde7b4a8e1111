"""Transfers keep to little memory and time, however long chains and large objects are."""

from __future__ import annotations

import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from odfbuild.exchange.repositories.outcome import TransferStatus
from odfbuild.exchange.repositories.pull import Pull, pull
from odfbuild.odf.model import DatasetKind
from tests.exchange.repositories.chains import NOW, create, info, with_object, workspace
from tests.exchange.repositories.peers import Peer

MIB = 1 << 20


def large(root: Path, blocks: int, size: int) -> None:
    """A dataset `large` of so many blocks, and with an object of so many bytes."""
    store = create(workspace(root), "large", *(info(f"{n} " + "x" * 500) for n in range(blocks)))
    with_object(store, size)


_RUN = """
import sys
from pathlib import Path
from odfbuild.cli.main import run
code = run(sys.argv[1:])
status = Path("/proc/self/status").read_text()
print("\\n", next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])
sys.exit(code)
"""


def memory_of(root: Path, *arguments: str) -> int:
    """Run the program; the most memory that it had, in MiB."""
    # Not what `wait4` tells: that counts the memory of the process that forked it.
    done = subprocess.run(
        [sys.executable, "-c", _RUN, *arguments], cwd=root, stdout=subprocess.PIPE, check=True
    )
    return int(done.stdout.split()[-1]) // 1024


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells the memory of a process")
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
