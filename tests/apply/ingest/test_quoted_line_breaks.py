"""Quoted values of CSV may hold line breaks where a project says so, as in RFC 4180."""

from __future__ import annotations

import csv
import io
import random
from pathlib import Path
from typing import Any

import pytest

from odfbuild.engine.contract import Engine
from tests.apply.in_process import Program, share
from tests.apply.tiny import Tiny

pytestmark = pytest.mark.spark

_DEFINITION = """\
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch:
        kind: FilesGlob
        path: in/{name}/*.csv
        order: ByName
      read: {read}
      merge: {merge}
"""
TEXTS = "{kind: Csv, header: true, schema: [a STRING, b STRING, c STRING]}"
SIGNS = ["a", "é", ",", '"', "\n", "\r", "\r\n", "\n\n", " ", "\ufdd0", "n", "😀", "x\ny", "0"]


@pytest.fixture
def program(
    tmp_path: Path,
    spark_engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Program:
    share(spark_engine, monkeypatch)
    program = Program(Tiny.fresh(tmp_path / "tiny").root, monkeypatch, capsys)
    (program.root / "datasets" / "derived.yaml").unlink()
    (program.root / "datasets" / "root.yaml").unlink()
    return program


def define(program: Program, name: str, read: str = TEXTS, merge: str = "{kind: Append}") -> None:
    """A root that reads `in/NAME/*.csv`."""
    text = _DEFINITION.format(name=name, read=read, merge=merge)
    (program.root / "datasets" / f"{name}.yaml").write_text(text)


def put(program: Program, file: str, text: str | bytes) -> None:
    """A file of data, byte by byte."""
    path = program.root / "in" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


def allow(program: Program, more: str = "") -> None:
    """Let line breaks be read."""
    with (program.root / "odfbuild.yaml").open("a") as file:
        file.write(f"  ingest:\n    quotedLineBreaks: {{'*': read}}\n{more}")


def made_up(seed: int) -> str:
    """A file with a header, whose values hold all that they may."""
    chance = random.Random(seed)

    def value() -> str:
        return "".join(chance.choice(SIGNS) for _ in range(chance.randint(0, 5)))

    def cell(text: str) -> str:
        if chance.random() < 0.3 or any(sign in text for sign in ',"\r\n') or not text.strip():
            return '"' + text.replace('"', '""') + '"'
        return text

    end = chance.choice(["\n", "\r\n", "\r"])
    text = chance.choice(["", "\ufeff"]) + chance.choice(["a,b,c", '"a\r\n",b," c\n"']) + end
    for _ in range(chance.randint(0, 12)):
        text += ",".join(cell(value()) for _ in range(3)) + end * chance.choice([1, 1, 1, 2])
    return text if chance.random() < 0.7 else text.removesuffix(end)


def expected(text: str) -> list[tuple[str | None, ...]]:
    """The records that Python reads, with no value for what is empty."""
    rows = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    return [tuple(cell or None for cell in row) for row in rows if row][1:]


def found(program: Program, name: str) -> list[tuple[Any, ...]]:
    """The records of a dataset in their order."""
    return [(each["a"], each["b"], each["c"]) for each in Tiny(program.root).records(name)]


@pytest.mark.parametrize("seed", range(4))
def test_records_are_those_of_the_csv_module_in_the_order_of_files(
    program: Program, seed: int
) -> None:
    allow(program)
    define(program, "texts")
    texts = [made_up(100 * seed + number) for number in range(30)]
    for number, text in enumerate(texts):
        put(program, f"texts/{number:02}.csv", text)
    records = [record for text in texts for record in expected(text)]
    planned = program.ok("plan", "--json").data["datasets"][0]["pending"]
    assert planned["records"] == len(records)
    program.apply()
    assert found(program, "texts") == records
    assert "No changes." in program.ok("plan").out


def test_a_large_file_is_counted_and_kept_in_order(program: Program) -> None:
    allow(program)
    define(program, "large", "{kind: Csv, header: true, schema: [a BIGINT, b STRING, c DOUBLE]}")
    rows = [(n, f"line {n}\n\nof {n}" if n % 3 else f'"{n}"', n / 4) for n in range(400_000)]
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_NONNUMERIC).writerows([("a", "b", "c"), *rows])
    put(program, "large/1.csv", text.getvalue())
    assert program.ok("plan", "--json").data["datasets"][0]["pending"]["records"] == len(rows)
    program.apply()
    assert found(program, "large") == rows


def test_bad_records_have_the_line_that_they_begin_in(program: Program) -> None:
    allow(program, "    badRecords: {skipping: skip}\n")
    read = "{kind: Csv, header: true, schema: [a BIGINT, b STRING, 'c DECIMAL(5, 2)']}"
    text = 'a,b,"c\n"\r\n1,"x\r\ny",1.5\r\n"2","\n\nz",many\r\n3,"a\nb"\r\n"4\n",b,1\r\n5,,2\r\n'
    for name in ("skipping", "strict"):
        define(program, name, read)
        put(program, f"{name}/1.csv", text)
    said = program("apply", "-y")
    assert "4 blocks, 2 records; 3 bad records skipped" in said.out
    assert "in/skipping/1.csv:5: 'many' in column 'c' is not DECIMAL(5,2)" in said.out
    assert "in/skipping/1.csv:8: a row has 2 cells where 3 are expected" in said.out
    assert "in/skipping/1.csv:10: '4\\n' in column 'a' is not BIGINT" in said.out
    assert "--> in/strict/1.csv:5\n" in said.err
    assert [each["b"] for each in Tiny(program.root).records("skipping")] == ["x\r\ny", None]


