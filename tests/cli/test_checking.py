"""Checks of data: before it is committed, and of all that is."""

from __future__ import annotations

import json
import math
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.errors import CheckError
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.records.audit import audit, values_in_state
from odfbuild.records.checks import AcceptedValues, Asked, NotNull, Relationship, RowCount, Unique
from tests.apply.in_process import Program
from tests.apply.tiny import QUERY, Tiny
from tests.cli.errors.test_wrong_settings import RIGHT


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    """A root, `derived`, and `further`, which derives from that; never applied."""
    tiny = Tiny.fresh(tmp_path / "p")
    tiny.derive("further", QUERY, source="derived")
    return tiny


def declare(tiny: Tiny, checks: str) -> None:
    """Declare checks, as YAML on one line each."""
    config = tiny.root / "odfbuild.yaml"
    text = config.read_text().split("  checks:")[0]
    config.write_text(text + "  checks:\n" + "".join(f"    - {c}\n" for c in checks.splitlines()))


def test_dbt_core_6035_bad_data_is_never_public(tiny: Tiny, odfbuild: Program) -> None:
    declare(tiny, "{match: [derived], acceptedValues: {value: [10, 20]}}")
    said = odfbuild("apply", "-y")
    assert said.code == 4
    assert "error[E0540]: the new records of 'derived' violate its checks" in said.err
    assert "= note: acceptedValues: value: 1 record, such as offset 2, 30" in said.err
    assert tiny.workspace().aliases() == ["root"]
    # What was wrong is kept for whoever wants to see it.
    kept = tiny.root / ".odfbuild" / "rejected" / "derived.parquet"
    assert f"records: {kept}" in said.err
    assert pq.read_table(kept)["value"].to_pylist() == [10, 20, 30]
    declare(tiny, "{match: [derived], acceptedValues: {value: [10, 20, 30]}}")
    odfbuild.apply()
    assert tiny.ids("further") == [1, 2, 3]


def test_a_step_that_fails_its_checks_leaves_the_history_before_it(
    tiny: Tiny, odfbuild: Program
) -> None:
    declare(tiny, "{match: ['*'], rowCount: {min: 2}}")
    odfbuild.apply()
    before = tiny.state()
    tiny.arrive(2)  # one new record
    said = odfbuild("apply", "-y", "--json")
    assert said.code == 1
    assert [d["status"] for d in said.data["datasets"]] == ["failed", "skipped", "skipped"]
    assert "rowCount: at least 2: there are 1 record" in said.err
    assert tiny.state() == before


def test_a_check_may_only_warn(tiny: Tiny, odfbuild: Program) -> None:
    declare(tiny, "{match: [derived], acceptedValues: {value: [10]}, severity: warn}")
    said = odfbuild.ok("apply", "-y", "--json")
    warned = {d["name"]: d["warnings"] for d in said.data["datasets"]}
    assert warned["derived"] == ["acceptedValues: value: 2 records, such as offset 1, 20"]
    tested = odfbuild.ok("test")
    assert "      warning: acceptedValues: value: 2 records, such as offset 1, 20" in tested.out
    assert tested.out.endswith("Test: 1 dataset, 1 passed, 0 failed.\n")


def test_a_check_that_is_not_kept_is_named_with_its_line(tiny: Tiny, odfbuild: Program) -> None:
    declare(
        tiny,
        "{match: [derived], severity: warn, acceptedValues: {value: [10]}}\n"
        "{match: [derived], notNull: [id], rowCount: {max: 2}}",
    )
    said = odfbuild("apply", "-y")
    assert "  --> odfbuild.yaml:9:41\n" in said.err
    assert "9 |     - {match: [derived], notNull: [id], rowCount: {max: 2}}\n" in said.err
    (log,) = (tiny.root / ".odfbuild" / "runs").glob("*/log.jsonl")
    events = [json.loads(line) for line in log.read_text().splitlines()]
    warned, failed = [each for each in events if each["event"] == "check.fail"]
    assert (warned["level"], warned["dataset"]) == ("warning", "derived")
    assert (failed["level"], failed["place"]) == ("error", "odfbuild.yaml:9:41")
    assert failed["checks"][0] == "rowCount: at most 2: there are 3 records"
    assert not [each for each in events if each["event"] == "node.fail"]


