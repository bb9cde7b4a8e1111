"""Plans say how a changelog is computed behind a long history, and policies limit what it reads."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from odfbuild.sql.increments import parts
from tests.apply.test_affected_records import RECORDS, applied, bring
from tests.apply.tiny import Tiny
from tests.report.golden import assert_golden

pytestmark = pytest.mark.spark

NEW = 1_240
TOTALS = "SELECT max(event_time) AS event_time, value, COUNT(*) AS n FROM source GROUP BY value"
KEYS = (
    "SELECT max(event_time) AS event_time, value, AVG(CAST(id AS DECIMAL(9, 2))) AS mean"
    " FROM source GROUP BY value"
)
ALL = "SELECT max(event_time) AS event_time, COUNT(DISTINCT id % 9) AS n FROM source"
ROWS = (
    "SELECT s.event_time, s.id, t.n FROM source s LEFT JOIN"
    " (SELECT value, COUNT(*) AS n FROM source GROUP BY value) t ON s.value = t.value"
)
MEAN = KEYS.replace("value, AVG", "AVG").replace(" GROUP BY value", "")
QUERIES = {"totals": TOTALS, "keys": KEYS, "whole": ALL, "joined": ROWS, "mean": MEAN}


@pytest.fixture
def program(near: Callable[[Path], Tiny], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tiny:
    """Changelogs behind a long history, and new records that nobody has read yet."""
    monkeypatch.setattr(parts, "FEWEST", RECORDS)
    tiny = near(tmp_path / "tiny")
    (tiny.root / "datasets" / "derived.yaml").unlink()
    for name, query in QUERIES.items():
        tiny.derive(name, query)
    bring(tiny, "1.csv", 0, RECORDS)
    applied(tiny)
    bring(tiny, "2.csv", RECORDS, NEW)
    return tiny


def policy(program: Tiny, *lines: str) -> None:
    """Let a policy hold for all datasets."""
    file = program.root / "odfbuild.yaml"
    entry = "".join(f"      {line}\n" for line in lines)
    file.write_text(file.read_text() + f"  policies:\n    - match: ['*']\n{entry}")


def test_a_plan_says_how_each_changelog_is_computed_and_apply_does_it(program: Tiny) -> None:
    coming = program.run("plan").stdout
    assert "reads up to 1,240 of 121,240 records" in coming
    applied(program, "--select", "root")
    said = program.run("plan")
    assert said.returncode == 0, said.stderr
    assert_golden("plan-of-changelogs.txt", re.sub(r"block \S+ → \S+", "block …", said.stdout))
    document = json.loads(program.run("plan", "--format", "json").stdout)
    ways = {each["name"]: each["pending"] for each in document["datasets"] if each["pending"]}
    assert {name: each["computation"]["way"] for name, each in ways.items()} == {
        "totals": "totals",
        "keys": "affected_keys",
        "whole": "all_records",
        "joined": "affected_keys",
        "mean": "kept_totals",
    }
    assert ways["totals"]["reads"]["most"] == NEW
    assert "their totals are added" in program.run("plan", "--format", "md").stdout
    assert "How:\n  computed from new records alone" in program.run("explain", "totals").stdout
    done = applied(program)
    for name, pending in ways.items():
        line = next(
            each for each in done.splitlines() if re.match(rf"\s+committed\s+{name} ", each)
        )
        read = int(re.search(r"over (?:all )?([\d,]+)", line)[1].replace(",", ""))
        assert pending["reads"]["least"] <= read <= pending["reads"]["most"], line


def test_a_plan_refuses_what_policies_do_not_let_it_read(program: Tiny) -> None:
    policy(program, "incremental: required", "maxRecords: 100000", "maxRead: 20kB")
    said = program.run("plan").stdout
    assert "error[E0368]: the step of 'root' reads" in said
    applied(program, "--select", "root", "--allow", "read:root")
    saved = program.root / "plan.json"
    refused = program.run("plan", "-o", str(saved))
    text = re.sub(r"block \S+ → \S+", "block …", refused.stdout.replace(str(program.root), "."))
    assert_golden("plan-limits.txt", text)
    again = program.run("apply", "-y", str(saved), "--select", "whole")
    assert again.returncode != 0
    assert "E0366" in again.stdout + again.stderr
    applied(program, "--select", "whole", "--allow", "read:whole")
    assert program.run("plan", "--allow", "read:nobody").returncode != 0


def test_a_run_that_needs_more_than_it_may_read_commits_nothing(program: Tiny) -> None:
    policy(program, "maxRecords: 100000")
    applied(program, "--select", "root")
    # Nearly all keys have new records.
    said = program.run("apply", "-y", "--select", "keys")
    assert said.returncode != 0
    assert "E0385" in said.stdout + said.stderr
    applied(program, "--select", "keys", "--allow", "read:keys")
