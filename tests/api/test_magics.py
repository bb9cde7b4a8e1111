"""`%load_ext odfbuild` and `%%sql`, in a shell of IPython."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from odfbuild import Project
from odfbuild.api.magics import Answer
from tests.apply.in_process import Program
from tests.apply.tiny import Tiny

IPython = pytest.importorskip("IPython")
from IPython.core.error import UsageError  # noqa: E402
from traitlets.config import Config  # noqa: E402


@pytest.fixture
def shell(tiny: Tiny, odfbuild: Program, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    odfbuild.apply()
    monkeypatch.chdir(tiny.root)
    monkeypatch.setenv("IPYTHONDIR", str(tiny.root / "ipython"))
    no_history = Config({"HistoryManager": {"enabled": False}})
    shell = IPython.core.interactiveshell.InteractiveShell.instance(config=no_history)
    shell.run_line_magic("load_ext", "odfbuild")
    yield shell
    IPython.core.interactiveshell.InteractiveShell.clear_instance()


def test_a_cell_is_answered_as_a_table(shell: Any) -> None:
    found = shell.run_cell_magic("sql", "--engine duckdb", "SELECT id, value FROM derived")
    assert isinstance(found, Answer)
    assert found.table.to_pylist()[0] == {"id": 1, "value": 10}
    assert "answered by DuckDB" in found._repr_html_()


def test_an_answer_goes_into_a_variable(shell: Any) -> None:
    assert shell.run_cell_magic("sql", "-o found --engine duckdb", "SELECT id FROM root") is None
    assert shell.user_ns["found"].num_rows == 3


def test_the_past_and_the_history_can_be_asked(shell: Any, tiny: Tiny, odfbuild: Program) -> None:
    then = Project(tiny.root)["root"].pin.system_time
    tiny.arrive(2)
    odfbuild.apply()

    def count(options: str) -> int:
        (row,) = shell.run_cell_magic(
            "sql", f"--engine duckdb {options}", "SELECT count(*) AS n FROM root"
        ).table.to_pylist()
        return int(row["n"])

    assert count("") == 4
    assert count(f"--at {then}") == 3
    columns = shell.run_cell_magic(
        "sql", "--engine duckdb --history", "SELECT * FROM root"
    ).table.column_names
    assert "op" in columns


def test_a_project_is_a_variable_or_a_folder(shell: Any, tiny: Tiny) -> None:
    shell.user_ns["mine"] = Project(tiny.root)
    shell.run_line_magic("cd", "/")
    for project in ("mine", str(tiny.root)):
        found = shell.run_cell_magic("sql", f"--engine duckdb -p {project}", "SELECT id FROM root")
        assert found.table.num_rows == 3


@pytest.mark.parametrize(
    ("options", "query", "told"),
    [
        ("--engine duckdb", "SELECT nothing FROM root", "nothing"),
        ("--engine duckdb", "SELECT id FROM rot", "E0580"),
        ("--engine sqlite", "SELECT 1", "invalid choice: 'sqlite'"),
        ("--at soon", "SELECT id FROM root", "soon"),
        ("--nothing", "SELECT id FROM root", "unknown: --nothing"),
        ("-p /", "SELECT id FROM root", "E0100"),
    ],
)
def test_what_is_wrong_is_told_without_a_traceback(
    shell: Any, options: str, query: str, told: str
) -> None:
    with pytest.raises(UsageError) as wrong:
        shell.run_cell_magic("sql", options, query)
    assert told in str(wrong.value)
