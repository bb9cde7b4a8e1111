"""What an apply does, and what it leaves alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from odfbuild.odf.model import AddData, ExecuteTransform, SetTransform
from tests.apply.tiny import NO_JVM, QUERY, Tiny
from tests.servers import nginx

pytestmark = pytest.mark.spark

Near = Callable[[Path], Tiny]


def _actions(tiny: Tiny) -> dict[str, list[str]]:
    done = tiny.run("plan", "--json")
    assert done.returncode == 0, done.stderr
    return {d["name"]: d["actions"] for d in json.loads(done.stdout)["datasets"]}


def test_files_queries_and_unchanged_sources_take_their_course(near: Near, tmp_path: Path) -> None:
    tiny = near(tmp_path / "p")
    tiny.arrive(2)
    tiny.derive("nothing", "SELECT event_time, id FROM source WHERE id > 100")
    tiny.apply()

    # Each file is a block of its own, in order, and the last one is where the source stands.
    added = [event for event in tiny.events("root") if isinstance(event, AddData)]
    assert [event.new_source_state.value for event in added] == ["1.csv", "2.csv"]
    assert tiny.ids("root") == [1, 2, 3, 4] == tiny.ids("derived")
    heads = {name: now.watermark for name, now in tiny.workspace().projections().items()}
    assert heads["root"] is not None
    assert heads["derived"] == heads["root"]

    # A filter that keeps nothing has still read its input.
    last = tiny.events("nothing")[-1]
    assert isinstance(last, ExecuteTransform)
    assert last.new_data is None
    assert last.new_watermark == heads["root"]
    assert not any(_actions(tiny).values())

    before = tiny.state()
    tiny.apply(env=NO_JVM)
    tiny.derive("derived", "SELECT  event_time, id,\n            value * 10 AS value FROM source")
    tiny.apply(env=NO_JVM)
    assert tiny.state() == before

    # A changed query holds from here on; what was computed stays.
    tiny.derive("derived", QUERY.replace("10", "100"))
    tiny.apply()
    assert isinstance(tiny.events("derived")[-1], SetTransform)
    assert tiny.records("derived") == before["derived"][1]


def test_a_failed_dataset_stops_only_its_descendants(near: Near, tmp_path: Path) -> None:
    tiny = near(tmp_path / "p")
    tiny.derive("broken", "SELECT event_time, array_max(id) AS most FROM source")
    tiny.derive("below", "SELECT event_time FROM source", source="broken")
    said = tiny.apply(expect=4)
    assert "array_max" in said
    assert "'broken' did not complete" in said
    assert tiny.ids("derived") == [1, 2, 3]
    assert set(tiny.workspace().aliases()) == {"root", "derived"}


def test_a_file_without_new_records_stops_its_readers(near: Near, tmp_path: Path) -> None:
    tiny = near(tmp_path / "p")
    tiny.apply()
    before = tiny.events("derived")
    (tmp_path / "p" / "data" / "2.csv").write_text("event_time,id,value\n2024-01-03 00:00:00,3,3\n")
    tiny.apply()
    assert tiny.events("derived") == before
    assert tiny.ids("derived") == [1, 2, 3]
    tiny.apply(env=NO_JVM)


def test_an_unchanged_web_page_is_not_fetched_twice(near: Near, tmp_path: Path) -> None:
    tiny = near(tmp_path / "p")
    page = tiny.root / "data" / "1.csv"
    with nginx(tmp_path / "web") as server:
        (server.www / "page.csv").write_text(page.read_text())
        definition = tiny.root / "datasets" / "root.yaml"
        text = definition.read_text()
        old = "kind: FilesGlob\n        path: data/*.csv\n        order: ByName\n"
        assert old in text
        definition.write_text(
            text.replace(old, f"kind: Url\n        url: {server.url('page.csv')}\n")
        )
        tiny.apply()
        before = tiny.state()
        assert tiny.ids("root") == [1, 2, 3]
        tiny.apply(env=NO_JVM)
        assert tiny.state() == before
        asked = [line for line in server.requests() if "page.csv" in line]
        assert [line.split()[0] for line in asked] == ["200", "304"]
