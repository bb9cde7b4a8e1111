"""Objects that are links, pipes and devices are told at once, never read until they end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from odfbuild.errors import IntegrityError
from odfbuild.inspect.verify.check import verify
from odfbuild.inspect.verify.integrity import verify_integrity
from odfbuild.records.records import newest_records, records_of
from tests.records.chains import Chain, workspace

Put = Callable[[Path], None]
SECONDS = 120


def _device(file: Path) -> None:
    file.symlink_to("/dev/zero")


def _pipe(file: Path) -> None:
    os.mkfifo(file)


def _outside(file: Path) -> None:
    beside = file.parents[3].parent / "outside"
    beside.write_bytes(b"secret")
    file.symlink_to(beside)


def _circle(file: Path) -> None:
    file.symlink_to(file.name)


def _folder(file: Path) -> None:
    file.mkdir()


PUTS = pytest.mark.parametrize("put", [_device, _pipe, _outside, _circle, _folder])


@pytest.fixture
def chain(tmp_path: Path) -> Chain:
    root = tmp_path / "repository"
    (root / ".git").mkdir(parents=True)
    made = Chain(workspace(root), "a", pa.field("id", pa.int64()))
    made.add([(0, 1), (0, 2)])
    return made


def _data(chain: Chain) -> Path:
    [file] = (chain.store.path / "data").iterdir()
    return file


@PUTS
def test_an_object_that_is_no_file_of_the_repository_is_a_finding(chain: Chain, put: Put) -> None:
    file = _data(chain)
    file.unlink()
    put(file)
    [found] = verify_integrity(chain.space, ["a"], logical=True)
    assert (found.code, found.dataset, found.path) == ("E0832", "a", file)
    assert verify(chain.space, ["a"]).findings


@PUTS
def test_readers_refuse_an_object_that_is_no_file_of_the_repository(chain: Chain, put: Put) -> None:
    file = _data(chain)
    file.unlink()
    put(file)
    for read in (
        lambda: newest_records(chain.space, "a", chain.space.projection("a"), 1),
        lambda: list(records_of(chain.space, "a").batches()),
    ):
        with pytest.raises(IntegrityError) as told:
            read()
        assert told.value.code == "E0832"
        assert str(file) in "".join(told.value.notes)


@PUTS
def test_a_block_that_is_no_file_of_the_repository_is_a_finding(chain: Chain, put: Put) -> None:
    head = chain.store.head()
    assert head is not None
    file = chain.store.block_path(head)
    file.unlink()
    put(file)
    codes = {each.code for each in verify_integrity(chain.space, ["a"])}
    assert codes <= {"E0801", "E0802"}
    assert codes


def test_a_link_inside_of_the_repository_is_an_object(chain: Chain) -> None:
    """As tools do that keep large files in a folder of their own."""
    file = _data(chain)
    kept = chain.space.state.parent / ".git/annex"
    file.rename(kept)
    file.symlink_to(kept)
    assert verify_integrity(chain.space, ["a"], logical=True)[0].code == "E0816"  # no link's fault
    found = newest_records(chain.space, "a", chain.space.projection("a"), 2)
    assert found is not None
    assert found["id"].to_pylist() == [1, 2]


def test_an_object_of_another_size_is_not_read_at_all(chain: Chain) -> None:
    file = _data(chain)
    with file.open("r+b") as opened:
        opened.truncate(1 << 40)
    [found] = verify_integrity(chain.space, ["a"])
    assert found.code == "E0812"


def test_verify_ends_where_a_checkpoint_and_a_slice_are_endless(chain: Chain) -> None:
    """In a process of its own: a test that hangs would say nothing."""
    file = _data(chain)
    file.unlink()
    file.symlink_to("/dev/zero")
    code = (
        "from pathlib import Path\n"
        "from tests.records.chains import workspace\n"
        "from odfbuild.inspect.verify.integrity import verify_integrity\n"
        f"found = verify_integrity(workspace(Path({str(chain.space.state.parent)!r})))\n"
        "print(*(each.code for each in found))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS, check=True
    )
    assert done.stdout.split() == ["E0832"]
