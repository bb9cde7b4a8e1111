"""The name of a project stands in comments, notes and pages: it is a name and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apply.in_process import Program
from tests.apply.tiny import Tiny

FORGED = "p--><script>x</script>\\n# A forged plan @everyone"


@pytest.mark.parametrize("name", [FORGED, "p q", "p\\n", "-p", "ü", "", "x" * 101])
def test_a_name_that_is_none_is_an_error_with_its_place(
    tiny: Tiny, odfbuild: Program, name: str
) -> None:
    text = (tiny.root / "odfbuild.yaml").read_text()
    (tiny.root / "odfbuild.yaml").write_text(text.replace("name: tiny", f'name: "{name}"'))
    assert f'name: "{name}"' in (tiny.root / "odfbuild.yaml").read_text()
    for verb in ("plan --md", "validate", "git check"):
        done = odfbuild(*verb.split())
        assert done.code == 1
        assert "error[E0105]" in done.err
        assert "--> odfbuild.yaml:4:3" in done.err
        assert "letters, digits" in done.err
        assert done.out == ""


def test_a_new_project_has_a_name_from_its_folder(odfbuild: Program, tmp_path: Path) -> None:
    folder = tmp_path / "Wetter & Köln #1"
    odfbuild.ok("init", str(folder))
    assert "  name: Wetter-K-ln-1\n" in (folder / "odfbuild.yaml").read_text()
    odfbuild.ok("-C", str(folder), "validate")
    done = odfbuild("init", str(tmp_path / "other"), "--name", "a b")
    assert (done.code, "error[E0105]" in done.err, "for example 'a-b'" in done.err) == (1, 1, 1)
    assert not (tmp_path / "other").exists()
