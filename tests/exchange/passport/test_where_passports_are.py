"""Passports lie beside pushed datasets, come from servers, and are linked in the site."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from odfbuild import Project
from tests.apply.in_process import Program
from tests.apply.tiny import Tiny
from tests.exchange.passport.others import read_croissant, read_statements
from tests.exchange.repositories.serving import served


@pytest.fixture
def applied(tiny: Tiny, odfbuild: Program) -> Project:
    odfbuild.apply()
    return Project(tiny.root)


def share_with(project: Project, folder: Path, passports: str = "true") -> None:
    settings = project.root / "odfbuild.yaml"
    settings.write_text(
        settings.read_text()
        + f"  repositories:\n    shared: {{url: {folder}, passports: {passports}}}\n"
    )


def test_a_push_writes_passports_into_the_folder_of_the_dataset(
    applied: Project, tmp_path: Path, odfbuild: Program, tiny: Tiny
) -> None:
    share_with(applied, tmp_path / "shared")
    odfbuild.ok("push", "derived", "--to", "shared")
    folder = tmp_path / "shared" / "derived"
    found = list(read_croissant(folder / "croissant.json").records("records"))
    assert len(found) == 3
    did = str(applied.datasets()["derived"].dataset_id)
    assert len(read_statements((folder / "intoto.jsonl").read_bytes(), did)) == 1
    assert (folder / "odcs.yaml").read_bytes() == applied.passport("derived", "odcs")
    tiny.arrive(2)
    odfbuild.apply()
    odfbuild.ok("push", "derived", "--to", "shared")
    assert len(read_statements((folder / "intoto.jsonl").read_bytes(), did)) == 2
    # Whoever pulls from there gets the chain, as before.
    odfbuild.ok("push", "derived", "--to", "shared")


def test_without_the_key_there_are_no_statements(
    applied: Project, tmp_path: Path, odfbuild: Program
) -> None:
    share_with(applied, tmp_path / "shared")
    (applied.root / ".odfbuild-keys" / applied.datasets()["root"].dataset_id.multibase).unlink()
    odfbuild.ok("push", "root", "--to", "shared")
    names = {each.name for each in (tmp_path / "shared" / "root").iterdir() if each.is_file()}
    assert names == {"croissant.json", "odcs.yaml", "dcat.json"}


def test_other_repositories_get_no_passports(
    applied: Project, tmp_path: Path, odfbuild: Program
) -> None:
    share_with(applied, tmp_path / "shared", "false")
    odfbuild.ok("push", "root", "--to", "shared")
    assert not any(each.is_file() for each in (tmp_path / "shared" / "root").iterdir())


def test_a_server_gives_the_passport_of_a_dataset_that_may_be_read(applied: Project) -> None:
    access = "kind: Machine\nversion: 1\ncontent:\n  serve:\n    access:\n      - read: [derived]\n"
    with served(applied.root, access=access) as server:
        found = httpx.get(server.url("derived/croissant.json"), trust_env=False)
        assert found.headers["content-type"] == "application/ld+json"
        assert found.content == applied.passport("derived")
        text = httpx.get(server.url("derived/intoto.jsonl"), trust_env=False).content
        assert text == applied.passport("derived", "in-toto")
        for path in ("root/croissant.json", "none/croissant.json", "croissant.json", "x/y.json"):
            assert httpx.get(server.url(path), trust_env=False).status_code in (400, 404), path


def test_pages_link_to_passports_that_were_asked_for(applied: Project, odfbuild: Program) -> None:
    odfbuild.ok("docs", "build", "-o", "site", "--passports")
    site = applied.root / "site" / "datasets"
    assert (site / "derived.croissant.json").read_bytes() == applied.passport("derived")
    page = (site / "derived.html").read_text()
    assert 'type="application/ld+json" href="../datasets/derived.croissant.json"' in page
    assert '<a href="../datasets/derived.croissant.json">Croissant (JSON-LD)</a>' in page
    odfbuild.ok("docs", "build", "-o", "site")
    assert not (site / "derived.croissant.json").exists()
    assert "croissant" not in (site / "derived.html").read_text()


def test_what_is_missing_for_one_passport_leaves_the_others(
    applied: Project, odfbuild: Program
) -> None:
    for each in (applied.root / "chains" / "root" / "data").iterdir():
        each.unlink()
    said = odfbuild("docs", "build", "-o", "site", "--passports")
    assert said.code == 3
    assert "error[E0811]" in said.err
    site = applied.root / "site" / "datasets"
    assert json.loads((site / "derived.croissant.json").read_text())["name"] == "derived"
    assert (site / "root.html").exists()
