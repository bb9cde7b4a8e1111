"""A project of two engines: DataFusion, as the example, and the built-in Spark behind it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.apply.in_process import Program
from tests.apply.tiny import Tiny
from tests.engine.process.test_engine_datafusion import ENGINE

pytestmark = pytest.mark.spark

MAPPED = "SELECT event_time, id, value * 10 AS value FROM source WHERE starts_with('abc', 'a')"
COUNTED = (
    "SELECT max(event_time) AS event_time, value % 20 AS odd, count(*) AS n FROM source"
    " GROUP BY value % 20"
)
DIES_ONCE = """
import os, sys
from pathlib import Path
sys.path.insert(0, {folder!r})
import engine
flag, compute = Path({flag!r}), engine.execute_transform
def once(request):
    if not flag.exists():
        flag.touch()
        os.kill(os.getpid(), 9)
    return compute(request)
engine.execute_transform = once
engine.main()
"""


def configure(machine: Path, version: str, program: Path) -> None:
    """Which program is an engine, a machine says, not a project that Git may bring."""
    engine = {"command": [sys.executable, str(program)], "version": version}
    content = {"engines": {"datafusion": engine}}
    machine.write_text(json.dumps({"kind": "Machine", "version": 1, "content": content}))


def define(tiny: Tiny, query: str) -> None:
    tiny.derive("mapped", query)
    file = tiny.root / "datasets" / "mapped.yaml"
    file.write_text(file.read_text().replace("engine: spark", "engine: datafusion"))


def values(tiny: Tiny, name: str, column: str) -> list[Any]:
    return [record[column] for record in tiny.records(name)]


def test_spark_and_datafusion_compute_one_graph(
    odfbuild: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny, machine = Tiny(odfbuild.root), tmp_path / "machine.yaml"
    monkeypatch.setenv("ODFBUILD_CONFIG", str(machine))
    configure(machine, "55.0.0", ENGINE)
    define(tiny, MAPPED)
    tiny.derive("counted", COUNTED, source="mapped")
    assert "4 to create" in odfbuild.ok("plan").out
    odfbuild.apply()
    assert values(tiny, "mapped", "value") == [10, 20, 30]
    assert values(tiny, "counted", "n") == [1, 2]

    # The engine is killed in the middle of a step: nothing of it stays, and the next try works.
    tiny.arrive(2)
    killed, flag = tmp_path / "dies_once.py", str(tmp_path / "died")
    killed.write_text(DIES_ONCE.format(folder=str(ENGINE.parent), flag=flag))
    configure(machine, "55.0.0", killed)
    failed = odfbuild("apply", "-y")
    assert failed.code == 4
    assert "datafusion" in failed.err and "mapped" in failed.err
    assert values(tiny, "mapped", "value") == [10, 20, 30]
    odfbuild.apply()
    assert values(tiny, "mapped", "value") == [10, 20, 30, 40]
    assert "all records are identical" in odfbuild.ok("verify").out

    # It is known which records a step read, and nothing finer.
    [found] = odfbuild.ok("provenance", "mapped", "3", "-r", "--columns", "--json").data
    assert [each["dataset"] for each in found["inputs"]] == ["root"]
    assert found["inputs"][0]["whole"]
    assert "columns" not in found
    [found] = odfbuild.ok("provenance", "counted", "0", "-r", "--columns", "--json").data
    assert [each["name"] for each in found["columns"]] == ["event_time", "odd", "n"]
    assert [each["dataset"] for each in found["inputs"]] == ["mapped"]

    # What needs earlier records is refused, and nothing is committed.
    define(tiny, "SELECT event_time, max(id) AS id, 1 AS value FROM source GROUP BY event_time")
    (tiny.root / "data" / "3.csv").write_text("event_time,id,value\n2024-03-01 00:00:00,9,9\n")
    refused = odfbuild("apply", "-y")
    assert refused.code == 4
    assert "Aggregate, which needs other records than new ones" in refused.err
    assert values(tiny, "mapped", "value") == [10, 20, 30, 40]
    define(tiny, MAPPED)
    odfbuild.apply()

    # A newer version that gives the same takes the place of the older one.
    configure(machine, "55.0.1", ENGINE)
    said = odfbuild.ok("engine", "deprecate")
    assert "mapped" in said.out + said.err
    assert odfbuild("plan", "--detailed-exitcode").code == 0
