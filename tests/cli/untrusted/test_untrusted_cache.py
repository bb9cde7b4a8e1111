"""A cache that Git may have brought: nothing in it is believed, and none of it does any harm."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from odfbuild.ingest.fetch.context import FetchContext
from odfbuild.ingest.fetch.download_cache import KeptDownload, ResponseValidators
from odfbuild.store import disposable
from odfbuild.store.machine_key import SEAL_SIZE, key_file, machine_key, seal
from tests.apply.in_process import Program
from tests.apply.tiny import NO_JVM, Tiny
from tests.ingest.contexts import at


@pytest.fixture
def committed(tiny: Tiny, odfbuild: Program) -> Tiny:
    """A project that was applied, planned and validated, so that it has every kind of cache."""
    odfbuild.apply()
    tiny.arrive(2)
    then = time.time() - 1_000  # what was written a moment ago is not cached
    for file in (*(tiny.root / "datasets").iterdir(), *(tiny.root / "data").iterdir()):
        os.utime(file, (then, then))
    odfbuild.ok("plan")
    return tiny


def plan(tiny: Tiny) -> tuple[int, dict[str, object]]:
    """What a process of its own plans, and with which code it ends."""
    done = tiny.run("plan", "--json", env=NO_JVM)
    found = json.loads(done.stdout)
    del found["created_at"]
    return done.returncode, found


def cached(tiny: Tiny) -> list[Path]:
    return sorted((tiny.root / ".odfbuild").rglob("*.bin"))


def stamp_of(file: Path, data: bytes) -> bytes:
    """The beginning of a file up to its seal, as whoever holds the key finds it."""
    for end in range(len(data)):
        rest = data[end + SEAL_SIZE :]
        if data[end : end + SEAL_SIZE] == seal(str(file), data[:end], rest):
            return data[:end]
    raise AssertionError(f"{file} is not sealed")


def other_numbers(value: Any) -> Any:
    """Plain values in which every number is another one, such as offsets of records."""
    if isinstance(value, bool) or not isinstance(value, int | tuple | list | dict):
        return value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, dict):
        return {key: other_numbers(each) for key, each in value.items()}
    return type(value)(map(other_numbers, value))


Opened = dict[Path, tuple[bytes, Any]]


def opened(tiny: Tiny) -> Opened:
    """Stamp and content of every file of the cache."""
    found: Opened = {}
    for file in cached(tiny):
        data = file.read_bytes()
        stamp = stamp_of(file, data)
        found[file] = (stamp, disposable.unpacked(Any, data[len(stamp) + SEAL_SIZE :]))
    assert {"projections.bin", "definitions.bin", "decisions.bin"} <= {f.name for f in found}
    return found


def forge(files: Opened, content: str, monkeypatch: pytest.MonkeyPatch, elsewhere: Path) -> None:
    """Put another content into the files, sealed by somebody with another key."""
    with monkeypatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(elsewhere))
        for file, (stamp, before) in files.items():
            values = disposable.packed(other_numbers(before))
            values = {
                "other numbers": values,
                "cut off": values[: len(values) // 2],
                # Lists in lists, and a text that is said to be longer than memory.
                "deep": b"\x91" * 100_000,
                "odd lengths": b"\xdb\xff\xff\xff\xff" * 9,
            }[content]
            sealed = seal(str(file), stamp, values)
            assert sealed is not None
            file.unlink(missing_ok=True)  # as Git does, and who reads the old one goes on
            file.write_bytes(stamp + sealed + values)


@pytest.mark.parametrize("content", ["other numbers", "cut off", "deep", "odd lengths"])
def test_plan_and_apply_believe_no_cache_that_was_sealed_elsewhere(
    committed: Tiny,
    odfbuild: Program,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    content: str,
) -> None:
    expected = plan(committed)
    files = opened(committed)
    forge(files, content, monkeypatch, tmp_path / "elsewhere")
    assert plan(committed) == expected
    forge(files, content, monkeypatch, tmp_path / "elsewhere")
    odfbuild.apply()
    assert committed.ids("derived") == [1, 2, 3, 4]
    odfbuild.ok("verify")


def test_a_sealed_file_is_believed_in_its_own_place_only(tmp_path: Path) -> None:
    file, other = tmp_path / "a" / "x.bin", tmp_path / "b" / "x.bin"
    assert disposable.write_disposable(file, b"stamp\n", {"offset": 7})
    other.parent.mkdir()
    shutil.copyfile(file, other)
    assert disposable.read_disposable(file, b"stamp\n") == {"offset": 7}
    assert disposable.read_disposable(other, b"stamp\n") is None


def test_no_byte_is_decoded_that_is_not_sealed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "x.bin"
    assert disposable.write_disposable(file, b"stamp\n", (1, 2, b"rest"))
    whole = file.read_bytes()
    monkeypatch.setattr(disposable, "unpacked", None)
    for position in range(len(whole)):
        file.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        assert disposable.read_disposable(file, b"stamp\n") is None
        file.write_bytes(whole[:position])
        assert disposable.read_disposable(file, b"stamp\n") is None


def test_runs_and_marks_of_files_that_were_written_elsewhere_are_passed_over(
    tiny: Tiny, odfbuild: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
        odfbuild.apply()
        (tiny.root / "data" / "1.csv").write_text("event_time,id,value\n2024-01-01 00:00:00,9,9\n")
        assert "1.csv" in odfbuild("drift").out
        assert odfbuild("explain", "root", "--since", "last").code == 0
    assert "1.csv" not in odfbuild("drift").out
    refused = odfbuild("explain", "root", "--since", "last")
    assert "E0364" in refused.err


def test_a_download_that_lies_in_the_cache_is_taken_only_from_who_began_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begun(context: FetchContext) -> KeptDownload:
        kept = KeptDownload(context, "http://example.org/x")
        if not kept.is_complete:
            kept.begin(ResponseValidators(etag='"1"', total=4, resumable=True))
            kept.write([b"evil"], "x")
            kept.finish()
        return kept

    context = at(tmp_path)
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
        begun(context)
        assert KeptDownload(context, "http://example.org/x").is_complete
    (folder,) = (tmp_path / ".odfbuild" / "downloads").iterdir()
    mine = KeptDownload(context, "http://example.org/x")
    assert not mine.is_complete
    # Not even under the name that only this machine knows.
    shutil.rmtree(mine.folder, ignore_errors=True)
    folder.rename(mine.folder)
    assert not KeptDownload(context, "http://example.org/x").is_complete


@pytest.mark.parametrize(
    "link",
    ["", "runs", "scratch", "side-cars", "downloads", "files-read", "schemas", "docs.html"],
)
def test_links_in_a_cache_lead_nowhere(
    tiny: Tiny, odfbuild: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "mine"))
    private = tmp_path / "private"
    private.mkdir()
    for number in range(150):
        (private / f"{number}").mkdir()
        (private / f"{number}" / "thing.bin").write_text("precious")
        os.utime(private / f"{number}", (1, 1))
    before = sorted(private.rglob("*"))
    place = tiny.root / ".odfbuild" / link
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(private if link != "docs.html" else private / "0" / "thing.bin")
    odfbuild.ok("validate")
    odfbuild.apply()
    odfbuild.ok("docs", "build")
    odfbuild.ok("gc")
    assert "up to date" in odfbuild.ok("plan").out
    assert sorted(private.rglob("*")) == before
    assert (private / "0" / "thing.bin").read_text() == "precious"


def test_the_key_is_made_once_for_its_owner_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    script = "from odfbuild.store.machine_key import machine_key; print(machine_key().hex())"
    processes = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        for _ in range(8)
    ]
    assert len({process.communicate()[0] for process in processes}) == 1
    file = key_file()
    assert file is not None and stat.S_IMODE(file.stat().st_mode) == 0o400
    assert [each.name for each in file.parent.iterdir()] == [file.name]


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o755])
def test_a_key_that_git_could_have_brought_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file = tmp_path / "odfbuild" / "cache-key"
    file.parent.mkdir()
    file.write_bytes(bytes(32))
    file.chmod(mode)
    assert machine_key() not in (None, bytes(32))


def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))


def homeless(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)


@pytest.mark.parametrize("without_key", [nowhere, homeless])
def test_where_no_key_can_be_kept_everything_works_and_nothing_is_cached(
    tiny: Tiny,
    odfbuild: Program,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    without_key: Callable[[pytest.MonkeyPatch, Path], None],
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "mine"))
    without_key(monkeypatch, tmp_path)
    odfbuild.apply()
    tiny.arrive(2)
    odfbuild.apply()
    assert "up to date" in odfbuild.ok("plan").out
    assert cached(tiny) == []


def test_doctor_says_where_nothing_can_be_cached(
    tiny: Tiny, odfbuild: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    odfbuild.apply()
    nowhere(monkeypatch, tmp_path)
    said = odfbuild("doctor").out
    assert "there is no place for its key" in said
    assert "set XDG_STATE_HOME" in said
