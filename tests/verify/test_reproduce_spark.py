"""Must hold on the real engine: each block follows by what was in force at it, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from odfbuild.engine.contract import Engine
from tests.apply.in_process import Program, share
from tests.apply.tiny import QUERY, Tiny
from tests.verify.test_reproduce import tamper_slice

pytestmark = pytest.mark.spark

COUNTED = "SELECT event_time, id % 2 AS odd, count(*) AS n FROM source GROUP BY event_time, id % 2"


@pytest.fixture
def odfbuild(
    tmp_path: Path,
    spark_engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Program:
    share(spark_engine, monkeypatch)
    return Program(Tiny.fresh(tmp_path / "tiny").root, monkeypatch, capsys)


def add_file(tiny: Tiny, name: str, *rows: str, header: str = "event_time,id,value") -> None:
    (tiny.root / "data" / f"{name}.csv").write_text("\n".join([header, *rows]) + "\n")


def test_blocks_are_done_again_by_what_was_in_force_and_a_forged_one_is_named(
    odfbuild: Program,
) -> None:
    tiny = Tiny(odfbuild.root)
    tiny.derive("counted", COUNTED)
    odfbuild.apply()

    # Another query, for new records; counts are computed over all of history each time.
    tiny.derive("derived", QUERY.replace("10", "100"))
    add_file(tiny, "2", "2024-01-01 00:00:00,4,4", "2024-02-02 00:00:00,5,5")
    odfbuild.apply()

    # Another input.
    other = (tiny.root / "datasets" / "root.yaml").read_text()
    other = other.replace("name: root", "name: other").replace("data/*.csv", "more/*.csv")
    (tiny.root / "datasets" / "other.yaml").write_text(other)
    (tiny.root / "more").mkdir()
    (tiny.root / "more" / "1.csv").write_text("event_time,id,value\n2024-03-01 00:00:00,9,9\n")
    derived = tiny.root / "datasets" / "derived.yaml"
    union = "FROM source UNION ALL SELECT event_time, id, value FROM other"
    text = derived.read_text().replace("FROM source", union)
    derived.write_text(
        text.replace(
            "alias: source\n",
            "alias: source\n        - datasetRef: other\n          alias: other\n",
        )
    )
    odfbuild.apply()

    # Another column upstream.
    root = tiny.root / "datasets" / "root.yaml"
    root.write_text(
        root.read_text().replace("value BIGINT", "value BIGINT\n          - note STRING")
    )
    add_file(tiny, "3", "2024-04-01 00:00:00,6,6,new", header="event_time,id,value,note")
    odfbuild.apply()

    kinds = [type(event).__name__ for event in tiny.events("derived")]
    assert kinds.count("SetTransform") == 3
    assert kinds.count("ExecuteTransform") == 4
    said = odfbuild.ok("verify")
    assert "7 steps of 2 derivatives done again gave the same records." in said.out

    for name in ("derived", "counted"):
        store = tiny.workspace().dataset(name)
        head = store.head()
        assert head is not None
        number = store.read_block(head).sequence_number
        column = "value" if name == "derived" else "n"
        tamper_slice(tiny.workspace(), name, number, column, 666, tiny.root)
    assert odfbuild("verify", "--integrity", "--logical").code == 0
    said = odfbuild("verify", "--json")
    assert said.code == 3
    named = {each["dataset"]: each for each in said.data["findings"]}
    assert named.keys() == {"derived", "counted"}
    for name, column in (("derived", "value"), ("counted", "n")):
        assert named[name]["code"] == "E0820"
        [difference] = named[name]["differences"]
        assert (difference["column"], difference["recorded"]) == (column, "666")
