"""A clone of what was applied has nothing to do: the content of a source decides, not its times."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from odfbuild.ingest import content
from odfbuild.ingest.fetch.result import last_modified
from odfbuild.odf.model import AddData
from odfbuild.odf.timestamp import Timestamp
from tests.apply.in_process import Program
from tests.apply.tiny import Tiny
from tests.cli.fresh_clones import stays_clean_in_clones
from tests.servers.faulty import faulty_server, response

PAGE = "event_time,id,value\n2024-01-01 00:00:00,1,1\n"
MORE = PAGE + "2024-01-02 00:00:00,2,2\n"


def one_address(tiny: Tiny, url: str = "file:data/1.csv", merge: str = "kind: Append") -> Path:
    """Let `root` read one address; returns the file that is there."""
    definition = tiny.root / "datasets" / "root.yaml"
    text = definition.read_text().replace(
        "kind: FilesGlob\n        path: data/*.csv\n        order: ByName",
        f"kind: Url\n        url: {url}",
    )
    definition.write_text(text.replace("kind: Ledger\n        primaryKey: [id]", merge))
    file = tiny.root / "data" / "1.csv"
    file.write_text(PAGE)
    return file


def said_of_root(odfbuild: Program) -> tuple[list[str], list[str]]:
    """Actions planned for `root`, and why."""
    datasets = odfbuild.ok("plan", "--json").data["datasets"]
    (found,) = [each for each in datasets if each["name"] == "root"]
    return found["actions"], [each["message"] for each in found["reasons"]]


def states(tiny: Tiny) -> list[str]:
    found = [event.new_source_state for event in tiny.events("root") if isinstance(event, AddData)]
    return [state.value for state in found if state is not None]


@pytest.mark.parametrize("source", ["an address", "a pattern"])
def test_a_clone_of_what_was_applied_plans_nothing(
    tiny: Tiny, odfbuild: Program, tmp_path: Path, source: str
) -> None:
    if source == "an address":
        one_address(tiny)
    odfbuild.apply()
    stays_clean_in_clones(tiny.root, tmp_path / "clone")


@pytest.mark.spark
def test_a_clone_of_the_project_of_the_tutorial_plans_nothing(
    tmp_path: Path, odfbuild: Program
) -> None:
    begun = replace(odfbuild, root=tmp_path)
    begun.ok("init", "weather")
    weather = replace(odfbuild, root=tmp_path / "weather")
    cities = weather.root / "data" / "cities.csv"
    cities.write_text("city,country,people\nBergen,NO,291940\nLisbon,PT,567131\n")
    weather.ok("new", "files", "cities", "data/cities.csv")
    weather.apply()
    stays_clean_in_clones(weather.root, tmp_path / "clone")


def test_new_content_of_an_address_is_news_and_old_content_under_a_new_time_is_none(
    tiny: Tiny, odfbuild: Program
) -> None:
    file = one_address(tiny)
    assert said_of_root(odfbuild)[1][-1] == "data/1.csv is new"
    odfbuild.apply()
    before = tiny.state()
    os.utime(file, (1, 1))
    unchanged = "the content of data/1.csv has not changed"
    assert said_of_root(odfbuild) == ([], [unchanged])
    odfbuild.apply()
    assert tiny.state() == before
    file.write_text(MORE)
    assert said_of_root(odfbuild) == (["run"], ["the content of data/1.csv changed"])
    odfbuild.apply()
    # Also when it is again what it was once.
    file.write_text(PAGE)
    assert said_of_root(odfbuild)[0] == ["run"]
    # Anybody can compute the state: the code of the function, then what `sha256sum` prints.
    digests = [hashlib.sha256(text.encode()).hexdigest() for text in (PAGE, MORE)]
    assert states(tiny) == [f"f1220{digest}" for digest in digests]


def test_a_chain_that_holds_a_time_of_modification_gets_one_more_block_at_most(
    tiny: Tiny, odfbuild: Program
) -> None:
    file = one_address(tiny, merge="kind: Ledger\n        primaryKey: [id]")
    odfbuild.apply()
    then = Timestamp.parse("2020-01-01T00:00:00Z")
    os.utime(file, (then.millis / 1000, then.millis / 1000))
    store = tiny.workspace().dataset("root")
    (added,) = [event for event in tiny.events("root") if isinstance(event, AddData)]
    # As earlier releases and the reference leave it.
    event = AddData(
        prev_offset=0, new_watermark=added.new_watermark, new_source_state=last_modified(then)
    )
    store.append(store.head(), [event], Timestamp.now())
    before = tiny.state()
    assert said_of_root(odfbuild) == ([], [f"data/1.csv was not modified since {then}"])
    odfbuild.apply()
    assert tiny.state() == before
    file.touch()
    actions, (message,) = said_of_root(odfbuild)
    assert actions == ["run"]
    assert message.endswith("from now on its content is compared")
    blocks = len(tiny.events("root"))
    for _ in range(3):
        odfbuild.apply()
        file.touch()
    assert len(tiny.events("root")) == blocks + 1
    assert tiny.ids("root") == [1]


def test_a_large_file_is_hashed_once_while_it_looks_the_same(
    tiny: Tiny, odfbuild: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = one_address(tiny)
    os.utime(file, (10**9, 10**9))
    odfbuild.apply()
    monkeypatch.setattr(content, "_NOTED_BYTES", 1)
    monkeypatch.setattr(content, "RACY_NS", 0)
    hashed: list[object] = []
    real = content.content_of
    monkeypatch.setattr(content, "content_of", lambda path: hashed.append(path) or real(path))

    def plan() -> int:
        """Plans what is selected: nothing of the last plan is taken over."""
        hashed.clear()
        assert odfbuild("plan", "-s", "root", "--detailed-exitcode").code == 0
        return len(hashed)

    assert [plan(), plan(), plan()] == [1, 0, 0]
    file.touch()
    assert [plan(), plan()] == [1, 0]
    (tiny.root / ".odfbuild" / "contents.bin").write_bytes(b"not whole")
    assert plan() == 1


def test_the_same_bytes_under_another_etag_are_not_read_again_on_any_machine(
    tiny: Tiny, odfbuild: Program
) -> None:
    answers = [
        response(PAGE.encode(), 'ETag: "a"'),
        response(PAGE.encode(), 'ETag: "b"'),
        response(b"", status="304 Not Modified"),
        response(MORE.encode(), 'ETag: "c"'),
    ]
    with faulty_server(*answers) as server:
        one_address(tiny, server.url)
        odfbuild.apply()
        # What the server sent is compared with what the chain tells: there is no cache elsewhere.
        for path in (tiny.root / ".odfbuild").iterdir():
            if path.is_file():
                path.unlink()
        said = json.loads(odfbuild.ok("apply", "-y", "--json", "-s", "root").out)
        assert "another state for the same bytes" in json.dumps(said)
        assert (tiny.ids("root"), states(tiny)) == ([1], ['"a"', '"b"'])
        before = tiny.state()
        odfbuild.apply()
        assert 'if-none-match: "b"' in server.requests[-1].lower()
        assert tiny.state() == before
        odfbuild.apply()
        assert tiny.ids("root") == [1, 1, 2]
