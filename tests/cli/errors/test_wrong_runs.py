"""Mistakes that only show when data is built, or built again: each with its code and its place.

The program itself and Spark, in a pipe and on a terminal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.real import NO_QUESTIONS, Said, in_pipe, on_terminal
from tests.cli.wrong.built import AGAIN, BUILT, HEALTHY, MISTAKES, unbuildable, unrepeatable
from tests.project.write_project import listing, root_yaml

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class _Runs:
    """A run in a pipe, and one on a terminal after a definition has changed."""

    root: Path
    first: Said
    second: Said
    before: dict[str, bytes]
    after: dict[str, bytes]

    def ended(self) -> Iterator[dict[str, str]]:
        """The code of the error of each dataset that has one, by run."""
        for file in sorted((self.root / ".odfbuild/runs").glob("*/run_results.json")):
            datasets = json.loads(file.read_bytes())["datasets"]
            yield {each["name"]: each["error"] for each in datasets if each["error"]}


ANY_PIPE = {"ODFBUILD_PIPES": "*"}


def _built(base: Path) -> _Runs:
    root = unbuildable(base / "built").root
    first = in_pipe(root, ["apply", "-y"], ANY_PIPE)
    before = listing(root / "chains")
    (root / "datasets" / "cities.yaml").write_text(
        root_yaml("cities", "id STRING, city STRING", glob="cities/*.csv")
    )
    second = on_terminal(root, ["apply", "-y"], {**NO_QUESTIONS, **ANY_PIPE})
    return _Runs(root, first, second, before, listing(root / "chains"))


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[_Runs, Said]]:
    base = tmp_path_factory.mktemp("wrong")
    root = unrepeatable(base / "again").root
    with ThreadPoolExecutor() as pool:
        built = pool.submit(_built, base)
        # On a terminal it says the same in colours: see `test_every_code`.
        again = pool.submit(in_pipe, root, ["verify"], NO_QUESTIONS)
        yield built.result(), again.result()


@pytest.fixture(scope="module")
def runs(done: tuple[_Runs, Said]) -> _Runs:
    return done[0]


def test_every_mistake_is_told_with_its_code_whichever_others_there_are(runs: _Runs) -> None:
    first, second = runs.ended()
    assert first == BUILT | MISTAKES
    assert second == BUILT | MISTAKES | {"cities": "E0314"}
    for said in (runs.first, runs.second):
        assert "Traceback" not in said.text
        for code in set(BUILT.values()):
            assert f"error[{code}]: " in said.plain
            assert f"see: odfbuild explain {code}\n" in said.plain
    assert runs.first.text == runs.first.plain
    assert runs.second.text != runs.second.plain


def test_what_cannot_be_done_again_is_told_with_its_code(done: tuple[_Runs, Said]) -> None:
    _, said = done
    assert said.code == 3, said.text
    assert "Traceback" not in said.text
    for name, code in AGAIN.items():
        found = re.search(rf"^ +! {re.escape(name)}\n +error\[(E\d+)\]", said.plain, re.M)
        assert found is not None, said.text
        assert found[1] == code
        assert f"see: odfbuild explain {code}\n" in said.plain


def test_a_healthy_dataset_is_committed_beside_wrong_ones(runs: _Runs) -> None:
    assert runs.first.code == 4, runs.first.text
    chains = {name.split("/")[0] for name in runs.before}
    assert set(HEALTHY) <= chains
    assert chains.isdisjoint(MISTAKES)


@pytest.mark.parametrize(
    "place",
    [
        "datasets/syntax.yaml:16:16",
        "datasets/column.yaml:16:13",
        "datasets/templated.yaml.j2:19:13",
        "datasets/missing.yaml",
    ],
)
def test_each_mistake_is_shown_in_its_definition(runs: _Runs, place: str) -> None:
    assert place in runs.first.text


def test_a_missing_column_comes_with_the_one_that_was_meant(runs: _Runs) -> None:
    assert "did you mean 'city'?" in runs.first.text


def test_a_malformed_row_names_its_file_and_line(runs: _Runs) -> None:
    assert "cities/ragged.txt:3" in runs.first.text


def test_a_committed_column_keeps_its_type(runs: _Runs) -> None:
    assert runs.second.code == 1, runs.second.text
    assert "datasets/cities.yaml" in runs.second.text
    assert runs.after == runs.before
