"""dbt and odfbuild build the same records of one project; dbt is installed apart for it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.exchange.dbt.compare import differences

HERE = Path(__file__).parent
REQUIREMENTS = HERE.parents[2] / "benchmarks" / "requirements.txt"
NO_TABLES = {
    "model.bakery.stg_shops": "dbt made no table of it",  # ephemeral
    "source.bakery.mill.deliveries": "dbt made no table of it",  # files
}


def call(*words: str | Path, folder: Path) -> None:
    """Run a program; an error shows all that it said."""
    ran = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.slow
@pytest.mark.spark
def test_both_build_the_same_records_from_one_project(tmp_path: Path) -> None:
    call(sys.executable, "-m", "venv", tmp_path / "venv", folder=tmp_path)
    programs = tmp_path / "venv" / "bin"
    call(programs / "pip", "install", "--quiet", "-r", REQUIREMENTS, folder=tmp_path)
    shutil.copytree(HERE / "bakery", tmp_path / "dbt")
    call(programs / "dbt", "build", "--profiles-dir", ".", folder=tmp_path / "dbt")
    odfbuild = [sys.executable, "-m", "odfbuild"]
    for source in ("--manifest", "--no-manifest"):
        new = tmp_path / source.strip("-")
        call(*odfbuild, "migrate", "dbt", "dbt", "--to", new, source, folder=tmp_path)
        call(*odfbuild, "apply", "--auto-approve", folder=new)
        found = differences(new, tmp_path / "dbt" / "bakery.duckdb")
        assert {id_: what for id_, what in found.items() if what} == NO_TABLES
        assert len(found) == 8
