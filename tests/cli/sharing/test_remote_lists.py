"""`odfbuild ls --remote`: what a repository has, as a table and as JSON."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from odfbuild import Project
from tests.apply.in_process import Program
from tests.apply.tiny import Tiny
from tests.servers.faulty import faulty_server, response


@pytest.fixture
def published(odfbuild: Program, tiny: Tiny) -> Program:
    """A project with the repository `acme`, which has copies of its chains."""
    odfbuild.apply()
    shutil.copytree(tiny.root / "chains", tiny.root.parent / "published")
    settings = tiny.root / "odfbuild.yaml"
    text = settings.read_text() + "  repositories:\n    acme: {url: ../published}\n"
    settings.write_text(text)
    return odfbuild


def test_a_repository_is_listed_by_its_name_and_by_its_address(published: Program) -> None:
    listed = published.ok("ls", "--remote", "acme", "--json").data
    own = {each["name"]: each for each in published.ok("ls", "--json").data}
    assert [each["name"] for each in listed] == sorted(own)
    for each in listed:
        assert each["head"] == own[each["name"]]["head"]
        assert each["blocks"] == own[each["name"]]["blocks"]
    lines = published.ok("ls", "--remote", "acme").out.splitlines()
    assert lines[0].split() == ["NAME", "BLOCKS", "LAST", "BLOCK", "HEAD"]
    assert [line.split()[0] for line in lines[1:]] == sorted(own)
    assert published.ok("ls", "--remote", "../published").out.splitlines() == lines
    found = Project(published.root).remote_datasets("acme")
    assert [(each.name, str(each.head)) for each in found] == [
        (each["name"], each["head"]) for each in listed
    ]


def test_a_repository_is_listed_where_there_is_no_project(
    published: Program, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    away = Program(tmp_path / "elsewhere", published.monkeypatch, published.capsys)
    folder = str(published.root.parent / "published")
    assert len(away.ok("ls", "--remote", folder, "--json").data) == 2
    said = away("ls", "--remote", "acme")
    assert (said.code, "error[E1003]: there is no repository 'acme'" in said.err) == (1, True)


def test_damage_is_told_below_the_list(published: Program) -> None:
    (published.root.parent / "published" / "root" / "refs" / "head").write_text("?")
    said = published.ok("ls", "--remote", "acme")
    assert (
        "root: the head of the dataset at ../published/root is not the hash of a block" in said.out
    )
    assert "derived" in said.out


def test_an_empty_repository_and_one_that_cannot_be_listed_say_so(published: Program) -> None:
    (published.root / "empty").mkdir()
    assert published.ok("ls", "--remote", "./empty").out == "There are no datasets in ./empty.\n"
    with faulty_server(response(b"", status="404 Not Found")) as server:
        said = published("ls", "--remote", f"http://127.0.0.1:{server.port}")
    assert (said.code, "error[E1015]" in said.err, "help: " in said.err) == (1, True, True)


def test_a_selection_is_refused(published: Program) -> None:
    assert published("ls", "root", "--remote", "acme").code == 64
