"""The program of the page about passports finds what was changed, with common libraries alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from odfbuild import Project
from tests.apply.in_process import Program
from tests.apply.tiny import Tiny
from tests.exchange.passport.others import changed

ROOT = Path(__file__).parents[3]
CHECK = ROOT / "examples" / "check_passport.py"


@pytest.fixture
def received(tiny: Tiny, odfbuild: Program, tmp_path: Path) -> tuple[Path, Path, str]:
    """The folder of a dataset of two steps, its statements, and its identity."""
    odfbuild.apply()
    tiny.arrive(2)
    odfbuild.apply()
    project = Project(tiny.root)
    statements = tmp_path / "derived.intoto.jsonl"
    statements.write_bytes(project.passport("derived", "in-toto"))
    return (
        tiny.root / "chains" / "derived",
        statements,
        str(project.datasets()["derived"].dataset_id),
    )


def check(folder: Path, statements: Path, did: str) -> tuple[int, str]:
    # Nothing of odfbuild is needed: the program does not find it.
    done = subprocess.run(
        [sys.executable, CHECK, folder, statements, did],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.stderr
    return done.returncode, done.stdout


def spoil(file: Path) -> None:
    file.chmod(0o600)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def test_the_page_shows_this_program() -> None:
    assert CHECK.read_text() in (ROOT / "docs" / "passport.md").read_text()


def test_what_was_signed_is_right(received: tuple[Path, Path, str]) -> None:
    assert check(*received) == (0, "2 statements about 4 records, 0 wrong\n")


@pytest.mark.parametrize("kind", ["data", "blocks"])
def test_a_changed_byte_of_a_file_is_found(received: tuple[Path, Path, str], kind: str) -> None:
    folder, statements, did = received
    # Of blocks only those of steps are signed; the seed is before them all.
    files = sorted((folder / kind).iterdir(), key=lambda each: each.stat().st_mtime_ns)
    spoil(files[-1])
    code, said = check(folder, statements, did)
    assert code == 1
    assert f"{kind}/{files[-1].name} does not have the signed sha3_256" in said


def test_a_missing_file_is_found(received: tuple[Path, Path, str]) -> None:
    folder, statements, did = received
    next((folder / "data").iterdir()).unlink()
    assert check(folder, statements, did)[0] == 1


def test_a_changed_statement_is_found(received: tuple[Path, Path, str]) -> None:
    folder, statements, did = received
    first, second = statements.read_bytes().splitlines()
    statements.write_bytes(changed(first) + b"\n" + second + b"\n")
    code, said = check(folder, statements, did)
    assert code == 1
    assert "statement 1 is not signed with the key of the dataset" in said


def test_a_statement_that_was_left_out_is_found(received: tuple[Path, Path, str]) -> None:
    folder, statements, did = received
    statements.write_bytes(statements.read_bytes().splitlines()[1] + b"\n")
    code, said = check(folder, statements, did)
    assert code == 1
    assert "statement 1: a step before it is missing" in said


def test_statements_of_another_dataset_are_not_taken(
    received: tuple[Path, Path, str], tiny: Tiny
) -> None:
    folder, statements, _ = received
    other = str(Project(tiny.root).datasets()["root"].dataset_id)
    assert check(folder, statements, other)[0] == 1
