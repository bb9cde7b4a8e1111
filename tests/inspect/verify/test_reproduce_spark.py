"""Must hold on the real engine: each block follows by what was in force at it, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from odfbuild.engine.contract import TransformResult, TransformTask
from odfbuild.engine.spark.engine import SparkEngine
from odfbuild.odf.model import ExecuteTransform
from tests.apply.in_process import Program, Said
from tests.apply.tiny import QUERY, Tiny
from tests.inspect.verify.test_reproduce import tamper_slice

pytestmark = pytest.mark.spark

COUNTED = "SELECT event_time, id % 2 AS odd, count(*) AS n FROM source GROUP BY event_time, id % 2"
DAILY = "SELECT window.start AS event_time, count(*) AS n FROM source"
BY_DAY = " GROUP BY window(event_time, '1 day')"


NAMES = {"derived": "value", "counted": "n", "daily": "n"}
"""A dataset of each mode, and a column to forge."""


def last_with_data(tiny: Tiny, name: str) -> int:
    """The number of the last block that brought records."""
    store = tiny.workspace().dataset(name)
    head = store.head()
    assert head is not None
    return next(
        block.sequence_number
        for _, block in store.walk(head)
        if isinstance(block.event, ExecuteTransform) and block.event.new_data is not None
    )


def add_file(tiny: Tiny, name: str, *rows: str, header: str = "event_time,id,value") -> None:
    (tiny.root / "data" / f"{name}.csv").write_text("\n".join([header, *rows]) + "\n")


def test_blocks_are_done_again_by_what_was_in_force_and_a_forged_one_is_named(
    odfbuild: Program,
) -> None:
    tiny = Tiny(odfbuild.root)
    tiny.derive("counted", COUNTED)
    tiny.derive("daily", DAILY + BY_DAY)
    odfbuild.apply()

    # Other queries, for new records; a changelog corrects what it said.
    tiny.derive("derived", QUERY.replace("10", "100"))
    tiny.derive("counted", COUNTED.replace("count(*)", "count(*) * 10"))
    tiny.derive("daily", DAILY.replace("count(*)", "sum(value)") + BY_DAY)
    add_file(tiny, "2", "2024-01-01 00:00:00,4,4", "2024-02-02 00:00:00,5,5")
    odfbuild.apply()

    # Another input.
    other = (tiny.root / "datasets" / "root.yaml").read_text()
    other = other.replace("name: root", "name: other").replace("data/*.csv", "more/*.csv")
    (tiny.root / "datasets" / "other.yaml").write_text(other)
    (tiny.root / "more").mkdir()
    (tiny.root / "more" / "1.csv").write_text("event_time,id,value\n2024-03-01 00:00:00,9,9\n")
    union = (
        "SELECT event_time, id, value FROM source UNION ALL SELECT event_time, id, value FROM other"
    )
    for name, read in (
        ("derived", "FROM source UNION ALL SELECT event_time, id, value FROM other"),
        ("counted", f"FROM ({union})"),
        ("daily", f"FROM ({union})"),
    ):
        file = tiny.root / "datasets" / f"{name}.yaml"
        text = file.read_text().replace("FROM source", read)
        file.write_text(
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

    for name in NAMES:
        kinds = [type(event).__name__ for event in tiny.events(name)]
        assert (kinds.count("SetTransform"), kinds.count("ExecuteTransform")) == (3, 4), name
    # Old windows were counted and new ones summed; the changelog says of all what is true now.
    assert [record["n"] for record in tiny.records("daily")] == [1, 1, 3, 5]
    assert {record["op"] for record in tiny.records("counted")} == {0, 2, 3}
    allowed = [word for name in NAMES for word in ("--allow", f"rebuild:{name}")]
    planned = odfbuild.ok("plan", *allowed, "--json").data["datasets"]
    modes = {each["name"]: each["mode"]["mode"] for each in planned if each["name"] in NAMES}
    assert modes == {"derived": "map", "counted": "changelog", "daily": "stream"}
    said = odfbuild.ok("verify")
    assert "recomputed 12 steps of 3 derivatives, all records are identical." in said.out

    for name, column in NAMES.items():
        tamper_slice(tiny.workspace(), name, last_with_data(tiny, name), column, 666, tiny.root)
    assert odfbuild("verify", "--integrity", "--logical").code == 0
    said = odfbuild("verify", "--json")
    assert said.code == 3
    named = {each["dataset"]: each for each in said.data["findings"]}
    assert named.keys() == NAMES.keys()
    for name, column in NAMES.items():
        assert named[name]["code"] == "E0820"
        [difference] = named[name]["differences"]
        assert (difference["column"], difference["recorded"]) == (column, "666")


def test_of_steps_done_together_the_forged_one_is_named_as_if_it_were_alone(
    odfbuild: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = Tiny(odfbuild.root)
    odfbuild.apply()
    for number in (2, 3, 4):
        add_file(tiny, str(number), f"2024-0{number}-01 00:00:00,1{number},{number}")
        odfbuild.apply()
    together: list[int] = []
    work = SparkEngine._together

    def noted(
        self: SparkEngine, tasks: Sequence[TransformTask]
    ) -> Sequence[TransformResult] | None:
        found = work(self, tasks)
        together.append(len(found or ()))
        return found

    def said() -> tuple[Said, Said]:
        return odfbuild("verify"), odfbuild("verify", "--json")

    monkeypatch.setattr(SparkEngine, "_together", noted)
    assert "recomputed 4 steps of 1 derivative, all records are identical." in said()[0].out
    tamper_slice(
        tiny.workspace(), "derived", last_with_data(tiny, "derived") - 1, "value", 666, tiny.root
    )
    found = said()
    assert together == [4, 4, 4, 4]
    monkeypatch.setattr(SparkEngine, "_together", lambda self, tasks: None)
    assert found == said()
    [finding] = found[1].data["findings"]
    assert finding["sequence_number"] == last_with_data(tiny, "derived") - 1
