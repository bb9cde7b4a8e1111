"""Inverted indices of published tables prune what questions in DuckDB open; answers stay equal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from odfbuild.errors import OdfbuildError
from odfbuild.exchange.tables.pruning import Part
from odfbuild.inspect.ask import at_heads, understand
from odfbuild.inspect.ask_duckdb import answered_by_duckdb
from odfbuild.inspect.asked_values import asked_values
from odfbuild.project.tables import declared_tables
from tests.apply.in_process import Program
from tests.exchange.tables.tables import Lake
from tests.records.chains import workspace

SETTINGS = "format: kartothek, indices: [id]"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(tmp_path, SETTINGS)
    for _ in range(6):
        made.grow()
    made.append(("a'b/%", 77, 1.5), ("b", -3, 2.5))
    made.publish()
    return made


def answer(lake: Lake, sql: str, *, pruned: bool = True, **options: Any) -> list[dict[str, Any]]:
    known = workspace(lake.root)
    question = understand(sql, ["d"], '"')
    tables = declared_tables(lake.config, ["d"]) if pruned else ()
    sources = at_heads(known, question)
    engine = lake.config.engine
    with answered_by_duckdb(known, question, engine, sources, tables, **options) as found:
        return sorted(
            (row for each in found.parts for row in pq.read_table(each).to_pylist()), key=str
        )


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many files each part of a table had that was read."""
    found: list[int] = []
    view = Part.duckdb_view

    def counted(self: Part, *arguments: Any) -> None:
        found.append(len(self.paths))
        view(self, *arguments)

    monkeypatch.setattr(Part, "duckdb_view", counted)
    return found


PRUNED = [
    "SELECT * FROM d WHERE id = 77",
    "SELECT * FROM d WHERE 77 = id AND v > 1",
    "SELECT k, count(*) n FROM d x WHERE x.id IN (1, 2) GROUP BY ALL",
    "FROM d WHERE k = 'b'",
    "FROM d WHERE \"K\" = 'a''b/%'",
    "FROM d WHERE (k = 'b') AND (id = -3)",
    "FROM d WHERE id = 5 AND id = 6",
    "FROM d WHERE id = 1234567",
    "WITH c AS (SELECT * FROM d WHERE id = 4) SELECT c.id, r FROM c, range(2) t(r)",
    "SELECT event_time, v FROM d WHERE k = 'c' ORDER BY event_time DESC LIMIT 100",
]


@pytest.mark.parametrize("sql", PRUNED)
def test_an_answer_from_an_index_is_that_from_the_slices(
    lake: Lake, parts: list[int], sql: str
) -> None:
    assert answer(lake, sql) == answer(lake, sql, pruned=False)
    assert len(parts) == 1


WHOLE = [
    "FROM d",
    "FROM d WHERE id = 1 OR v > 0",
    "FROM d WHERE id <> 1",
    "FROM d WHERE v = 0.5",
    "FROM d WHERE id = '1'",
    "FROM d WHERE id + 0 = 1",
    "FROM d WHERE NOT (id = 1)",
    "FROM d WHERE id IN (SELECT 1)",
    "SELECT v AS id FROM d WHERE id = 0.5",
    "SELECT v AS id FROM d WHERE id = 1",
    "SELECT * FROM d ASOF JOIN (SELECT now() m) t ON m >= event_time WHERE id = 1",
    "SELECT * FROM d WHERE id = 1 UNION ALL SELECT * FROM d",
    "SELECT count(*) OVER () FROM (SELECT * FROM d LIMIT 5) d2 WHERE id = 1",
    "SELECT id = 1 FROM d",
    "FROM d WHERE id = 99999999999999999999",
]


@pytest.mark.parametrize("sql", WHOLE)
def test_where_an_index_cannot_tell_all_slices_are_read(
    lake: Lake, parts: list[int], sql: str
) -> None:
    assert len(answer(lake, sql)) == len(answer(lake, sql, pruned=False))
    assert parts == []


def test_only_files_that_hold_the_value_are_opened(lake: Lake, parts: list[int]) -> None:
    expected = answer(lake, "FROM d WHERE id = 77")
    assert parts == [1]
    for each in lake.chain.records().stored.slices:
        each.file.chmod(0o600)
        each.file.write_bytes(b"")
    assert answer(lake, "FROM d WHERE id = 77") == expected
    with pytest.raises((OdfbuildError, OSError, ValueError)):
        answer(lake, "FROM d WHERE id = 77", pruned=False)


def test_a_table_that_is_behind_or_was_changed_or_lost_a_file_is_not_used(
    lake: Lake, parts: list[int]
) -> None:
    sql = "FROM d WHERE id = 77"
    lake.append(("z", 77, 9.0))
    assert len(answer(lake, sql)) == 2
    lake.publish()
    assert len(answer(lake, sql)) == 2
    assert parts == [2]
    assert len(answer(lake, sql, history=True)) == 2
    metadata = next((lake.root / "lake").glob("*.by-dataset-metadata.json"))
    text = metadata.read_text()
    metadata.write_text(text.replace('"z', '"y', 1) if '"z' in text else "{}")
    assert len(answer(lake, sql)) == 2
    metadata.write_text(text)
    for file in (lake.root / "lake").rglob("k=z/*.parquet"):
        file.unlink()
    assert len(answer(lake, sql)) == 2
    assert parts == [2]


def test_the_program_answers_from_an_index(
    lake: Lake, parts: list[int], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    program = Program(lake.root, monkeypatch, capsys)
    said = program.ok("sql", "--engine", "duckdb", "--json", "SELECT v FROM d WHERE id = 77")
    assert "1.5" in said.out
    assert parts == [1]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM d WHERE day = DATE '2024-01-02'", {"day": 1}),
        ("SELECT * FROM d USING SAMPLE 3 WHERE k = 'a'", {}),
        ("SELECT * FROM d TABLESAMPLE 3 ROWS WHERE k = 'a'", {}),
        ("SELECT * FROM d PIVOT (sum(v) FOR k IN ('a')) WHERE id = 1", {}),
        ("SELECT * FROM x.d WHERE id = 1", {}),
        ("SELECT * FROM d WHERE e.id = 1", {}),
        ("SELECT * FROM d POSITIONAL JOIN e WHERE id = 1", {}),
        ("not sql (", {}),
    ],
)
def test_what_is_asked_is_told_only_where_it_is_plain(sql: str, expected: dict[str, int]) -> None:
    found = asked_values(sql, ["d"]).get("d", {})
    assert {name: len(values) for name, values in found.items()} == expected
