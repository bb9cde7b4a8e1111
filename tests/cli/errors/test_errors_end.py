"""How errors end: with the command that explains their code, for people and for programs."""

from __future__ import annotations

import json

import pytest

from odfbuild.cli.main import run
from odfbuild.errors import Errors, OdfbuildError
from odfbuild.report.errors import error_to_data, render_error
from tests.apply.in_process import Program
from tests.apply.tiny import Tiny

A = OdfbuildError("one", code="E0101", help="fix it")
B = OdfbuildError("two", code="E0102")


def test_an_error_ends_with_the_command_that_explains_it() -> None:
    assert render_error(A) == "error[E0101]: one\nhelp: fix it\nsee: odfbuild explain E0101\n"


def test_of_several_errors_each_code_is_named_once_at_the_end() -> None:
    assert render_error(Errors([A, B, A])).splitlines()[-3:] == [
        "3 errors.",
        "see: odfbuild explain E0101",
        "see: odfbuild explain E0102",
    ]
    assert render_error(A, A).count("see: ") == 1
    assert Errors([A, B]).code == "E0001"  # which is never shown


def test_json_says_the_same(tiny: Tiny, capsys: pytest.CaptureFixture[str]) -> None:
    assert error_to_data(A)[0]["see"] == "odfbuild explain E0101"
    (tiny.root / "datasets" / "derived.yaml").write_text("kind: Nothing\n")
    assert run(["-C", str(tiny.root), "drift", "--json"]) == 1
    said = capsys.readouterr()
    (error,) = json.loads(said.out)["errors"]
    for part in (error["code"], error["message"], error["help"], error["see"]):
        assert part in said.err
    assert error["file"] == "datasets/derived.yaml"


def test_an_apply_names_each_code_once(tiny: Tiny, odfbuild: Program) -> None:
    (tiny.root / "data" / "1.csv").write_text("no,such,columns\n")
    other = (tiny.root / "datasets" / "root.yaml").read_text().replace("name: root", "name: too")
    (tiny.root / "datasets" / "too.yaml").write_text(other)
    said = odfbuild("apply", "-y")
    assert said.code == 1
    assert said.err.count("error[E") == 2
    assert said.err.count("see: odfbuild explain E") == 1
    assert said.err.splitlines()[-1].startswith("see: ")
