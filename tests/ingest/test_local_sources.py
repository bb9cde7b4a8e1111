import gzip
import hashlib
import os
import time
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from odfbuild.errors import IngestError
from odfbuild.ingest.count import _gunzip, _lines
from odfbuild.ingest.fetch import fetch
from odfbuild.ingest.fetch.event_time import event_time_from_path
from odfbuild.ingest.fetch.result import etag, last_modified
from odfbuild.ingest.prepare import prepare
from odfbuild.ingest.probe import probe
from odfbuild.ingest.secrets import resolve, scrub
from odfbuild.odf.model import (
    CompressionFormat,
    EventTimeSourceFromPath,
    FetchStepFilesGlob,
    FetchStepUrl,
    MergeStrategyAppend,
    PrepStepDecompress,
    ReadStepCsv,
    ReadStepParquet,
    SetPollingSource,
    SourceOrdering,
)
from odfbuild.odf.timestamp import Timestamp
from tests.ingest.contexts import NOW, SETTINGS, at

GZIP = PrepStepDecompress(format=CompressionFormat.Gzip)


def zipped(sub_path=None):
    return PrepStepDecompress(format=CompressionFormat.Zip, sub_path=sub_path)


def source(fetch, prepare=None, read=None):
    return SetPollingSource(
        fetch=fetch,
        prepare=prepare,
        read=read or ReadStepCsv(header=True),
        merge=MergeStrategyAppend(),
    )


def names(root, step, state=None):
    return [each.file.name for each in fetch(step, state, at(root))]


# --- files ---


def test_files_after_the_state_come_in_the_order_of_their_names(tmp_path):
    for name in ("c.csv", "a.csv", "b.csv", "x.txt", ".hidden.csv"):
        (tmp_path / name).write_text("x")
    step = FetchStepFilesGlob(path="*.csv")
    assert names(tmp_path, step) == ["a.csv", "b.csv", "c.csv"]
    assert names(tmp_path, step, etag("a.csv")) == ["b.csv", "c.csv"]
    assert names(tmp_path, step, etag("c.csv")) == []
    found = next(fetch(step, None, at(tmp_path)))
    assert (found.state, found.event_time, found.display_name) == (etag("a.csv"), NOW, "a.csv")


def test_event_time_orders_files_when_it_is_asked_for(tmp_path):
    for name in ("x-03-2020.csv", "x-01-2021.csv", "x-02-2020.csv"):
        (tmp_path / name).write_text("x")
    when = EventTimeSourceFromPath(pattern=r"x-(\d+-\d+)", timestamp_format="MM-yyyy")
    step = FetchStepFilesGlob(path="*.csv", event_time=when, order=SourceOrdering.ByEventTime)
    assert names(tmp_path, step) == ["x-02-2020.csv", "x-03-2020.csv", "x-01-2021.csv"]
    assert names(tmp_path, step, etag("x-03-2020.csv")) == ["x-01-2021.csv"]


