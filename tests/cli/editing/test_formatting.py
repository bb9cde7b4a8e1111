"""`odfbuild fmt`: one form for all definitions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apply.in_process import Program
from tests.apply.tiny import Tiny
from tests.project.test_format import TIDY, UNTIDY


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    """A project with one untidy definition and a template."""
    tiny = Tiny.fresh(tmp_path / "p")
    (tiny.root / "datasets" / "orders.yaml").write_text(UNTIDY)
    root = (tiny.root / "datasets" / "root.yaml").read_text()
    (tiny.root / "datasets" / "t.yaml.j2").write_text(root.replace("name: root", "name:   other"))
    return tiny


def test_files_are_formatted_once(odfbuild: Program, tiny: Tiny) -> None:
    orders = tiny.root / "datasets" / "orders.yaml"
    orders.chmod(0o640)
    template = (tiny.root / "datasets" / "t.yaml.j2").read_bytes()
    said = odfbuild.ok("fmt")
    assert said.out == "datasets/orders.yaml\n"
    assert "1 template is not formatted." in said.err
    assert "1 file was formatted, 2 already formatted." in said.err
    assert orders.read_text() == TIDY
    assert orders.stat().st_mode & 0o777 == 0o640
    assert (tiny.root / "datasets" / "t.yaml.j2").read_bytes() == template
    assert odfbuild.ok("fmt").out == ""
    assert odfbuild.ok("fmt", "--check").out == ""


def test_a_check_lists_files_and_writes_nothing(odfbuild: Program, tiny: Tiny) -> None:
    checked = odfbuild("fmt", "--check")
    assert (checked.code, checked.out) == (1, "datasets/orders.yaml\n")
    assert "1 file would be formatted" in checked.err
    shown = odfbuild("fmt", "--diff", "datasets/orders.yaml")
    assert shown.code == 0
    assert shown.out.startswith("--- datasets/orders.yaml\n+++ datasets/orders.yaml\n")
    assert odfbuild("fmt", "--check", "--diff").code == 1
    assert (tiny.root / "datasets" / "orders.yaml").read_text() == UNTIDY


def test_what_comes_in_goes_out_formatted(odfbuild: Program) -> None:
    said = odfbuild.ok("fmt", "-", stdin=UNTIDY.encode())
    assert said.out == TIDY
    assert odfbuild("fmt", "-", "--check", stdin=UNTIDY.encode()).code == 1
    assert odfbuild.ok("fmt", "-", "--check", stdin=TIDY.encode()).out == ""
    anchored = b"a: &x 1\nb:  *x\n"
    said = odfbuild.ok("fmt", "-", stdin=anchored)
    assert said.out.encode() == anchored
    assert "Not changed: anchors and aliases" in said.err


def test_broken_files_do_not_keep_others_from_being_formatted(
    odfbuild: Program, tiny: Tiny
) -> None:
    (tiny.root / "datasets" / "broken.yaml").write_text("a: [\n")
    said = odfbuild("fmt")
    assert (said.code, said.out) == (1, "datasets/orders.yaml\n")
    assert "error[E0101]" in said.err
    assert "--> datasets/broken.yaml" in said.err
    assert odfbuild("fmt", "nowhere.yaml").code == 1
    (tiny.root / "odfbuild.yaml").unlink()
    assert odfbuild.ok("fmt", "datasets/derived.yaml").out == ""