def test_testing_names_the_lines_of_checks(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    declare(tiny, "{match: [derived], rowCount: {max: 2}}")
    assert "      --> odfbuild.yaml:8:26\n" in odfbuild("test").out
    (found,) = odfbuild("test", "--json").data["datasets"]
    assert found["violations"][0]["line"] == 8


@pytest.mark.parametrize(
    "check", ["notNull: [nothing]", "relationships: {id: {to: nowhere, field: id}}"]
)
def test_a_check_of_what_is_not_there_is_named_with_its_line(
    tiny: Tiny, odfbuild: Program, check: str
) -> None:
    declare(tiny, f"{{match: [derived], {check}}}")
    assert "  --> odfbuild.yaml:8:" in odfbuild("apply", "-y").err


def test_all_committed_records_can_be_tested(tiny: Tiny, odfbuild: Program) -> None:
    assert odfbuild.ok("test").out.startswith("No dataset has checks")
    odfbuild.apply()
    tiny.arrive(2)
    odfbuild.apply()
    declare(
        tiny,
        "{match: [root], unique: [[id]], notNull: [id, value]}\n"
        "{match: ['*'], unique: [[value]]}\n"
        "{match: [derived], relationships: {id: {to: root, field: id}}}",
    )
    said = odfbuild("test", "--json")
    assert said.code == 0
    found = {d["name"]: [v["check"] for v in d["violations"]] for d in said.data["datasets"]}
    assert found == {"root": [], "derived": [], "further": []}
    declare(tiny, "{match: [derived], relationships: {value: {to: root, field: id}}}")
    said = odfbuild("test")
    assert said.code == 3
    assert said.out == (
        "  ! derived\n"
        "      relationships: value to root.id: 4 records, such as offset 0, 10\n"
        "      --> odfbuild.yaml:8:42\n\n"
        "Test: 1 dataset, 0 passed, 1 failed.\n"
    )
    assert odfbuild.ok("test", "root").out.startswith("No dataset has checks")


def test_a_dataset_waits_for_the_one_that_its_checks_refer_to(
    tiny: Tiny, odfbuild: Program
) -> None:
    """As found: with two jobs, the new records were compared with the values before."""
    root = (tiny.root / "datasets" / "root.yaml").read_text()
    early = root.replace("name: root", "name: a").replace("data/*", "early/*")
    (tiny.root / "datasets" / "a.yaml").write_text(early)
    (tiny.root / "early").mkdir()
    (tiny.root / "early" / "1.csv").write_bytes((tiny.root / "data" / "1.csv").read_bytes())
    declare(tiny, "{match: [a], relationships: {id: {to: derived, field: id}}}")
    plan = odfbuild.ok("plan").out
    assert "waits for derived, to which its checks refer" in plan
    saved = odfbuild.ok("plan", "--out", "plan.json", "--json").data
    assert {d["name"]: d.get("checked_against") for d in saved["datasets"]}["a"] == ["derived"]
    odfbuild.ok("apply", "plan.json", "-y")
    assert len(tiny.records("a")) == 3
    assert 'derived" -> "a" [style=dashed' in odfbuild.ok("graph", "--dot").out
    assert "check of a" in odfbuild.ok("graph").out
    assert {d["name"] for d in odfbuild.ok("ls", "+a", "--json").data} >= {
        "a",
        "derived",
        "root",
    }


@pytest.mark.parametrize(
    ("check", "code", "message"),
    [
        ("{match: [root], notNull: [idd]}", "E0541", "did you mean 'id'?"),
        ("{match: [root], unique: [[id, nothing]]}", "E0541", "no column 'nothing'"),
        (
            "{match: [root], relationships: {id: {to: nowhere, field: id}}}",
            "E0542",
            "refers to 'nowhere', which is no dataset",
        ),
        ("{match: [root], notNul: [id]}", "E0104", "did you mean 'notNull'?"),
        ("{match: [root], rowCount: {min: -1}}", "E0105", "odfbuild.yaml:"),
        (
            "{match: [root], severity: loud}",
            "E0105",
            "expected one of error, warn; found the string",
        ),
        ("{notNull: [id]}", "E0105", "'match' is missing"),
    ],
)
def test_a_check_that_is_wrong_is_refused_and_nothing_is_committed(
    tiny: Tiny, odfbuild: Program, check: str, code: str, message: str
) -> None:
    declare(tiny, check)
    said = odfbuild("apply", "-y")
    assert said.code == 1
    assert f"error[{code}]" in said.err
    assert message in said.err
    assert tiny.workspace().aliases() == []


def _file(folder: Path, file: str, **columns: list[object]) -> Path:
    rows = len(next(iter(columns.values())))
    table = pa.table({"offset": list(range(rows)), "op": [0] * rows} | columns)
    pq.write_table(table, folder / file)
    return folder / file


def test_records_are_counted_as_what_they_amount_to(tmp_path: Path) -> None:
    """Retractions take away, corrections replace, columns that came later are empty before."""
    first = _file(tmp_path, "1", id=[1, 2, 3, None], op=[0, 0, 0, 0])
    second = _file(tmp_path, "2", id=[1, 2, 2, 9], op=[1, 2, 3, 0], name=["a", "b", "c", None])
    checks = {
        NotNull("id"): (1, "offset 3"),
        NotNull("name"): (5, "offset 0"),
        Unique(("id",)): (0, ""),
        Unique(("name",)): (0, ""),
        AcceptedValues("id", (1, 2, 3, "nine")): (1, "offset 3, 9"),
        AcceptedValues("name", ("c",)): (0, ""),
        Relationship("id", "other", "key"): (2, "offset 2, 3"),
        RowCount(6, None): (0, ""),
        RowCount(None, 5): (6, ""),
    }
    check: Any
    for check, (count, example) in checks.items():
        found = audit(
            "d",
            [first, second],
            Vocabulary(),
            [Asked(check, warn=False)],
            lambda check: pa.array([1, 2]),
            lambda check: (0, ""),
        )
        assert [(v.count, v.example) for v in found] == ([(count, example)] if count else []), check
    third = _file(tmp_path, "3", id=[2, 2, 3], name=["x", "x", "y"])
    asked = [Asked(Unique(("id", "name")), warn=False), Asked(Unique(("id",)), warn=True)]
    found = audit(
        "d", [first, third], Vocabulary(), asked, lambda c: pa.array([]), lambda c: (0, "")
    )
    assert [str(each) for each in found] == [
        "unique: id, name: 2 records, such as id 2, name 'x'",
        "unique: id: 5 records, such as id 2",
    ]
    with pytest.raises(CheckError):
        missing = [Asked(NotNull("z"), False)]
        audit("d", [third], Vocabulary(), missing, lambda c: pa.array([]), lambda c: (0, ""))


def test_values_are_compared_as_queries_compare_them(tmp_path: Path) -> None:
    """And a key that was retracted is none, one of another type may not fit into the column."""
    key = uuid.UUID(int=1)
    numbers = pa.array([0.0, -0.0, math.nan])
    file = _file(
        tmp_path, "1", x=numbers, u=pa.array([key.bytes, None, None], pa.uuid()), i=[1, 2, 3]
    )
    first = _file(tmp_path, "2", id=pa.array([1, 2, 1 << 40]), op=[0, 0, 0])
    second = _file(tmp_path, "3", id=pa.array([2, 3, 3]), op=[1, 0, 1])
    keys = values_in_state([first, second], "id", Vocabulary())
    assert sorted(keys.to_pylist()) == [1, 1 << 40]
    narrow = _file(tmp_path, "4", i=pa.array([1, 2, 3], pa.int32()))
    checks: dict[Any, tuple[Path, int]] = {
        Unique(("x",)): (file, 2),
        Unique(("u",)): (file, 0),
        AcceptedValues("x", (0.0,)): (file, 1),
        AcceptedValues("u", (str(key),)): (file, 0),
        Relationship("i", "other", "id"): (narrow, 2),
    }
    for check, (given, count) in checks.items():
        asked = [Asked(check, warn=False)]
        found = audit("d", [given], Vocabulary(), asked, lambda _: keys, lambda _: (0, ""))
        assert sum(each.count for each in found) == count, check


@pytest.mark.spark
def test_a_check_may_be_a_query(tiny: Tiny, odfbuild: Program) -> None:
    declare(tiny, "{match: [root], sql: {small values: SELECT * FROM slice WHERE value > 2}}")
    said = odfbuild("apply", "-y")
    assert said.code == 1
    assert "= note: sql: small values: 1 record, such as offset 2, event_time " in said.err
    assert tiny.workspace().aliases() == []
    declare(
        tiny,
        "{match: [root], sql: {small values: SELECT * FROM slice WHERE value > 3}}\n"
        "{match: [derived], sql: {few: SELECT count(*) AS n FROM slice HAVING n > 2}}",
    )
    assert odfbuild("apply", "-y").code == 4
    assert tiny.ids("root") == [1, 2, 3]
    assert odfbuild.ok("test", "root").out == "Test: 1 dataset, 1 passed, 0 failed.\n"
    named = ", ".join(f'n{n}: "{query}"' for n, query in enumerate(RIGHT))
    declare(tiny, f"{{match: [root], sql: {{{named}}}}}")
    assert "error" not in odfbuild("test", "root").err
    for query, why in {
        "DROP TABLE slice": "it must be one SELECT",
        "SELECT 1; SELECT 2": "it must be one SELECT",
        "SELECT nothing FROM slice": "nothing",
        "SELEC 1": "",
    }.items():
        declare(tiny, f"{{match: [root], sql: {{wrong: {query}}}}}")
        said = odfbuild("test", "root")
        assert said.code == 1
        assert "error[E0543]: a check of 'root' is not a query over `slice`" in said.err
        assert why in said.err