def test_equal_names_in_two_folders_are_refused(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.csv").write_text("x")
    with pytest.raises(IngestError, match=r"same base name: '[ab]/x\.csv' and '[ab]/x\.csv'"):
        names(tmp_path, FetchStepFilesGlob(path="**/*.csv"))


def test_a_pattern_that_never_matched_is_an_error_with_a_way_out(tmp_path):
    with pytest.raises(IngestError, match="no file matches") as caught:
        names(tmp_path, FetchStepFilesGlob(path="nowhere/*.csv"))
    assert caught.value.code == "E0401"
    assert caught.value.help


@pytest.mark.parametrize(
    ("pattern", "format_", "name", "expected"),
    [
        (r"(\d+-\d+-\d+)", None, "d-2020-02-03.csv", "2020-02-03T00:00:00Z"),
        (r"(\d{8})", "yyyyMMdd", "d-20200203.csv", "2020-02-03T00:00:00Z"),
        (r"_(.*)\.", "yyyy-MM-dd'T'HHmmX", "d_2020-02-03T0405+0200.csv", "2020-02-03T02:05:00Z"),
        (r"_(.*)\.", "%Y-%m-%dT%H%M%z", "d_2020-02-03T0405Z.csv", "2020-02-03T04:05:00Z"),
    ],
)
def test_event_time_is_read_from_a_name(pattern, format_, name, expected):
    when = EventTimeSourceFromPath(pattern=pattern, timestamp_format=format_)
    assert str(event_time_from_path(when, name)) == expected


@pytest.mark.parametrize(
    ("pattern", "format_"), [("(", None), ("nope", None), ("d", None), (r"(d)", None), ("(d)", "Q")]
)
def test_an_event_time_that_cannot_be_read_is_explained(pattern, format_):
    when = EventTimeSourceFromPath(pattern=pattern, timestamp_format=format_)
    with pytest.raises(IngestError) as caught:
        event_time_from_path(when, "d.csv")
    assert caught.value.help


def test_a_file_url_is_read_once_for_each_content(tmp_path):
    file = tmp_path / "x.csv"
    file.write_text("x")
    step = FetchStepUrl(url=f"file://{file}")
    (found,) = fetch(step, None, at(tmp_path))
    assert found.state == etag(f"f1220{hashlib.sha256(b'x').hexdigest()}")
    assert list(fetch(step, found.state, at(tmp_path))) == []
    os.utime(file, (1, 1))
    assert list(fetch(step, found.state, at(tmp_path))) == []
    # A chain of an earlier release or of another tool holds the time of modification.
    at_one, at_two = (last_modified(Timestamp.from_millis(1000 * each)) for each in (1, 2))
    assert list(fetch(step, at_one, at(tmp_path))) == []
    assert [each.state for each in fetch(step, at_two, at(tmp_path))] == [found.state]
    file.write_text("y")
    assert len(list(fetch(step, found.state, at(tmp_path)))) == 1


@pytest.mark.parametrize("url", ["file:///nowhere/x", "gopher://host/x", "file://host/x"])
def test_a_url_that_cannot_be_read_is_explained(url, tmp_path):
    with pytest.raises(IngestError) as caught:
        list(fetch(FetchStepUrl(url=url), None, at(tmp_path)))
    assert caught.value.help


# --- templates ---


def test_the_first_token_with_a_value_wins():
    env = {"B": "two", "C": "${{ env.B }}"}
    assert resolve("x/${{ env.A || env.B }}", env) == "x/two"
    assert resolve("${{ env.A || 'there' }}-${{ 4.5 }}", env) == "there-4.5"
    assert resolve("${{ env.C }}", env) == "two"


@pytest.mark.parametrize("text", ["${{ env.A }}", "${{ foo }}", "${{ env.L }}"])
def test_a_template_without_a_value_is_an_error(text):
    with pytest.raises(IngestError) as caught:
        resolve(text, {"L": "${{ env.L }}"})
    assert caught.value.code == "E0408"


@pytest.mark.parametrize(
    "shown",
    ["geheim 77/+ä", "geheim%2077%2F%2B%C3%A4", "geheim+77%2F%2B%C3%A4", "geheim%2077/%2B%C3%A4",
     '"geheim 77/+\\u00e4"'],
)  # fmt: skip
def test_a_secret_is_known_in_every_spelling(shown):
    resolve("${{ env.A }}", {"A": "geheim 77/+ä\n"})
    assert "77" not in scrub(f"it says: {shown}!")


def test_a_password_inside_an_address_from_the_environment_is_a_secret_too():
    resolve("${{ env.A }}", {"A": "https://me:pass%40word@host/x?key=abcdef99"})
    assert scrub("pass@word, pass%40word and abcdef99") == "***, *** and ***"


# --- archives ---


def test_members_of_a_gzip_file_are_read_one_after_the_other(tmp_path):
    file = tmp_path / "x.gz"
    file.write_bytes(gzip.compress(b"a\n", mtime=0) + gzip.compress(b"b\n"))
    path, name = prepare([GZIP], file, "x.gz", tmp_path, tmp_path, SETTINGS)
    assert (path.read_bytes(), name) == (b"a\nb\n", "x.gz")


@pytest.mark.parametrize("sub_path", ["in/b.csv", "in/*.csv", None])
def test_a_zip_archive_gives_the_file_that_is_meant(tmp_path, sub_path):
    file = tmp_path / "x.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("in/", "")
        archive.writestr("in/b.csv", gzip.compress(b"deep", mtime=0))
        if sub_path:
            archive.writestr("readme.txt", "no")
    path, name = prepare([zipped(sub_path), GZIP], file, "x.zip", tmp_path, tmp_path, SETTINGS)
    assert path.read_bytes() == b"deep"
    assert "in/b.csv" in name


def test_a_zip_archive_with_several_files_lists_them(tmp_path):
    file = tmp_path / "x.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.csv", "")
        archive.writestr("b.csv", "")
    with pytest.raises(IngestError) as caught:
        prepare([zipped()], file, "x.zip", tmp_path, tmp_path, SETTINGS)
    assert "it has a.csv" in caught.value.notes


