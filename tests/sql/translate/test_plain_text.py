"""Files are looked at as bytes where that suffices, and nothing is found or missed by it."""

from __future__ import annotations

import csv
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfbuild.engine.spark.reading import csv_quotes, source_text
from odfbuild.errors import IngestError
from odfbuild.odf.model import ReadStepCsv

PIECES = [b"a,b", b"\n", b"\r\n", b"\r", "é".encode(), "\U0001f600".encode(), b"\xef\xbb\xbf"]
WRONG = [b"\xff", b"\0", b"\xe9", b"\xed\xa0\x80", b"\xf0\x9f"]
BYTES = st.lists(st.sampled_from([*PIECES * 4, *WRONG]), max_size=20).map(b"".join)
ENCODINGS = st.sampled_from([None, "utf-8", "ascii", "utf-8-sig"])


@pytest.fixture(autouse=True, scope="module")
def _in_small_steps():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source_text, "_CHUNK", 5)
        patch.setattr(csv_quotes, "_BLOCK", 5)
        patch.setattr(source_text, "LONGEST_LINE", 30)
        yield


def outcome(data: bytes, encoding: str | None, any_line_end: bool) -> Any:
    """The text that is read, and whether it is the file as it came; or what is wrong with it."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "file").write_bytes(data)
        task: Any = SimpleNamespace(
            file=folder / "file", dataset="d", source_name="s", scratch=folder
        )
        try:
            text = source_text.utf8_text(task, encoding, any_line_end=any_line_end)
        except IngestError as error:
            return error.code, str(error)
        return text.file.read_bytes(), text.file == task.file


@given(BYTES, ENCODINGS, st.booleans())
def test_looking_at_bytes_changes_nothing(data, encoding, any_line_end):
    found = outcome(data, encoding, any_line_end)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source_text, "_is_plain", lambda *_: False)
        assert outcome(data, encoding, any_line_end) == found


@pytest.mark.parametrize(
    "data", [b"", b"a,b\n1,2", b"a\r\nb\r\n" * 9, "ä\nöü\n".encode() * 9, b"\xef\xbb\xbfa\nb\n"]
)
def test_of_what_most_files_are_no_text_is_made(tmp_path, data):
    (tmp_path / "file").write_bytes(data)
    assert source_text._is_plain(tmp_path / "file", "utf-8", True)


QUOTED = st.lists(
    st.sampled_from(['"', '""', "a", ",", "\n", "\r\n", "ü", 'b "c"', '"d,e"']), max_size=25
).map("".join)


@given(QUOTED)
def test_the_first_line_that_ends_in_quotes_is_found(text):
    expected = next((n for n, line in enumerate(text.split("\n"), 1) if ends_in_quotes(line)), None)
    with TemporaryDirectory() as name:
        file = Path(name) / "file"
        file.write_text(text, "utf-8", newline="")
        task: Any = SimpleNamespace(dataset="d", source_name="s")
        try:
            csv_quotes.refuse_open_quotes(task, source_text.SourceText(file), ReadStepCsv())
        except IngestError as error:
            assert error.location is not None
            assert error.location.line == expected
        else:
            assert expected is None


def ends_in_quotes(line: str) -> bool:
    try:
        list(csv.reader([line.rstrip("\r")], strict=True))
    except csv.Error as error:
        return "unexpected end of data" in str(error)
    return False
