"""Questions that DuckDB answers: the same tables as Spark's, in milliseconds, and nothing else."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild import Project, RecordsError
from odfbuild.cli.shell import completions
from odfbuild.engine.settings import EngineSettings
from tests.apply.in_process import Program, share
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import NO_JVM, Tiny
from tests.records.chains import Chain, F, R, T

BY = "Answered by DuckDB"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    """Records, ten times as much of them, and people of whom one moved and one left."""
    tiny = Tiny.fresh(tmp_path_factory.mktemp("duckdb") / "p")
    with pytest.MonkeyPatch.context() as patch:
        share(PlainEngine(), patch)
        Project(tiny.root).apply()
    space = Project(tiny.root).workspace()
    chain = Chain(space, "city.people-now", pa.field("who", pa.string()), pa.field("n", pa.int64()))
    chain.add([(1, "Ann", 1), (2, "Bob", 2), (3, "Cyd", 3)])
    chain.add([(1, "Ann", 1), (5, "Ann", 4), (2, "Bob", 2)], [F, T, R])
    return tiny


def ask(odfbuild: Program, *arguments: str) -> str:
    return odfbuild.ok("sql", "--engine", "duckdb", *arguments).out


def test_an_answer_is_a_table_that_names_its_engine(odfbuild: Program) -> None:
    found = ask(odfbuild, "SELECT id, value FROM derived WHERE id < 3 ORDER BY id DESC")
    assert found.splitlines()[:3] == ["id  value", " 2     20", " 1     10"]
    assert found.splitlines()[3].startswith(BY)
    assert ask(odfbuild, "SELECT id FROM derived WHERE id > 9").startswith(f"No rows.\n{BY}")
    assert "… and more" not in ask(odfbuild, "SELECT id FROM derived ORDER BY id", "-n", "2")


def test_names_with_dots_and_hyphens_need_no_quotes_and_may_have_them(odfbuild: Program) -> None:
    for name in ("city.people-now", "City.People-Now", '"city.people-now"'):
        found = ask(odfbuild, f"SELECT who, n FROM {name} ORDER BY who")
        assert found.splitlines()[:3] == ["who  n", "Ann  4", "Cyd  3"]
    found = ask(odfbuild, "SELECT city.people-now.who FROM city.people-now ORDER BY 1")
    assert found.splitlines()[1] == "Ann"


def test_history_and_earlier_moments_are_what_they_are_for_spark(odfbuild: Program) -> None:
    found = ask(odfbuild, "--history", 'SELECT op, who FROM city.people-now ORDER BY "offset"')
    assert found.splitlines()[1:7] == [
        "+A  Ann",
        "+A  Bob",
        "+A  Cyd",
        "-C  Ann",
        "+C  Ann",
        "-R  Bob",
    ]
    true = ask(
        odfbuild,
        "--valid-at",
        "1970-01-01T00:00:00.003Z",
        "SELECT n FROM city.people-now ORDER BY n",
    )
    assert true.splitlines()[:3] == ["n", "1", "3"]
    block = str(Project(odfbuild.root)["root"].pin.block)
    assert "3" in ask(odfbuild, "--as-of", block, "SELECT count(*) AS c FROM root")


def test_files_hold_the_answer_and_name_the_engine(odfbuild: Program, tmp_path: Path) -> None:
    query = "SELECT id, sum(value) AS total FROM root GROUP BY id ORDER BY id"
    rows = [{"id": n, "total": n} for n in (1, 2, 3)]
    said = odfbuild.ok("sql", "--engine", "duckdb", query, "--json")
    assert json.loads(said.out) == rows
    assert BY in said.err
    for form in ("parquet", "csv", "jsonl"):
        ask(odfbuild, query, "-o", str(tmp_path / f"answer.{form}"))
    table = pq.read_table(tmp_path / "answer.parquet")
    assert table.to_pylist() == rows
    assert table.schema.metadata[b"odfbuild.engine"].startswith(b"DuckDB ")
    assert (tmp_path / "answer.csv").read_text().splitlines()[1] == "1,1"


def test_python_asks_by_the_same_engine(tiny: Tiny) -> None:
    found = Project(tiny.root).sql("SELECT max(value) AS most FROM derived", engine="duckdb")
    assert found.to_pylist() == [{"most": 30}]
    assert found.schema.metadata[b"odfbuild.engine"].startswith(b"DuckDB ")


def test_the_project_says_which_engine_answers(odfbuild: Program) -> None:
    file = odfbuild.root / "odfbuild.yaml"
    text = file.read_text()
    try:
        file.write_text(f"{text}  engine:\n    questions: duckdb\n")
        assert BY in odfbuild.ok("sql", "SELECT count(*) FROM root").out
        refused = odfbuild("sql", "SELECT count(*) FROM root", "--prove", "x.json")
        assert refused.code == 1
        assert "error[E1209]" in refused.err
        assert "--engine spark --prove" in refused.err
    finally:
        file.write_text(text)


@pytest.mark.parametrize(
    ("query", "code", "place"),
    [
        ("SELECT id, valeu FROM derived", "E1206", "query:1:12"),
        ("SELECT id\nFROM derived WHERE nope(id)", "E1206", "query:2:20"),
        ("SELEC id FROM derived", "E1206", "query:1:1"),
        ("SELECT id, value AS id FROM derived", "E1206", None),
        ("COPY derived TO 'stolen.csv'", "E1207", None),
        ("SET memory_limit = '9GB'; SELECT * FROM derived", "E1207", None),
        ("DROP VIEW derived", "E1207", None),
        ("SELECT * FROM derived, read_csv('/etc/passwd')", "E1207", "query:1:24"),
        ("SELECT * FROM derived, read_text('odfbuild.yaml')", "E1207", "query:1:24"),
        ("SELECT * FROM derived, 'https://example.org/x.parquet'", "E1207", None),
        ("SELECT * FROM derived, glob('/etc/*')", "E1207", "query:1:24"),
        ("SELECT * FROM derived, sources", "E1206", "query:1:24"),
        ("SELECT * FROM derived, root", "E1206", None),
        ("SELECT * FROM derivd", "E0580", None),
        ("ATTACH 'x.db'; SELECT 1 FROM derived", "E1207", None),
        ("LOAD httpfs; SELECT 1 FROM derived", "E1207", None),
    ],
)
def test_a_wrong_question_is_told_with_its_place_and_a_way_out(
    odfbuild: Program, query: str, code: str, place: str | None
) -> None:
    said = odfbuild("sql", "--engine", "duckdb", query)
    assert said.code == 1
    assert f"error[{code}]" in said.err
    assert "help: " in said.err
    if place:
        assert f"--> {place}\n" in said.err
    assert not (odfbuild.root / "stolen.csv").exists()


@pytest.mark.parametrize(
    ("query", "told", "way_out"),
    [
        ("SELECT valeu FROM derived", "there is no column 'valeu'", "did you mean 'value'?"),
        ("SELECT d.valeu FROM derived d", "there is no column 'valeu'", "did you mean 'value'?"),
        ("SELECT far FROM root", "there is no column 'far'", "the columns are: offset, op"),
        ('SELECT id FROM root WHERE id = "UA"', "there is no column 'UA'", "single quotes: 'UA'"),
        ("SELECT * FROM `city.people-now`", "DuckDB cannot answer", "write names in double quotes"),
    ],
)
def test_a_wrong_name_in_a_question_is_told_with_the_right_one(
    odfbuild: Program, query: str, told: str, way_out: str
) -> None:
    said = odfbuild("sql", "--engine", "duckdb", query)
    assert "error[E1206]" in said.err
    assert told in said.err
    assert way_out in said.err.partition("help: ")[2]


ENDLESS = """
WITH RECURSIVE steps(n) AS (
  SELECT 1::BIGINT UNION ALL SELECT n + 1 FROM steps WHERE n < 3000000000
) SELECT max(n) AS n, count(*) AS root FROM steps, root
"""


def test_a_question_ends_by_itself_if_no_limit_is_given() -> None:
    assert EngineSettings().question_seconds == 600


def test_ctrl_c_ends_a_question_that_would_never_end(tiny: Tiny) -> None:
    command = [sys.executable, "-m", "odfbuild", "sql", "--engine", "duckdb", ENDLESS]
    scratch = tiny.root / ".odfbuild/scratch"
    running = subprocess.Popen(command, cwd=tiny.root, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 120
        while not list(scratch.glob("query-*")) and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(1)
        running.send_signal(signal.SIGINT)
        said = running.communicate(timeout=120)[1]
    finally:
        running.kill()
    assert running.returncode == 130
    assert "Traceback" not in said
    assert not list(scratch.glob("query-*"))


def test_a_question_keeps_to_the_limits_of_the_project(
    odfbuild: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ODFBUILD_QUESTION_SECONDS", "0.3")
    for endless in (
        "SELECT count(*) FROM root, range(1000000) a, range(1000000) b",
        ENDLESS,
    ):
        said = odfbuild("sql", "--engine", "duckdb", endless)
        assert "error[E1208]: the question took longer than 0.3 s" in said.err
        assert "`engine.questionSeconds`" in said.err
        assert "ODFBUILD_QUESTION_SECONDS" in said.err
    monkeypatch.delenv("ODFBUILD_QUESTION_SECONDS")
    monkeypatch.setenv("ODFBUILD_SPARK_MEMORY", "20m")
    much = "SELECT list(a.range || repeat('x', 1000)) AS l FROM root, range(1000000) a"
    said = odfbuild("sql", "--engine", "duckdb", much)
    assert "error[E1208]: the question needs more than 20MiB of memory" in said.err


def test_a_file_of_views_is_opened_by_other_programs(odfbuild: Program, tmp_path: Path) -> None:
    file = tmp_path / "views.duckdb"
    for _ in range(2):
        assert odfbuild.ok("sql", "--export", str(file)).out.startswith(f"Wrote {file}: 3 views")
    with duckdb.connect(str(file), read_only=True) as connection:
        found = connection.sql('SELECT who, n FROM "city.people-now" ORDER BY who').fetchall()
        assert found == [("Ann", 4), ("Cyd", 3)]
        assert connection.sql("SELECT count(*) FROM derived").fetchall() == [(3,)]
        pins = connection.sql("SELECT dataset, citation FROM odfbuild_pins ORDER BY 1").fetchall()
    assert [name for name, _ in pins] == ["city.people-now", "derived", "root"]
    assert pins[2][1] == str(Project(odfbuild.root)["root"].pin)
    assert list(tmp_path.iterdir()) == [file]
    said = odfbuild("sql", "--export", str(tmp_path / "no" / "x.duckdb"))
    assert "error[E0910]" in said.err


def test_a_shell_without_a_terminal_answers_what_it_is_given(tiny: Tiny) -> None:
    questions = (
        "SELECT count(*) AS n\nFROM derived;\nSELECT nope FROM root;\n"
        ".columns root\nSELECT max(id) AS id FROM root"
    )
    code = "from odfbuild.cli.main import main\nmain()"
    said = subprocess.run(
        [sys.executable, "-c", code, "shell", "--engine", "duckdb"],
        check=False, cwd=tiny.root, input=questions, capture_output=True, text=True, timeout=60,
        env={**os.environ, **NO_JVM},
    )  # fmt: skip
    version = f"{BY} {duckdb.__version__}."
    columns = ["event_time  timestamp[ms, tz=UTC]", "id          int64", "value       int64"]
    assert said.stdout.splitlines() == ["n", "3", version, *columns, "id", " 3", version]
    assert "error[E1206]" in said.stderr
    assert said.returncode == 1


def test_columns_of_a_history_are_those_of_the_system_too(odfbuild: Program) -> None:
    said = odfbuild.ok("shell", "--history", "--engine", "duckdb", stdin=b".columns root\n")
    assert said.out.split()[::2][:3] == ["offset", "op", "system_time"]


def test_a_wrong_command_of_the_shell_is_told_with_what_it_may_mean(odfbuild: Program) -> None:
    wrong = b".colums root\n.columns derivd\n.columns\n.columns ROOT;\n.help"
    said = odfbuild("shell", "--engine", "duckdb", stdin=wrong)
    assert "error[E0376]: there is no command '.colums'" in said.err
    assert "did you mean '.columns'?" in said.err
    assert "error[E0580]: there is no dataset 'derivd'" in said.err
    assert "did you mean 'derived'?" in said.err
    assert "error[E0580]: `.columns` needs the name of a dataset" in said.err
    assert said.out.splitlines()[-6] == "value       int64"
    assert said.out.splitlines()[-1].startswith(".quit")
    assert said.code == 1


def test_a_prompt_on_a_terminal_completes_names_and_keeps_its_history(tiny: Tiny) -> None:
    main, side = pty.openpty()
    code = "from odfbuild.cli.main import main\nmain()"
    environment = {**os.environ, **NO_JVM, "TERM": "xterm", "CI": "", "PROMPT_TOOLKIT_NO_CPR": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", code, "sql", "--engine", "duckdb"],
        cwd=tiny.root, env=environment, stdin=side, stdout=side, stderr=side,
    )  # fmt: skip
    os.close(side)
    seen = b""

    def wait_for(text: bytes) -> None:
        nonlocal seen
        end = time.monotonic() + 20
        while text not in seen and time.monotonic() < end:
            if not select.select([main], [], [], 1)[0]:
                continue
            part = os.read(main, 65_536)
            seen += part
        assert text in seen, seen

    wait_for(b"odfbuild>")
    os.write(main, b"SELECT sum(value) AS total FROM deri")
    wait_for(b"derived")
    os.write(main, b"\t")
    time.sleep(1)
    os.write(main, b";\r")
    wait_for(b"   60")
    os.write(main, b"SELECT count(*)\r")
    wait_for("…>".encode())
    os.write(main, b"FROM nowhere;\r")
    wait_for(b"E0580")
    os.write(main, f"{' '.join(ENDLESS.split())};\r".encode())
    scratch = tiny.root / ".odfbuild/scratch"
    while not list(scratch.glob("query-*")):
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    wait_for(b"Interrupted.")
    os.write(main, b".quit\r")
    assert process.wait(60) == 0
    os.close(main)
    kept = (tiny.root / ".odfbuild" / "shell-history").read_text()
    assert "+SELECT sum(value) AS total FROM derived;" in kept


def test_completions_are_columns_then_datasets_then_words() -> None:
    columns = {
        "us.bts.flights": {"carrier": "string", "distance": "int64"},
        "us.faa.planes": {"seats": "int64"},
    }
    assert completions("SELECT c", columns) == [
        ("CASE", 1),
        ("count(*)", 1),
        ("coalesce", 1),
        ("CAST", 1),
    ]
    assert completions("SELECT * FROM us.b", columns) == [("us.bts.flights", 4)]
    assert completions("SELECT * FROM us.bts.flights WHERE d", columns)[0] == ("distance", 1)
    assert completions("SELECT * FROM us.bts.flights WHERE ", columns) == []
    assert ("seats", 2) not in completions("SELECT * FROM us.bts.flights WHERE se", columns)


def test_errors_of_python_are_those_of_the_program(tiny: Tiny) -> None:
    with pytest.raises(RecordsError) as raised:
        Project(tiny.root).sql("SELECT nope FROM root", engine="duckdb")
    assert (raised.value.code, raised.value.location.column) == ("E1206", 8)
