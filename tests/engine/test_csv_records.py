"""CSV with line breaks in quotes has one record a line afterwards, and Python reads the same."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfbuild.engine import csv_records
from odfbuild.engine.csv_records import (
    NotRecordsError,
    Quoting,
    folded,
    folded_text,
    line_breaks,
    unfolded,
)
from odfbuild.odf.model import ReadStepCsv

RFC = Quoting(b",", b'"', None)
SIGNS = ["a", "é", ",", '"', "\n", "\r", "\r\n", " ", "\ufdd0", "n", "e", "\ufeff", "😀", "\\"]
CELL = st.lists(st.sampled_from(SIGNS), max_size=6).map("".join)
ROWS = st.lists(st.lists(CELL, min_size=1, max_size=3), max_size=6)


def cell(value: str, quoted: bool, escape: str | None) -> str:
    """A value of CSV, in quotes where it must be, or wants to be."""
    if quoted or any(sign in value for sign in ',"\r\n') or (escape and escape in value):
        if escape:
            value = value.replace(escape, escape * 2)
        return '"' + value.replace('"', (escape or '"') + '"') + '"'
    return value


@st.composite
def files(draw: st.DrawFn, escape: str | None = None) -> str:
    """The text of a file: quotes and line ends of all kinds, blank lines between records."""
    text = ""
    for row in draw(ROWS):
        quoted = draw(st.booleans())
        text += ",".join(cell(each, quoted, escape) for each in row)
        text += draw(st.sampled_from(["\n", "\r\n", "\r", "\n\n"]))
    return text if draw(st.booleans()) else text.rstrip("\r\n") if '"' not in text else text


def blocks(data: bytes, size: int) -> Iterator[bytes]:
    """`data` in parts of `size` bytes."""
    return (data[at : at + size] for at in range(0, len(data), size))


def records_of(text: str, size: int, signs: Quoting = RFC) -> list[tuple[int, str]]:
    """The records of a text, each with the line that it begins in."""
    found, number = [], 1
    folds = b"".join(folded(blocks(text.encode(), size), signs)).decode()
    for line in folds.split("\n"):
        record = unfolded(line.removesuffix("\r"))
        if record:
            found.append((number, record))
        number += 1 + line_breaks(record)
    return found


@given(files(), st.integers(1, 40))
def test_records_are_those_of_the_csv_module(text: str, size: int) -> None:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    expected = [row for row in reader if row]
    found = [next(csv.reader([record], strict=True)) for _, record in records_of(text, size)]
    if text.startswith("\ufeff"):
        return  # the mark of UTF-8, which is not part of the first value
    assert found == expected


@given(files(escape="\\"), st.integers(1, 40))
def test_an_escape_of_its_own_hides_quotes(text: str, size: int) -> None:
    def read(source: Iterable[str]) -> list[list[str]]:
        return list(csv.reader(source, strict=True, escapechar="\\", doublequote=False))

    if text.startswith("\ufeff"):
        return
    signs = Quoting(b",", b'"', b"\\")
    found = [read([record])[0] for _, record in records_of(text, size, signs)]
    assert found == [row for row in read(io.StringIO(text, newline="")) if row]


@given(files())
def test_each_record_is_where_its_line_says(text: str) -> None:
    starts = dict(records_of(text, 7))
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for number, record in starts.items():
        first = record.replace("\r\n", "\n").replace("\r", "\n").split("\n")[0]
        assert lines[number - 1].removeprefix("\ufeff") == first.removeprefix("\ufeff")


@given(CELL)
def test_a_value_comes_back(value: str) -> None:
    assert unfolded(folded_text(value)) == value
    assert "\n" not in folded_text(value)


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ('a,b\n1,"x\ny\n', 2, "opens a quote that it does not close"),
        ('a\r\n"x\r\ny"\r\n"z', 4, "opens a quote that it does not close"),
        ('a\r"x\ry"z\r', 3, "goes on behind the quote that closes a value"),
        ('a,b\n"x" ,1\n', 2, "goes on behind the quote that closes a value"),
        ('"a\n', 1, "opens a quote that it does not close"),
        ('a\n"x""\n', 2, "opens a quote that it does not close"),
        ('a\n"x"y\n', 2, "goes on behind the quote that closes a value"),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_quotes_that_tell_no_records_are_named_with_their_line(
    text: str, line: int, what: str, size: int
) -> None:
    with pytest.raises(NotRecordsError) as caught:
        list(folded(blocks(text.encode(), size), RFC))
    assert (caught.value.line, caught.value.what) == (line, what)


def test_quotes_within_a_value_without_quotes_mean_nothing() -> None:
    text = 'size,"a\nb"\n5" pipe,x\n6"\n'
    found = [record for _, record in records_of(text, 2)]
    assert found == ['size,"a\nb"', '5" pipe,x', '6"']


def test_a_record_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_records, "LONGEST_RECORD", 1000)
    for text in ('a,"' + "x\n" * 600 + '"\n', 'a,"x\n"' + ',"y\n"' * 300 + "\n"):
        for size in (100, 10_000):
            with pytest.raises(NotRecordsError, match="line 3 begins a record of more than"):
                list(folded(blocks(b'a\n"b"\n' + text.encode(), size), RFC))
    assert list(folded(blocks(b'a,"x\n"\n' * 1000, 100), RFC))


def test_a_step_without_quotes_has_no_quoting() -> None:
    assert Quoting.of(ReadStepCsv(quote="")) is None
    assert Quoting.of(ReadStepCsv(separator="ab")) is None
    assert Quoting.of(ReadStepCsv(escape='"')) == RFC
    assert Quoting.of(ReadStepCsv(separator=";", quote="'", escape="\\")) == Quoting(
        b";", b"'", b"\\"
    )
