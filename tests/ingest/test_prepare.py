"""Archives and pipes that do not do what they should, and those that the format has no name for."""

import bz2
import gzip
import random
import shutil
import sys
import time
import zipfile

import pytest

from odfbuild.errors import IngestError
from odfbuild.ingest.prepare import prepare
from odfbuild.odf.model import CompressionFormat, PrepStepDecompress, PrepStepPipe
from tests.ingest.contexts import SETTINGS, at

GZIP = PrepStepDecompress(format=CompressionFormat.Gzip)
ZIP = PrepStepDecompress(format=CompressionFormat.Zip)
LINES = b"".join(b"line %d\n" % n for n in range(20_000))


def pipe(*command):
    return PrepStepPipe(command=command)


def script(text):
    return pipe("sh", "-c", text)


def prepared(folder, data, *steps, **settings):
    file = folder / "data"
    file.write_bytes(data)
    scratch = folder / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    path, _ = prepare(steps, file, "data", scratch, folder, at(folder, **settings).settings)
    return path.read_bytes()


def fails(folder, data, *steps, said, code, **settings):
    with pytest.raises(IngestError, match=said) as caught:
        prepared(folder, data, *steps, **settings)
    error = caught.value
    assert error.code == code
    assert error.help
    assert str(error.location) == f"prepare[{len(steps) - 1}]"
    return error


def archive(folder, *entries, method=zipfile.ZIP_DEFLATED):
    file = folder / "made.zip"
    with zipfile.ZipFile(file, "w", method) as made:
        for name, data in entries:
            made.writestr(name, data)
    return file.read_bytes()


# --- archives ---


@pytest.mark.parametrize("step", [GZIP, ZIP], ids=["gzip", "zip"])
def test_an_archive_that_is_cut_off_or_something_else_is_an_error(tmp_path, step):
    whole = gzip.compress(LINES) if step is GZIP else archive(tmp_path, ("a", LINES))
    for size in (1, 9, 30, len(whole) // 2, len(whole) - 1):
        fails(tmp_path, whole[:size], step, said="not a readable", code="E0411")
    fails(tmp_path, b"id,name\n1,x\n", step, said="not a readable", code="E0411")


def test_a_wrong_bit_anywhere_gives_an_error_or_the_very_same_data(tmp_path):
    rng = random.Random(4)
    for step, whole in (
        (GZIP, gzip.compress(LINES[:5000], mtime=0)),
        (ZIP, archive(tmp_path, ("a", LINES[:5000]))),
    ):
        for _ in range(150):
            broken = bytearray(whole)
            broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
            try:
                assert prepared(tmp_path, bytes(broken), step) == LINES[:5000]
            except IngestError as error:
                assert error.code in ("E0411", "E0412")


@pytest.mark.parametrize(
    ("data", "step", "said", "way_out"),
    [
        (bz2.compress(LINES), GZIP, "bzip2 file", "[bzip2, -dc]"),
        (b"\x28\xb5\x2f\xfd" + bytes(50), ZIP, "zstd file", "[zstd, -dc]"),
        (b"\xfd7zXZ\x00" + bytes(50), GZIP, "xz file", "[xz, -dc]"),
        (gzip.compress(LINES, mtime=0), ZIP, "Gzip file", "format: Gzip"),
        (None, GZIP, "Zip file", "format: Zip"),
    ],
)
def test_another_format_is_named_with_the_step_that_unpacks_it(tmp_path, data, step, said, way_out):
    data = data or archive(tmp_path, ("a", LINES))
    assert way_out in fails(tmp_path, data, step, said=said, code="E0411").help


def test_formats_that_the_protocol_has_no_name_for_go_through_a_pipe(tmp_path):
    python = pipe(sys.executable, "-c", "import bz2, sys; f = bz2.open(sys.stdin.buffer); "
                  "sys.stdout.buffer.write(f.read())")  # fmt: skip
    assert prepared(tmp_path, bz2.compress(LINES), python) == LINES
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, zipfile.ZIP_STORED):
        assert prepared(tmp_path, archive(tmp_path, ("a", LINES), method=method), ZIP) == LINES