# --- probe ---


def test_a_probe_tells_what_is_new_and_how_much(tmp_path):
    (tmp_path / "a.csv").write_text("h\n1\n2\n")
    (tmp_path / "b.csv").write_text("h\n1\n\n2\n3")
    step = source(FetchStepFilesGlob(path="*.csv"))
    facts = probe(step, None, tmp_path)
    assert (facts.status, facts.files, facts.records) == ("news", ("a.csv", "b.csv"), 5)
    assert probe(step, etag("a.csv"), tmp_path).records == 3
    assert probe(step, etag("b.csv"), tmp_path).status == "unchanged"
    gone = probe(source(FetchStepFilesGlob(path="gone/*.csv")), etag("b.csv"), tmp_path)
    assert gone.message == "no file matches 'gone/*.csv' any more, and nothing comes after b.csv"
    assert probe(source(FetchStepFilesGlob(path="*.x")), None, tmp_path).status == "missing"
    assert probe(source(FetchStepUrl(url="http://x/y")), None, tmp_path).status == "unknown"
    assert probe(source(FetchStepUrl(url="file:none")), None, tmp_path).status == "missing"
    assert probe(source(FetchStepUrl(url="file:a.csv")), None, tmp_path).records == 2


def test_records_are_counted_through_archives_and_in_parquet(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"h\n1\n", mtime=0) + gzip.compress(b"2\n"))
    step = source(FetchStepFilesGlob(path="*.gz"), (GZIP,))
    assert probe(step, None, tmp_path).records == 2
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("x.csv", "h\n1\n")
    assert probe(source(FetchStepFilesGlob(path="*.zip"), (zipped(),)), None, tmp_path).records == 1
    pq.write_table(pa.table({"a": [1, 2, 3]}), tmp_path / "a.parquet")
    step = source(FetchStepFilesGlob(path="*.parquet"), None, ReadStepParquet())
    assert probe(step, None, tmp_path).records == 3


@given(st.lists(st.text(" \n\r\tab", max_size=20).map(str.encode), max_size=8))
@example([b" ", b"\n\n"])
@example([b"a\n \nb\n"])
def test_lines_are_counted_alike_however_the_bytes_arrive(chunks):
    data = b"".join(chunks)
    packed = gzip.compress(data, mtime=0)
    pieces = [packed[i : i + 3] for i in range(0, len(packed), 3)]
    for csv, text in (
        (None, data),
        (ReadStepCsv(), data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")),
    ):
        expected = sum(1 for line in text.split(b"\n") if line.strip())
        assert _lines(iter(chunks), csv) == expected
        assert _lines(_gunzip(iter(pieces)), csv) == expected


@pytest.mark.parametrize(
    ("encoding", "end", "records"),
    [
        (None, "\r", 2),
        (None, "\r\n", 2),
        ("iso-8859-1", "\r", 2),
        ("utf-8-sig", "\n", 2),
        ("utf-16", "\n", None),
        ("cp037", "\n", None),
        ("no encoding", "\n", None),
    ],
)
def test_records_of_csv_are_counted_whatever_ends_its_lines(tmp_path, encoding, end, records):
    text = end.join(("a,b", "1,x", "2,y", ""))
    codec = "utf-8" if encoding == "no encoding" else encoding or "utf-8"
    (tmp_path / "a.csv").write_bytes(text.encode(codec))
    step = source(
        FetchStepFilesGlob(path="a.csv"), read=ReadStepCsv(header=True, encoding=encoding)
    )
    assert probe(step, None, tmp_path).records == records


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
def test_large_files_of_any_line_end_are_counted_whole(tmp_path, end):
    lines = 400_000
    (tmp_path / "a.csv").write_bytes(end.join(f"{n}" for n in range(lines)).encode())
    step = source(FetchStepFilesGlob(path="a.csv"), read=ReadStepCsv())
    assert probe(step, None, tmp_path).records == lines


def test_probing_a_small_file_is_quick(tmp_path):
    (tmp_path / "a.csv").write_text("h\n1\n2\n")
    step = source(FetchStepFilesGlob(path="a.csv"))
    best = min(_seconds(step, tmp_path) for _ in range(5))
    assert best < 200e-6  # about 40 µs on an idle machine


def _seconds(step, root):
    start = time.process_time()
    for _ in range(200):
        probe(step, None, root)
    return (time.process_time() - start) / 200
