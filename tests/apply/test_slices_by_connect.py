"""A server of Spark Connect that shares nothing with us but S3 reads slices and writes them.

It is in a mount namespace of its own, in which the project is hidden.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.apply.test_slices_by_executors import (
    DEFINITIONS,
    DERIVED,
    FILES,
    ROWS,
    Bench,
    head,
    records,
    records_of,
    slices,
)
from tests.servers.cluster import why_nothing_can_be_hidden
from tests.servers.connect import connect_server
from tests.servers.objects import s3_endpoint

pytestmark = pytest.mark.spark


@contextmanager
def server(bench: Bench, name: str, **variables: str) -> Iterator[Bench]:
    """The same with a server whose tasks have `variables`."""
    found = {"PYSPARK_PYTHON": sys.executable, **variables}
    with connect_server(bench.folder / name, hidden=[bench.folder / "hidden"], variables=found) as (
        master,
        _,
    ):
        yield replace(bench, master=master)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A project whose root is ahead of its derivatives, and what one JVM makes of it."""
    why = why_nothing_can_be_hidden()
    if why:
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("connect")
    root = folder / "hidden" / "made"
    (root / "datasets").mkdir(parents=True)
    (root / "data").mkdir()
    (root / "datasets" / "all.yaml").write_text(DEFINITIONS)
    with s3_endpoint() as objects:
        bench = Bench("local[2]", folder, objects)
        bench.configure(root)
        for numbers, names in (([0], ()), (range(1, FILES), ("fact",))):
            for number in numbers:
                pq.write_table(records(number * ROWS), root / "data" / f"{number}.parquet")
            said = bench.run(root, "apply", "-y", *names)
            assert said.endswith("\n0"), said
        said = bench.run(bench.copy("here"), "apply", "-y", *DERIVED)
        assert said.endswith("\n0"), said
        yield bench


@pytest.fixture(scope="module")
def bench(local: Bench) -> Iterator[Bench]:
    with server(local, "server") as bench:
        yield bench


def here(bench: Bench) -> Path:
    return bench.folder / "hidden" / "here"


def test_a_step_of_one_piece_gives_the_head_of_one_jvm(bench: Bench) -> None:
    root = bench.copy("whole", slices="executors", sliceSize="1g")
    said = bench.run(root, "apply", "-y", *DERIVED)
    assert said.endswith("\n0"), said
    assert "executors wrote 1 slice" in said
    for name in DERIVED:
        assert head(root, name) == head(here(bench), name)
    assert not [each for each in root.rglob("*") if each.is_file() and each.parent.name == "data"]


@pytest.mark.slow  # another session on the server
def test_each_slice_of_the_input_becomes_a_block(bench: Bench) -> None:
    root = bench.copy("pieces", sliceSize="64k")
    said = bench.run(root, "apply", "-y", *DERIVED)
    assert said.endswith("\n0"), said
    for name in DERIVED:
        assert records_of(root, name).equals(records_of(here(bench), name))
    _, second, *others = slices(root, "even")
    assert second is None, "nothing of that slice is in the result"
    assert [each.records for each in others if each] == [ROWS // 2] * (FILES - 2)


@pytest.mark.slow  # a server for each
@pytest.mark.parametrize(
    ("variables", "code", "help"),
    [
        ({"PYSPARK_PYTHON": "/nonexistent/python"}, "E1680", "PYSPARK_PYTHON where the server"),
        ({"PYSPARK_PYTHON": str(Path(sys.base_prefix, "bin", "python3"))}, "E1681", "pyarrow=="),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "E1682", "give workers the address"),
    ],
)
def test_a_server_that_cannot_do_it_is_told_before_anything_is_committed(
    local: Bench, variables: dict[str, str], code: str, help: str
) -> None:
    with server(local, f"server-{code}", **variables) as bench:
        root = bench.copy(f"lacking-{code}", sliceSize="64k")
        before = head(root, "all")
        said = bench.run(root, "apply", "-y", "all")
    assert f"error[{code}]" in said
    assert help in " ".join(said.split())
    assert said.endswith("\n1")
    assert head(root, "all") == before
