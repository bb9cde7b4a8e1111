"""Tables that somebody removed: a plan and `verify` say so, and apply makes them again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.apply.in_process import Program, share
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import Tiny
from tests.exchange.tables.tables import FORMATS, Format


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    return Tiny.fresh(tmp_path / "p")


@pytest.fixture
def odfbuild(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Program:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
    share(PlainEngine(), monkeypatch)
    return Program(tiny.root, monkeypatch, capsys)


@pytest.mark.parametrize("format", FORMATS, ids=lambda each: each.name)
def test_a_table_whose_folder_was_removed_is_planned_and_made_again(
    tiny: Tiny, odfbuild: Program, format: Format
) -> None:
    with (tiny.root / "odfbuild.yaml").open("a") as config:
        config.write(
            f"  tables: [{{match: [root], {format.settings}, location: ../lake, name: a.b}}]\n"
        )
    odfbuild.apply()
    assert "Table" not in odfbuild.ok("plan").out
    folder = tiny.root.parent / "lake" / ("a_b" if format.name == "kartothek" else "a.b")
    before = sorted(format.readers["pandas"](folder)["id"].to_pylist())
    for each in folder.parent.glob("a*"):
        shutil.rmtree(each) if each.is_dir() else each.unlink()
    said = odfbuild("verify", "--integrity", "--json")
    assert said.code == 3
    (finding,) = said.data["findings"]
    assert finding["code"] == "E1313"
    assert "it is not there any more" in finding["message"]
    (planned,) = odfbuild.ok("plan", "--json").data["tables"]
    assert (planned["step"], planned["because"]) == ("create", "it is not there any more")
    assert "is written as a whole: it is not there any more." in odfbuild.ok("plan").out
    odfbuild.apply()
    assert sorted(format.readers["pandas"](folder)["id"].to_pylist()) == before
    assert "Table" not in odfbuild.ok("plan").out
    assert odfbuild("verify", "--integrity").code == 0
