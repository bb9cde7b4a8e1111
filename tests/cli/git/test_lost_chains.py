"""The chain of a dataset that others have read is gone: that is said, with the way back."""

from __future__ import annotations

import shutil

from tests.apply.in_process import Program
from tests.apply.tiny import QUERY, Tiny
from tests.cli.repository import commit, git, own_configuration, tiny

__all__ = ["own_configuration", "tiny"]


def test_a_deleted_chain_that_others_have_read_is_told_and_comes_back(
    tiny: Tiny, odfbuild: Program
) -> None:
    tiny.derive("last", "SELECT event_time, value FROM source", "derived")
    odfbuild.apply()
    commit(tiny, "Chains")
    for name, readers in (("root", "'derived'"), ("derived", "'last'")):
        shutil.rmtree(tiny.root / "chains" / name)
        for verb in ("plan", "apply -y", "plan -s root+"):
            said = odfbuild(*verb.split())
            assert said.code == 1 or (verb == "apply -y" and said.code == 4), (verb, said)
            shown = said.out + said.err
            assert "E0318" in shown
            assert f"the chain of '{name}' is gone, and {readers} read it before" in shown
            assert f"git checkout HEAD -- chains/{name}" in shown
            assert "E0315" not in shown
            assert "new root" not in shown
            assert not (tiny.root / "chains" / name).exists()
        git(tiny, "checkout", "HEAD", "--", f"chains/{name}")
        assert "E0318" not in odfbuild("plan").out


def test_a_chain_may_begin_anew_if_its_readers_are_computed_again(
    tiny: Tiny, odfbuild: Program
) -> None:
    odfbuild.apply()
    shutil.rmtree(tiny.root / "chains" / "root")
    said = odfbuild.ok("plan", "--allow", "rebuild:derived").out
    assert "+ root" in said
    assert "-/+ derived" in said
    odfbuild.ok("apply", "-y", "--allow", "rebuild:derived")
    odfbuild.ok("verify", "--integrity")
    assert "No changes" in odfbuild.ok("plan").out


def test_a_dataset_that_nobody_has_read_begins_as_ever(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    shutil.rmtree(tiny.root / "chains" / "derived")
    assert "+ derived" in odfbuild.ok("plan").out
    tiny.derive("other", QUERY)
    odfbuild.apply()
