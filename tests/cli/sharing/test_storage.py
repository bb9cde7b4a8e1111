"""Clones of one project share their data through a storage; Git carries the chains."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from odfbuild import Project
from tests.apply.in_process import Program
from tests.apply.tiny import QUERY, Tiny
from tests.cli.clones import begin, clone, commit, share


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    return begin(tmp_path / "p")


def cloned(odfbuild: Program, tiny: Tiny) -> tuple[Tiny, Program]:
    commit(tiny)
    return clone(odfbuild, tiny.root)


def test_a_clone_goes_on_where_another_stopped(tiny: Tiny, odfbuild: Program) -> None:
    share(tiny)
    odfbuild.apply()
    other, program = cloned(odfbuild, tiny)
    assert list((other.root / "chains").glob("*/data/f*")) == []
    assert "No changes" in program.apply().out
    other.arrive(2)
    other.derive("late", QUERY)
    program.apply()
    # `late` read all of root; nobody needed the first records of `derived`.
    here = {file.parent.parent.name for file in (other.root / "chains").glob("*/data/f*")}
    assert here == {"root", "derived", "late"}
    assert program.ok("storage", "status").out.splitlines()[1].split()[-3:] == ["1", "2", "0"]
    assert program.ok("verify").out.startswith("Verified 3 datasets")
    assert other.ids("derived") == [1, 2, 3, 4]
    program.ok("tail", "late")
    assert program.ok("drift").out.startswith("No drift. ")


def test_without_a_storage_missing_data_are_an_error_that_says_how_to_share_them(
    tiny: Tiny, odfbuild: Program
) -> None:
    odfbuild.apply()
    other, program = cloned(odfbuild, tiny)
    other.arrive(2)
    for arguments in (("apply", "-y"), ("tail", "root"), ("test",)):
        said = program(*arguments)
        if arguments == ("test",):
            assert said.code == 0  # there is no check, so nothing was read
            continue
        assert "error[E0811]: data object f1620" in said.err
        assert "help: Git has the chains, not the data: name a `storage`" in said.err
        assert "Traceback" not in said.err
        assert said.code == (3 if arguments[0] == "tail" else 1)
    assert program("storage", "status").err.startswith("error[E0373]: this project has no storage")


def test_a_project_gets_a_storage_later(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    share(tiny)
    held = json.loads(odfbuild.ok("storage", "status", "--json").out)["datasets"]
    assert [(each["name"], len(each["objects"])) for each in held] == [("derived", 1), ("root", 1)]
    assert held[1]["objects"][0]["kind"] == "data"
    assert held[1]["objects"][0]["here"] > 1000
    assert held[1]["objects"][0]["stored"] is None
    assert json.loads(odfbuild.ok("storage", "push", "-n", "--json").out)["datasets"] == held
    said = odfbuild.ok("storage", "status").out
    assert [line.split()[0] for line in said.splitlines()] == ["NAME", "derived", "root"]
    assert [line.split()[-3:] for line in said.splitlines()[1:]] == [["1", "0", "0"]] * 2
    assert odfbuild.ok("storage", "push", "-n").out.startswith("Would push 2 objects, ")
    assert not (tiny.root.parent / "storage").exists()
    assert odfbuild.ok("storage", "push", "root").out.startswith("Pushed 1 object, ")
    assert odfbuild.ok("storage", "push").out.startswith("Pushed 1 object, ")
    assert odfbuild.ok("storage", "push").out == "Nothing to copy.\n"
    other, program = cloned(odfbuild, tiny)
    project = Project(other.root)
    assert [each.here for each in project.objects("root")] == [None]
    assert program.ok("storage", "pull", "-n").out.startswith("Would pull 2 objects, ")
    assert program.ok("storage", "pull").out.startswith("Pulled 2 objects, ")
    assert other.ids("derived") == [1, 2, 3]
    assert project.pull_objects() == project.push_objects() == ()


def test_a_damaged_file_is_not_pushed(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    share(tiny)
    (file,) = (tiny.root / "chains" / "root" / "data").glob("f*")
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    said = odfbuild("storage", "push")
    assert said.code == 3
    assert "error[E0813]: object f1620" in said.err
    assert len(list((tiny.root.parent / "storage" / "data").iterdir())) == 1


def test_verify_names_what_is_wrong_in_the_storage(tiny: Tiny, odfbuild: Program) -> None:
    share(tiny)
    odfbuild.apply()
    _, program = cloned(odfbuild, tiny)
    (file,) = (tiny.root / "chains" / "root" / "data").glob("f*")
    stored = tiny.root.parent / "storage" / "data" / file.name
    stored.write_bytes(stored.read_bytes()[:-1] + b"?")
    said = program("verify")
    assert said.code == 3
    assert f"error[E0813]: object {file.name} in the storage is not what was committed" in said.out
    shutil.rmtree(stored.parent)
    said = program("storage", "pull")
    assert said.code == 1
    assert said.out.splitlines() == [
        "Nothing to copy.",
        "1 object of the history is neither here nor in the storage: push where they are.",
    ]


def test_a_storage_that_cannot_be_reached_stops_only_what_needs_it(
    tiny: Tiny, odfbuild: Program
) -> None:
    share(tiny, "s3://no-such-bucket/x")
    odfbuild.monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    odfbuild.monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    odfbuild.monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "y")
    assert "Plan: 2 to create" in odfbuild.ok("plan").out
    said = odfbuild("apply", "-y")
    assert said.code == 1
    assert "error[E0911]: the storage s3://no-such-bucket/x cannot be used" in said.err
    assert tiny.workspace().aliases() == []


def test_environments_may_have_storages_of_their_own(tiny: Tiny, odfbuild: Program) -> None:
    share(tiny)
    with (tiny.root / "odfbuild.yaml").open("a") as config:
        config.write("  environments:\n    dev:\n      storage: ../dev\n    ci: {}\n")
    odfbuild.ok("-e", "dev", "apply", "-y")
    assert (tiny.root.parent / "dev").exists()
    assert not (tiny.root.parent / "storage").exists()
    odfbuild.ok("-e", "ci", "apply", "-y")
    assert (tiny.root.parent / "storage").exists()


@pytest.mark.parametrize("address", ["ftp://host/x", "s3:", "''", "s3://"])
def test_an_address_that_is_none_is_refused_with_its_place(
    tiny: Tiny, odfbuild: Program, address: str
) -> None:
    share(tiny, address)
    said = odfbuild("plan")
    assert said.code == 1
    assert "odfbuild.yaml:7:" in said.err