@pytest.mark.parametrize(
    "merge",
    [
        "{kind: Ledger, primaryKey: [a]}",
        "{kind: Snapshot, primaryKey: [a]}",
        "{kind: UpsertStream, primaryKey: [a]}",
    ],
)
def test_keys_may_hold_line_breaks(program: Program, merge: str) -> None:
    allow(program)
    define(program, "keyed", merge=merge)
    put(program, "keyed/1.csv", 'a,b,c\n"1\n2",x,y\n"1\r\n2",x,"z\n"\n')
    put(program, "keyed/2.csv", 'a,b,c\n"1\n2",x,y\n"1\r\n2",x,"z\n"\n"1\r2",,\n')
    program.apply()
    keys = ["1\n2", "1\r\n2", "1\r2"]
    assert [each["a"] for each in Tiny(program.root).records("keyed")] == keys


def test_columns_that_nobody_declares_are_inferred(program: Program) -> None:
    allow(program)
    define(program, "free", '{kind: Csv, header: true, inferSchema: true, nullValue: "N\\nA"}')
    for number in range(3):
        put(program, f"free/{number}.csv", f'"the\nid",b\n{number},"x\n{number}"\n7,"N\nA"\n')
    program.apply()
    records = Tiny(program.root).records("free")
    assert [(each["the\nid"], each["b"]) for each in records] == [
        (0, "x\n0"), (7, None), (1, "x\n1"), (7, None), (2, "x\n2"), (7, None)
    ]  # fmt: skip


def test_columns_are_matched_by_name_where_they_changed(program: Program) -> None:
    allow(program, "    onSchemaChange: {named: ignore}\n")
    define(program, "named")
    put(program, "named/1.csv", '"c\n",a,d\n"x\r\ny","1\n",9\n')
    program.apply()
    assert found(program, "named") == [("1\n", None, "x\r\ny")]


def test_other_signs_and_encodings_are_heeded(program: Program) -> None:
    allow(program)
    define(
        program,
        "signs",
        "{kind: Csv, separator: ';', quote: \"'\", escape: '\\', encoding: utf-16, "
        "schema: [a STRING, b STRING, c STRING]}",
    )
    text = "'x\r\n;y';'don\\'t\nstop';é\n'\\\\';'\n';''\n"
    put(program, "signs/1.csv", text.encode("utf-16"))
    program.apply()
    assert found(program, "signs") == [("x\r\n;y", "don't\nstop", "é"), ("\\", "\n", None)]


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ('a,b,c\n1,"x\n",3\n2,"y,4\n5,6,7\n', 4, "opens a quote that it does not close"),
        ('a,b,c\n1,"x\n"y,3\n', 3, "goes on behind the quote that closes a value"),
    ],
)
def test_quotes_that_tell_no_records_are_an_error(
    program: Program, text: str, line: int, says: str
) -> None:
    allow(program, "    badRecords: {'*': skip}\n")
    define(program, "wrong")
    put(program, "wrong/1.csv", text)
    assert program.ok("plan", "--json").data["datasets"][0]["pending"]["records"] is None
    said = program("apply", "-y")
    assert f"error[E0424]: line {line} of 'in/wrong/1.csv' {says}" in said.err
    assert f"--> in/wrong/1.csv:{line}\n" in said.err
    assert 'a quote within a quoted value is written ""' in said.err


def test_without_the_setting_they_are_refused_with_the_way_out(program: Program) -> None:
    define(program, "texts")
    put(program, "texts/1.csv", 'a,b,c\n1,"x\n",3\n')
    said = program("apply", "-y")
    assert "error[E0424]: line 2 of 'in/texts/1.csv' opens a quote" in said.err
    assert "`ingest.quotedLineBreaks: {texts: read}` in odfbuild.yaml" in said.err
    allow(program)
    program.apply()
    assert found(program, "texts") == [("1", "x\n", "3")]


def test_pushed_data_may_hold_them(program: Program) -> None:
    allow(program)
    define(program, "pushed")
    file = program.root / "datasets" / "pushed.yaml"
    source = "    - kind: AddPushSource\n      sourceName: default\n"
    text = file.read_text()
    head, tail = text.index("    - kind"), text.index("      read")
    file.write_text(text[:head] + source + text[tail:])
    program.apply()
    put(program, "x.csv", 'a,b,c\n1,"x\n",3\n')
    program.ok("ingest", "pushed", "in/x.csv")
    assert found(program, "pushed") == [("1", "x\n", "3")]
