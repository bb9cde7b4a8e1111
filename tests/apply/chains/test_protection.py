"""Protected histories: neither an edit nor an option takes them away, and both together do not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.apply.in_process import Program, share
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import Tiny

_POLICY = "  policies:\n    - match: [d*]\n      rebuild: {}\n"


def _policy(tiny: Tiny, rebuild: str | None) -> None:
    config = tiny.root / "odfbuild.yaml"
    text = config.read_text().split("  policies:")[0]
    config.write_text(text + (_POLICY.format(rebuild) if rebuild else ""))


@pytest.fixture
def program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Program:
    """A project that was built while its derivative was protected."""
    share(PlainEngine(), monkeypatch)
    tiny = Tiny.fresh(tmp_path / "project")
    _policy(tiny, "refuse")
    made = Program(tiny.root, monkeypatch, capsys)
    made.apply()
    return made


REBUILD = ("--allow", "rebuild:derived")


def test_a_protected_dataset_is_neither_rebuilt_nor_reset(program: Program) -> None:
    tiny = Tiny(program.root)
    before = tiny.workspace().dataset("derived").head()
    for verb in (("plan", *REBUILD), ("apply", "-y", *REBUILD), ("reset", "-y", "derived")):
        said = program(*verb)
        assert said.code == 1
        assert "error[E0339]: the history of 'derived' is protected" in said.err
        assert "`rebuild: refuse` holds for `d*` in odfbuild.yaml" in said.err
    said = program("reset", "-y", "root", "--readers")
    assert "the history of 'derived' is protected" in said.err
    assert tiny.workspace().dataset("derived").head() == before
    assert tiny.workspace().dataset("root").head() is not None
    assert program.ok("plan").out.startswith("No changes.")


@pytest.mark.parametrize("rebuild", ["allow", None])
def test_terraform_2967_protection_ends_with_an_apply_and_not_with_an_edit(
    program: Program, rebuild: str | None
) -> None:
    tiny = Tiny(program.root)
    _policy(tiny, rebuild)
    for verb in (("plan", *REBUILD), ("apply", "-y", *REBUILD), ("reset", "-y", "derived")):
        said = program(*verb)
        assert said.code == 1
        assert "the policy of the last apply protects it" in said.err
    program.apply()
    assert "1 to reset" in program.ok("plan", *REBUILD).out
    before = len(list(tiny.events("derived")))
    program.ok("apply", "-y", *REBUILD)
    assert len(list(tiny.events("derived"))) == before
    assert tiny.ids("derived") == [1, 2, 3]


def test_a_saved_plan_does_not_rebuild_what_was_protected_since(program: Program) -> None:
    tiny = Tiny(program.root)
    _policy(tiny, None)
    program.apply()
    program.ok("plan", *REBUILD, "-o", "plan.json")
    assert json.loads((tiny.root / "plan.json").read_text())["summary"]["reset"] == 1
    _policy(tiny, "refuse")
    before = tiny.workspace().dataset("derived").head()
    said = program("apply", "-y", "plan.json")
    assert said.code == 1
    assert "error[E0339]" in said.err
    assert tiny.workspace().dataset("derived").head() == before


@pytest.mark.parametrize(
    ("policies", "place", "code"),
    [
        ("[{match: [a], rebuild: never}]", "odfbuild.yaml:7:", "E0105"),
        ("[{match: [a], breaking: allow}]", "odfbuild.yaml:7:", "E0104"),
        ("[{rebuild: allow}]", "odfbuild.yaml:7:", "E0105"),
        ("{match: [a]}", "odfbuild.yaml:7:", "E0105"),
    ],
)
def test_a_wrong_policy_is_refused_at_its_place(
    policies: str,
    place: str,
    code: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tiny = Tiny.fresh(tmp_path / "project")
    config = tiny.root / "odfbuild.yaml"
    config.write_text(f"{config.read_text()}  policies: {policies}\n")
    said = Program(tiny.root, monkeypatch, capsys)("validate")
    assert said.code == 1
    assert place in said.err
    assert f"error[{code}]" in said.err
