"""A file is overwritten unasked only where Git has it as it is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.apply.in_process import Program
from tests.apply.tiny import Tiny

OLD = """\
kind: DatasetSnapshot
version: 1
content:
  id: cities  # as they are called
  source:
    kind: root
    fetch: {kind: url, url: "https://example.com/cities.json"}
    read: {kind: jsonLines}
    merge: {kind: append}
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    return Tiny.fresh(tmp_path / "p")


def git(root: Path, *command: str) -> None:
    who = ("-c", "user.name=ann", "-c", "user.email=ann@example.org")
    subprocess.run(["git", *who, *command], cwd=root, check=True, capture_output=True)


def commit(root: Path) -> None:
    git(root, "init", "-q")
    git(root, "add", "-A", "--force")
    git(root, "commit", "-q", "-m", "all")


def refused(odfbuild: Program, *command: str) -> str:
    said = odfbuild(*command)
    assert said.code == 1
    assert "error[E0334]" in said.err
    assert "add --auto-approve" in said.err
    return said.err


def test_what_migrate_rewrites_is_committed_or_somebody_agrees(
    odfbuild: Program, tiny: Tiny
) -> None:
    old = tiny.root / "datasets" / "cities.yaml"
    old.write_text(OLD)
    other = tiny.root / "datasets" / "towns.yaml"
    other.write_text(OLD.replace("id: cities", "id: towns"))
    assert "datasets/cities.yaml" in refused(odfbuild, "migrate", "--write")
    commit(tiny.root)
    other.write_text(other.read_text() + "# a thought\n")
    told = refused(odfbuild, "migrate", "--write")
    assert "error[E0334]: 1 file would be overwritten" in told
    assert "towns.yaml" in told and "cities.yaml" not in told
    assert old.read_text() == OLD
    git(tiny.root, "add", "-A")
    refused(odfbuild, "migrate", "--write")  # what is only staged goes with the next `git add`
    odfbuild.ok("migrate", "--write", "datasets/cities.yaml")
    odfbuild.ok("migrate", "--write", "--auto-approve")
    assert "name: towns" in other.read_text()


def test_what_render_overwrites_is_committed_or_somebody_agrees(
    odfbuild: Program, tiny: Tiny
) -> None:
    odfbuild.ok("render", "-o", "shown")
    odfbuild.ok("render", "-o", "shown")  # the same again
    file = tiny.root / "shown" / "derived.yaml"
    file.write_text("mine\n")
    root = (tiny.root / "shown" / "root.yaml").read_text()
    assert "shown/derived.yaml" in refused(odfbuild, "render", "-o", "shown")
    assert "datasets/derived.yaml" in refused(odfbuild, "render", "-o", "datasets")
    assert file.read_text() == "mine\n"
    commit(tiny.root)
    odfbuild.ok("render", "-o", "shown")
    assert file.read_text().startswith("# datasets/derived.yaml\n")
    (tiny.root / ".gitignore").write_text("shown\n")
    git(tiny.root, "rm", "-q", "-r", "--cached", "shown")
    git(tiny.root, "commit", "-q", "-m", "ignored")
    file.write_text("mine\n")
    refused(odfbuild, "render", "-o", "shown", "derived")
    odfbuild.ok("render", "-o", "shown", "-y")
    assert file.read_text().startswith("# datasets/derived.yaml\n")
    assert (tiny.root / "shown" / "root.yaml").read_text() == root


def test_render_writes_through_no_link(odfbuild: Program, tiny: Tiny) -> None:
    outside = tiny.root.parent / "outside.yaml"
    outside.write_text("theirs\n")
    (tiny.root / "shown").mkdir()
    (tiny.root / "shown" / "root.yaml").symlink_to(outside)
    odfbuild.ok("render", "-o", "shown", "-y")
    assert outside.read_text() == "theirs\n"
    assert (tiny.root / "shown" / "root.yaml").read_text().startswith("# datasets/root.yaml\n")
