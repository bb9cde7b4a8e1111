"""`kAnonymous`: no combination of values may be that of few records, in the whole dataset."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.records.audit import audit
from odfbuild.records.checks import Asked, KAnonymous
from tests.apply.in_process import Program
from tests.apply.tiny import Tiny

CHECK = "  checks:\n    - match: [root]\n      kAnonymous: {columns: [value], k: 2}\n"


def arrive(tiny: Tiny, number: int, *values: int) -> None:
    lines = [f"2024-01-0{number} 00:00:00,{number}{n},{v}" for n, v in enumerate(values)]
    text = "event_time,id,value\n" + "\n".join(lines) + "\n"
    (tiny.root / "data" / f"{number}.csv").write_text(text)


@pytest.fixture
def root(tiny: Tiny) -> Tiny:
    """Files with values; `root` may not have a value only once."""
    for each in (tiny.root / "data").iterdir():
        each.unlink()
    (tiny.root / "datasets" / "derived.yaml").unlink()
    config = tiny.root / "odfbuild.yaml"
    config.write_text(config.read_text() + CHECK)
    return tiny


def test_a_step_that_leaves_a_small_group_is_not_committed(root: Tiny, odfbuild: Program) -> None:
    arrive(root, 1, 7, 7, 8, 8, 8)
    odfbuild.apply()
    before = root.state()
    arrive(root, 2, 8, 9, 9, 4321)
    said = odfbuild("apply", "-y")
    assert said.code == 1
    assert "error[E0551]: with its new records 'root' is not k-anonymous" in said.err
    told = (
        "kAnonymous: value with k = 2: 1 record in groups that are too small: 1 group of 1 record"
    )
    assert told in said.err
    assert "--> odfbuild.yaml:" in said.err
    # Which group it is stays here: what is told may leave.
    assert "4321" not in said.err + said.out
    assert root.state() == before


def test_groups_are_those_of_the_whole_dataset(root: Tiny, odfbuild: Program) -> None:
    arrive(root, 1, 7, 7)
    odfbuild.apply()
    arrive(root, 2, 7)  # alone in its file, and not in the dataset
    odfbuild.apply()
    assert odfbuild.ok("test").out.endswith("Test: 1 dataset, 1 passed, 0 failed.\n")


def test_files_of_one_run_count_one_after_the_other(root: Tiny, odfbuild: Program) -> None:
    arrive(root, 1, 7, 7)
    arrive(root, 2, 7)
    arrive(root, 3, 8)
    said = odfbuild("apply", "-y")
    assert said.code != 0
    assert "E0551" in said.err
    assert len(root.ids("root")) == 3


def test_committed_records_are_tested_without_their_values(root: Tiny, odfbuild: Program) -> None:
    config = root.root / "odfbuild.yaml"
    config.write_text(config.read_text().replace(CHECK, ""))
    arrive(root, 1, 7, 7, 4321, 4322)
    odfbuild.apply()
    config.write_text(config.read_text() + CHECK)
    said = odfbuild("test")
    assert said.code == 3
    assert "2 records in groups that are too small: 2 groups of 1 record" in said.out
    assert "432" not in said.out
    assert "432" not in odfbuild("test", "--json").out.replace("2026-432", "")


def test_columns_that_are_not_there_are_told_by_the_plan(root: Tiny, odfbuild: Program) -> None:
    config = root.root / "odfbuild.yaml"
    config.write_text(config.read_text().replace("[value]", "[valeu]"))
    said = odfbuild("validate")
    assert said.code == 1
    assert "error[E0541]: 'root' has no column 'valeu'" in said.err


RECORDS = st.lists(
    st.tuples(st.sampled_from([0, 0, 0, 1]), st.sampled_from(["x", "y", None]), st.integers(0, 1)),
    max_size=12,
)


@settings(max_examples=60)
@given(st.lists(RECORDS, min_size=1, max_size=3), st.integers(2, 4))
def test_groups_are_counted_as_by_hand(
    tmp_path_factory: pytest.TempPathFactory, files: list, k: int
) -> None:
    folder = tmp_path_factory.mktemp("groups")
    paths: list[Path] = []
    sizes: dict[tuple, int] = {}
    for number, records in enumerate(files):
        columns = {
            "offset": pa.array(range(len(records)), pa.int64()),
            "op": pa.array([op for op, _, _ in records], pa.int32()),
            "a": pa.array([a for _, a, _ in records], pa.string()),
            "b": pa.array([b for _, _, b in records], pa.int64()),
        }
        paths.append(folder / f"{number}.parquet")
        pq.write_table(pa.table(columns), paths[-1])
        for op, a, b in records:
            sizes[a, b] = sizes.get((a, b), 0) + (1 if op == 0 else -1)
    asked = [Asked(KAnonymous(("a", "b"), k), False)]
    found = audit("d", paths[-1:], Vocabulary(), asked, None, None, paths[:-1])
    small = [size for size in sizes.values() if 0 < size < k]
    assert sum(each.count for each in found) == sum(small)
