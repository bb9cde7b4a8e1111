"""Marks of files that were read, also in a cache that is damaged or cannot be written."""

import os
from pathlib import Path

import pytest

from odfbuild.ingest import read_marks
from odfbuild.ingest.fetch import Fetched
from odfbuild.ingest.read_marks import ReadMarks, key_of, look_at, marked
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import FetchStepFilesGlob, FetchStepUrl

DATASET = DatasetId(bytes(range(32)))
HERE = FetchStepFilesGlob(path="*")


def read(path: Path, step: object = HERE) -> read_marks.FileMark | None:
    return look_at(step, Fetched(path, None, None, path.name))  # type: ignore[arg-type]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "nä\nme\udc80.csv"
    file.write_bytes(b"one")
    return file


def test_only_files_of_patterns_here_have_marks(file: Path) -> None:
    assert read(file) is not None
    assert read(file, FetchStepFilesGlob(path="s3://there/*")) is None
    assert read(file, FetchStepUrl(url="file:x")) is None
    file.unlink()
    assert read(file) is None


def test_a_file_that_was_written_again_with_the_same_content_is_not_edited(
    file: Path, tmp_path: Path
) -> None:
    marks = ReadMarks(tmp_path, DATASET)
    mark = read(file)
    assert mark is not None
    marks.add(mark)
    assert marks.edited([str(file)]) == []
    os.utime(file, (1, 1))
    others = [str(tmp_path / "no-mark"), str(tmp_path)]
    assert marks.edited([str(file), *others]) == []
    file.write_bytes(b"two")
    assert marks.edited([str(file), *others]) == [str(file)]


def test_the_last_mark_counts_and_broken_lines_do_not(file: Path, tmp_path: Path) -> None:
    marks = ReadMarks(tmp_path, DATASET)
    assert (marks.load(), list(marked(tmp_path))) == ({}, [])
    for content in (b"first", b"second"):
        file.write_bytes(content)
        mark = read(file)
        assert mark is not None
        marks.add(mark)
        with next((tmp_path / "files-read").iterdir()).open("a") as log:
            log.write('["torn')
    assert list(marked(tmp_path)) == [key_of(DATASET)]
    assert marks.load() == {file.name: mark}
    assert marks.edited([str(file)]) == []
    file.write_bytes(b"secone")
    assert marks.edited([str(file)]) == [str(file)]


def test_a_cache_that_cannot_be_written_keeps_nothing_and_stops_nothing(
    file: Path, tmp_path: Path
) -> None:
    (tmp_path / "files-read").write_text("in the way")
    marks = ReadMarks(tmp_path, DATASET)
    mark = read(file)
    assert mark is not None
    marks.add(mark)
    assert (marks.load(), marks.edited([str(file)]), list(marked(tmp_path))) == ({}, [], [])