@pytest.mark.parametrize("step", [GZIP, ZIP], ids=["gzip", "zip"])
def test_a_bomb_ends_at_the_limit(tmp_path, step):
    zeros = bytes(20_000_000)
    bomb = gzip.compress(zeros) if step is GZIP else archive(tmp_path, ("zeros", zeros))
    assert len(bomb) < 30_000
    fails(tmp_path, bomb, step, said="more than 1,000,000 bytes", code="E0409",
          max_unpacked_bytes=1_000_000)  # fmt: skip
    assert (tmp_path / "scratch" / "prepared-0").stat().st_size <= 1_000_000
    nested = gzip.compress(bomb)
    if step is GZIP:
        fails(tmp_path, nested, step, step, said="more than 1,000,000", code="E0409",
              max_unpacked_bytes=1_000_000)  # fmt: skip


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "a/../../evil", "..\\evil", "C:/evil"])
def test_an_entry_that_points_outside_of_its_archive_is_refused(tmp_path, name):
    fails(tmp_path, archive(tmp_path, (name, b"x")), ZIP, said="outside", code="E0411")
    assert not list(tmp_path.rglob("evil"))


def test_an_encrypted_archive_is_named_as_such(tmp_path):
    data = bytearray(archive(tmp_path, ("a", b"secret")))
    for magic, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(magic) + flags] |= 1
    fails(tmp_path, bytes(data), ZIP, said="encrypted", code="E0411")


def test_an_empty_gzip_file_is_an_empty_stream(tmp_path):
    assert prepared(tmp_path, b"", GZIP) == b""
    assert prepared(tmp_path, gzip.compress(b""), GZIP) == b""


# --- pipes ---


def test_a_pipe_is_streamed_and_runs_in_the_folder_of_the_project(tmp_path):
    (tmp_path / "filter.sed").write_text("s/line/row/\n")
    assert prepared(tmp_path, LINES, pipe("sed", "-f", "filter.sed")) == LINES.replace(
        b"line", b"row"
    )
    assert prepared(tmp_path, LINES, pipe("head", "-n", "2"), pipe("tail", "-n", "1")) == (
        b"line 1\n"
    )
    assert prepared(tmp_path, LINES, pipe("echo", "$HOME", "*")) == b"$HOME *\n"


def test_the_exit_status_and_the_complaints_of_a_pipe_are_told(tmp_path):
    error = fails(
        tmp_path, LINES, script("echo one >&2; cat; echo 'no such column' >&2; exit 4"),
        said="exit status 4", code="E0414",
    )  # fmt: skip
    assert error.notes == ("it says: one", "it says: no such column")
    fails(tmp_path, LINES, script("kill -9 $$"), said="signal 9", code="E0414")
    noisy = "i=0; while [ $i -lt 3000 ]; do echo complaint $i >&2; i=$((i+1)); done; exit 1"
    error = fails(tmp_path, LINES, script(noisy), said="exit status 1", code="E0414")
    assert error.notes[-1] == "it says: complaint 2999"
    assert len(error.notes) == 20


def test_a_pipe_that_hangs_or_never_ends_is_ended_with_all_it_started(tmp_path):
    began = time.monotonic()
    fails(tmp_path, b"", script("sleep 60 & sleep 60"), said="more than 0.5 seconds",
          code="E0414", total_seconds=0.5)  # fmt: skip
    fails(tmp_path, b"", pipe("yes"), said="more than 5,000 bytes", code="E0414",
          max_unpacked_bytes=5000)  # fmt: skip
    assert time.monotonic() - began < 50  # the program sleeps for sixty


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("no-such-program-anywhere",), "No such file"),
        (("./data",), "Permission denied"),
        ((), "no command"),
    ],
)
def test_a_pipe_that_cannot_be_started_is_explained(tmp_path, command, said):
    fails(tmp_path, b"x", pipe(*command), said=said, code="E0414")


def test_a_secret_that_a_pipe_complains_about_is_scrubbed(tmp_path, monkeypatch):
    from odfbuild.ingest.secrets import resolve

    monkeypatch.setenv("ODFBUILD_TEST_PIPE", "geheim-4711")
    resolve("${{ env.ODFBUILD_TEST_PIPE }}")
    error = fails(tmp_path, b"", script("echo bad key $ODFBUILD_TEST_PIPE >&2; exit 1"),
                  said="exit status 1", code="E0414")  # fmt: skip
    assert error.notes == ("it says: bad key ***",)


def test_a_place_that_cannot_be_written_is_an_error_of_its_step(tmp_path):
    file = tmp_path / "data"
    file.write_bytes(gzip.compress(LINES))
    with pytest.raises(IngestError) as caught:
        prepare([GZIP], file, "data", tmp_path / "nowhere", tmp_path, SETTINGS)
    assert (caught.value.code, str(caught.value.location)) == ("E0400", "prepare[0]")
