"""`odfbuild new`: a first definition, as the data or the inputs have it, and always valid."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.engine.contract import Engine
from tests.apply.in_process import Program, share
from tests.apply.tiny import QUERY, Tiny
from tests.ingest.workbooks import cell, ods, row, text, zipped
from tests.report.golden import assert_golden

_HEADER = "# yaml-language-server: $schema=../.odfbuild/schemas/DatasetSnapshot.json"


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    """root → derived → further; some files."""
    tiny = Tiny.fresh(tmp_path / "p")
    tiny.derive("further", QUERY, source="derived")
    return tiny


def put(tiny: Tiny, name: str, text: str) -> None:
    """Write a file of data."""
    file = tiny.root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def text_of(tiny: Tiny, name: str) -> str:
    """The definition of a dataset, as it was written."""
    return (tiny.root / "datasets" / f"{name}.yaml").read_text()


ORDERS = "ordered_at,order_id,country,total\n" + "".join(
    f"2026-01-0{n}T08:00:00Z,{n},{country},{n}.50\n"
    for n, country in ((1, "NO"), (2, "PT"), (3, "NA"))
)


def test_the_kinds_are_listed(odfbuild: Program) -> None:
    assert_golden("new-kinds.txt", odfbuild.ok("new").out.rstrip())


def test_every_kind_is_begun_and_valid(odfbuild: Program, tiny: Tiny) -> None:
    put(tiny, "in/orders-2026-01.csv", ORDERS)
    put(tiny, "in/orders-2026-02.csv", ORDERS.replace("2026-01", "2026-02"))
    put(tiny, "in/days/a-2026-01-01.csv", "name;n\na;1\nb;2\n")
    put(tiny, "in/list.tsv", "code\tname\nNO\tNorway\nPT\tPortugal\n")
    plan_request = {
        "orders": ["files", "in/orders-2026-01.csv"],
        "days": ["files", "in/days"],
        "list": ["files", "in/list.tsv", "--description", "Codes: of countries"],
        "web": ["url", "https://example.org/x.json", "--key", "id"],
        "kept": ["url", "https://example.org/x?y=1", "--read", "parquet", "--merge", "append"],
        "store": ["s3", "s3://bucket/x.csv.gz", "--sample", "in/orders-2026-01.csv"],
        "pushed": ["push", "--sample", "in/orders-2026-01.csv", "--merge", "ledger"],
        "events": ["push"],
        "both": ["derivative", "root", "orders"],
        "chosen": ["derivative", "FURTHER"],
        "by-country": ["matrix", "orders", "--over", "country=NO,PT"],
    }
    for name, (kind, *rest) in plan_request.items():
        said = odfbuild.ok("new", kind, name, *rest)
        assert said.out.startswith(f"Created datasets/{name}.yaml")
        odfbuild.ok("validate")
        if kind != "matrix":
            text = text_of(tiny, name)
            assert text.startswith(_HEADER + "\n")
            assert_golden(f"new/{name}.yaml", text.rstrip("\n"))
    matrix = (tiny.root / "datasets" / "by-country.yaml.j2").read_text()
    assert_golden("new/by-country.yaml.j2", matrix.rstrip("\n"))
    schema = tiny.root / "datasets" / _HEADER.partition("=")[2]
    assert json.loads(schema.read_text())["title"] == "DatasetSnapshot manifest"


def test_full_extracts_are_a_snapshot(odfbuild: Program, tiny: Tiny) -> None:
    for month in (1, 2, 3):
        towns = "1,Oslo,10.50\n2,Bergen,7.25\n3,Voss,1.00\n"
        put(
            tiny,
            f"in/customers-2026-0{month}.csv",
            f"id,town,balance\n{towns}4,Town {month},1.10\n",
        )
    odfbuild.ok("new", "files", "customers", "in")
    odfbuild.ok("validate")
    assert_golden("new/customers.yaml", text_of(tiny, "customers").rstrip("\n"))
    said = odfbuild.ok("new", "files", "customers.kept", "in", "--merge", "append", "-n").out
    assert "kind: Append" in said
    assert "primaryKey" not in said


def test_line_breaks_in_quotes_are_told_with_the_setting(odfbuild: Program, tiny: Tiny) -> None:
    put(tiny, "in/1.csv", 'id,note\n1,"a\nb"\n')
    said = odfbuild.ok("new", "files", "notes", "in", "-n")
    setting = "ingest: {quotedLineBreaks: {notes: read}}"
    assert "warning: quoted values of 1.csv have line breaks" in said.err
    assert f"unless odfbuild.yaml says `{setting}`" in said.err
    assert setting in odfbuild.ok("new", "files", "notes", "in", "-n", "--json").data["warnings"][0]
    with (tiny.root / "odfbuild.yaml").open("a") as file:
        file.write(f"  {setting}\n")
    assert "warning" not in odfbuild.ok("new", "files", "notes", "in").err


def test_a_dry_run_prints_what_would_be_written(odfbuild: Program, tiny: Tiny) -> None:
    printed = odfbuild.ok("new", "derivative", "other", "root", "-n").out
    assert not (tiny.root / "datasets" / "other.yaml").exists()
    odfbuild.ok("new", "derivative", "other", "root")
    assert printed == text_of(tiny, "other")


def test_columns_of_a_derivative_are_those_that_its_inputs_will_have(
    odfbuild: Program, tiny: Tiny
) -> None:
    assert "id,\n            value\n" in odfbuild.ok("new", "derivative", "x", "further", "-n").out
    odfbuild.apply()
    for file in ("root", "derived", "further"):
        (tiny.root / "datasets" / f"{file}.yaml").unlink()
    # Only chains are left, and they say it as well.
    printed = odfbuild.ok("new", "derivative", "x", "further", "-n").out
    assert "event_time,\n            id,\n            value\n          FROM further" in printed


@pytest.mark.parametrize(
    ("wish", "says"),
    [
        ("file x", "error[E0140]: there is no kind of dataset 'file'"),
        ("file x", "did you mean 'files'?"),
        ("push my+data", "error[E0141]: 'my+data' cannot be the name of a dataset"),
        ("push my+data", "for example 'my-data'"),
        ("push ROOT", "error[E0201]: dataset 'root' is defined already"),
        ("files x", "odfbuild new files x 'data/orders/*.csv'"),
        ("files x nowhere/*.csv", "error[E0143]: no file matches 'nowhere/*.csv'"),
        ("files x odfbuild.yaml", "specify it with --read"),
        ("files x data/1.csv --read cvs", "did you mean 'csv'?"),
        ("files x data/1.csv --key idd", "error[E0142]: 'idd' (--key) is no column"),
        ("files x data/1.csv --key idd", "did you mean 'id'?"),
        ("url x data/1.csv", "files are of kind 'files'"),
        ("s3 x https://example.org/a.csv", "not an address that a root of kind 's3' can read"),
        ("url x https://example.org/a.csv", "name them with --key"),
        ("derivative x", "odfbuild new derivative x INPUT"),
        ("derivative x rot", "error[E0202]: there is no dataset 'rot' to read"),
        ("derivative x rot", "did you mean 'root'?"),
        ("matrix x root", "--over country=NO,PT"),
        ("matrix x root --over idd=1", "error[E0142]: 'idd' (--over) is no column of 'root'"),
        ("matrix x root --over id=a_b", "error[E0141]: 'a_b' cannot be part of the name"),
    ],
)
def test_a_wish_that_cannot_be_is_answered_with_the_way_out(
    odfbuild: Program, tiny: Tiny, wish: str, says: str
) -> None:
    before = sorted(tiny.root.rglob("datasets/*"))
    said = odfbuild("new", *wish.split())
    assert (said.code, said.out) == (1, "")
    assert says in said.err
    assert sorted(tiny.root.rglob("datasets/*")) == before


def test_nothing_is_overwritten(odfbuild: Program, tiny: Tiny) -> None:
    (tiny.root / "datasets" / "mine.yaml").write_text("# notes only\n")
    said = odfbuild("new", "push", "mine")
    assert said.code == 1
    assert "error[E0114]: datasets/mine.yaml is there already" in said.err
    assert text_of(tiny, "mine") == "# notes only\n"
    assert odfbuild("new", "push").code == 64


@pytest.mark.spark
def test_what_is_begun_from_files_reads_them(
    tiny: Tiny,
    spark_engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    share(spark_engine, monkeypatch)
    odfbuild = Program(tiny.root, monkeypatch, capsys)
    put(tiny, "in/orders-2026-01.csv", ORDERS)
    put(tiny, "in/bare.csv", "7,a,2026-01-01\n8,b,2026-01-02\n")
    put(
        tiny,
        "in/lines-1.ndjson",
        '{"id": 1, "at": "2026-01-01T00:00:00Z", "tags": ["a"], "who": {"first name": "Ada"}}\n'
        '{"id": 2, "at": "2026-01-02T00:00:00Z", "tags": [], "who": null}\n',
    )
    table = pa.table({"id": [1, 2], "n": pa.array([1, 2], pa.int32()), "x": [0.5, None]})
    pq.write_table(table, tiny.root / "in" / "t-1.parquet")
    odfbuild.ok("new", "files", "orders", "in/orders-2026-01.csv")
    odfbuild.ok("new", "files", "bare", "in/bare.csv")
    odfbuild.ok("new", "files", "lines", "in/lines-1.ndjson")
    odfbuild.ok("new", "files", "table", "in/t-1.parquet")
    odfbuild.ok("new", "derivative", "copy", "orders", "lines")
    odfbuild.ok("new", "matrix", "orders.by", "orders", "--over", "country=NO,PT")
    odfbuild.ok("validate", "--engine")
    odfbuild.apply()
    kept = {name: len(tiny.records(name)) for name in tiny.state()}
    expected = {"orders": 3, "bare": 2, "lines": 2, "table": 2, "copy": 5}
    assert kept == {
        "root": 3, "derived": 3, "further": 3, **expected, "orders.by.no": 1, "orders.by.pt": 1
    }  # fmt: skip
    assert tiny.records("lines")[0]["who"] == {"first name": "Ada"}
    assert "No changes." in odfbuild.apply().out + odfbuild.ok("plan").out


def test_a_name_with_underscores_becomes_the_name_that_the_format_allows(
    odfbuild: Program, tiny: Tiny
) -> None:
    said = odfbuild.ok("new", "files", "Order_lines", "data/1.csv")
    assert said.out == "Created datasets/Order-lines.yaml: Order-lines\n"
    assert (
        "warning: names of datasets have no `_`: 'Order_lines' is called 'Order-lines'; queries "
        "that read it can say `FROM Order_lines`" in said.err
    )
    said = odfbuild.ok("new", "derivative", "line_totals", "order_lines", "--json")
    assert said.data["names"] == ["line-totals"]
    assert "'line_totals' is called 'line-totals'" in said.data["warnings"][0]
    assert "datasetRef: Order-lines" in said.data["text"]
    odfbuild.ok("validate")


@pytest.mark.parametrize(
    ("name", "read", "data", "parts"),
    [
        (
            "x.ods", None,
            ods({"A": row(text("id"), text("n"))
                 + row(cell("float", "1"), cell("float", "1.5"))
                 + row(cell("float", "2"), cell("float", "1.25"))}),
            ["- spreadsheet\n", "kind: NdJson", "id BIGINT", "n DOUBLE"],
        ),
        (
            "x.xml", "xml --record r --column id=@id --column n=n",
            b'<a><r id="1"><n>x</n></r><r id="2"/></a>',
            ["- id=@id\n", "kind: Csv", "id BIGINT", "n STRING"],
        ),
        (
            "x.zip", "archive --match *.csv --same-header",
            zipped({"a.csv": b"id;n\n1;x\n", "b.csv": b"id;n\n2;y\n"}),
            ["- --same-header\n", "kind: Csv", "separator: ;", "n STRING"],
        ),
    ],
)  # fmt: skip
def test_files_of_other_formats_are_converted_to_look_at_them(
    odfbuild: Program, name: str, read: str | None, data: bytes, parts: list[str]
) -> None:
    (odfbuild.root / name).write_bytes(data)
    said = odfbuild.ok("new", "files", "made", name, *(["--read", read] if read else []), "-n").out
    assert "kind: Pipe" in said
    for part in parts:
        assert part in said.replace('"', "").replace("'", "")


def test_words_of_a_conversion_that_are_wrong_are_told(odfbuild: Program) -> None:
    (odfbuild.root / "x.xml").write_bytes(b"<a/>")
    assert "E0474" in odfbuild("new", "files", "made", "x.xml", "--read", "xml").err
    read = "xml --record r --column a=b"
    assert "E0476" in odfbuild("new", "files", "made", "x.xml", "--read", read).err
