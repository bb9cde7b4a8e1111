"""Questions over committed datasets, in a real Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from odfbuild import Project
from odfbuild.cli.main import run
from odfbuild.engine.contract import Engine
from odfbuild.errors import QueryError
from odfbuild.inspect.ask import understand
from tests.apply.in_process import Program, share
from tests.apply.tiny import Tiny

pytestmark = pytest.mark.spark

SNAPSHOT = """\
kind: DatasetSnapshot
version: 1
content:
  name: city.people-now
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: FilesGlob, path: "people/*.csv"}
      read: {kind: Csv, header: true, schema: [id BIGINT, name STRING]}
      merge: {kind: Snapshot, primaryKey: [id]}
"""


@pytest.fixture(scope="module")
def tiny(spark_engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    """Three records, ten times as much of them, and people of whom one moved and one left."""
    tiny = Tiny.fresh(tmp_path_factory.mktemp("sql") / "p")
    (tiny.root / "datasets" / "people.yaml").write_text(SNAPSHOT)
    (tiny.root / "people").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        share(spark_engine, patch)
        for number, text in enumerate(("1,Ann\n2,Bob\n3,Cyd\n", "1,Anna\n3,Cyd\n")):
            (tiny.root / "people" / f"{number}.csv").write_text(f"id,name\n{text}")
        patch.chdir(tiny.root)
        assert run(["apply", "-y", "-q"]) == 0
    return tiny


def test_an_answer_is_a_table(odfbuild: Program) -> None:
    said = odfbuild.ok("sql", "SELECT id, value FROM derived WHERE id < 3 ORDER BY id DESC")
    assert said.out.splitlines() == ["id  value", " 2     20", " 1     10"]
    assert odfbuild.ok("sql", "SELECT id FROM derived WHERE id > 9").out == "No rows.\n"
    said = odfbuild.ok("sql", "SELECT id FROM derived ORDER BY id", "-n", "2")
    assert said.out.splitlines() == ["id", " 1", " 2"]


def test_a_dataset_shows_what_it_says_now_and_on_request_all_it_ever_said(
    odfbuild: Program,
) -> None:
    rows = json.loads(odfbuild.ok("sql", "SELECT * FROM city.people-now ORDER BY id", "--json").out)
    assert [(row["id"], row["name"]) for row in rows] == [(1, "Anna"), (3, "Cyd")]
    assert list(rows[0]) == ["event_time", "id", "name"]
    query = "SELECT op, id, name FROM city.people-now ORDER BY offset"
    said = odfbuild.ok("sql", query, "--history", "--format", "jsonl").out
    assert [tuple(json.loads(line).values()) for line in said.splitlines()] == [
        ("+A", 1, "Ann"),
        ("+A", 2, "Bob"),
        ("+A", 3, "Cyd"),
        ("-C", 1, "Ann"),
        ("+C", 1, "Anna"),
        ("-R", 2, "Bob"),
    ]


def test_datasets_are_joined_by_their_names_with_and_without_quotes(odfbuild: Program) -> None:
    query = (
        "SELECT p.name, d.value FROM city.people-now AS p JOIN `derived` AS d USING (id)"
        " WHERE `city.people-now`.id IS NULL OR d.id - 1 >= 0 ORDER BY d.value"
    ).replace("`city.people-now`.id IS NULL OR ", "")
    said = odfbuild.ok("sql", query, "--format", "csv")
    assert said.out.splitlines() == ['"name","value"', '"Anna",10', '"Cyd",30']


def test_answers_are_written_to_files_by_their_ending(odfbuild: Program, tmp_path: Path) -> None:
    for name in ("a.parquet", "a.csv", "a.json", "a.jsonl"):
        said = odfbuild.ok(
            "sql", "SELECT id, event_time FROM root ORDER BY id", "-o", str(tmp_path / name)
        )
        assert said.err == f"Wrote {tmp_path / name}.\n"
    assert pq.read_table(tmp_path / "a.parquet")["id"].to_pylist() == [1, 2, 3]
    assert (tmp_path / "a.csv").read_text().splitlines()[1] == "1,2024-01-01 00:00:00.000Z"
    assert json.loads((tmp_path / "a.json").read_text())[2] == {
        "id": 3,
        "event_time": "2024-01-03T00:00:00Z",
    }
    assert len((tmp_path / "a.jsonl").read_text().splitlines()) == 3
    assert len(list(tmp_path.iterdir())) == 4


def test_a_query_comes_from_a_file_or_from_standard_input(
    odfbuild: Program, tmp_path: Path
) -> None:
    (tmp_path / "q.sql").write_text("-- how many\nSELECT count(*) AS n FROM root")
    assert odfbuild.ok("sql", "-f", str(tmp_path / "q.sql")).out == "n\n3\n"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT nam FROM root\nJOIN city.people-now USING (id)", "there is no column 'nam'"),
        ("SELECT 1", "error[E0580]: the query reads no dataset"),
        (
            "SELECT * FROM 'root'",
            "'root' is text, not a name\nhelp: write `root`, or the name without",
        ),
        ('SELECT * FROM "root"', '"root" is text, not a name\nhelp: write `root`'),
        ("SELECT * FROM VALUES (1), (2)", "error[E0580]: the query reads no dataset"),
        ("SELECT * FROM (VALUES (1))", "error[E0580]: the query reads no dataset"),
        ("SELECT * FROM range(3)", "error[E0580]: the query reads no dataset"),
        (
            "WITH v AS (SELECT 1) SELECT * FROM v JOIN rot",
            "there is no dataset 'rot'\nhelp: did you mean 'root'?",
        ),
        (
            "SELECT * FROM rot",
            "there is no dataset 'rot'\nhelp: did you mean 'root'?",
        ),
        ("DROP TABLE root", "error[E05"),
        ("SELECT * FROM root, csv.`/etc/passwd`", "is not an input of this query"),
        ("SELECT reflect('java.lang.System', 'getenv') FROM root", "reflect()"),
        ("SELECT id, value AS ID FROM root", "error[E0511]: the result has two columns called"),
        ("SELECT count( FROM root", "error[E0501]"),
    ],
)
def test_a_wrong_question_is_an_error_with_its_place(
    odfbuild: Program, query: str, message: str
) -> None:
    said = odfbuild("sql", query)
    assert said.code == 1
    assert message in said.err
    assert "Traceback" not in said.err


def test_places_are_those_of_the_query_as_it_was_asked(odfbuild: Program) -> None:
    said = odfbuild("sql", "SELECT id FROM city.people-now WHERE nme = 'Ann'")
    assert "  --> query:1:38\n" in said.err
    assert "1 | SELECT id FROM city.people-now WHERE nme = 'Ann'\n" in said.err


def test_wrong_usage_ends_with_64(odfbuild: Program, tmp_path: Path) -> None:
    for arguments in (
        (),
        ("SELECT 1", "-f", "x.sql"),
        ("-f", str(tmp_path / "none.sql")),
        ("SELECT * FROM root", "-o", "answer.docx"),
        ("SELECT array(id) AS ids FROM root", "--format", "csv"),
    ):
        assert odfbuild("sql", *arguments).code == 64


def test_python_gets_an_answer_as_arrow(odfbuild: Program, tiny: Tiny) -> None:
    table = Project(tiny.root).sql("SELECT max(value) AS most FROM derived")
    assert table.to_pylist() == [{"most": 30}]


@pytest.mark.parametrize(
    ("sql", "datasets", "quoted"),
    [
        ("select * from a.b", ["a.b"], "select * from `a.b`"),
        ("select * from A.B-C x join a.b", ["a.b-c", "a.b"], "select * from `A.B-C` x join `a.b`"),
        ("select a.b from plain a", ["a.b", "plain"], "select `a.b` from plain a"),
        ("select x.a.b from plain", ["plain"], "select x.a.b from plain"),
        ("select 'a.b' from `a.b` -- a.b-c", ["a.b"], "select 'a.b' from `a.b` -- a.b-c"),
        ("select a . b from plain", ["plain"], "select a . b from plain"),
    ],
)
def test_names_of_datasets_are_found_wherever_they_stand(
    sql: str, datasets: list[str], quoted: str
) -> None:
    found = understand(sql, ["a.b", "a.b-c", "plain"])
    assert (list(found.datasets), found.sql) == (datasets, quoted)


def test_a_dataset_is_found_by_its_name_with_underscores_unless_that_is_another_one() -> None:
    names = ["order-lines", "a-b", "a.b", "c-d", "c_d"]
    sql = "select Order_Lines.id, x.c_d from order_lines join `order-lines` join a_b"
    found = understand(sql, names)
    assert (found.names, found.datasets, found.sql) == (
        {"order_lines": "order-lines", "order-lines": "order-lines"},
        ("order-lines",),
        sql,
    )
    assert understand("select * from c_d", names).names == {"c_d": "c_d"}


def test_a_question_about_nothing_is_refused() -> None:
    with pytest.raises(QueryError, match="the query reads no dataset"):
        understand("", ["a"])
