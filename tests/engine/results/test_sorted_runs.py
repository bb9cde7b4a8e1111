"""Files that are in order become one stream that is, and never more than some batches of memory."""

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odfbuild.records import sorted_runs
from odfbuild.records.sorted_runs import merged

WORDS = st.sampled_from(["", "a", "B", "ä", "\u65e5", "\U0001f600", "\uffff", None])
ROWS = st.lists(st.tuples(WORDS, st.sampled_from([1, 2, None])), max_size=60)


def _key(row):
    word, number, last = row
    text = (word is not None, (word or "").encode())
    return (text, (number is not None, number or 0), last)


@settings(max_examples=60, deadline=None)
@given(files=st.lists(ROWS, min_size=1, max_size=5), batch=st.integers(1, 7))
def test_any_files_in_order_give_all_rows_in_order(tmp_path_factory, files, batch):
    folder = tmp_path_factory.mktemp("runs")
    numbers = iter(range(1000))
    every, paths = [], []
    for index, rows in enumerate(files):
        run = sorted(((*row, next(numbers)) for row in rows), key=_key)
        every += run
        columns = [[row[i] for row in run] for i in range(3)]
        kinds = (pa.string(), pa.int32(), pa.int64())
        arrays = [pa.array(c, kind) for c, kind in zip(columns, kinds, strict=True)]
        paths.append(folder / f"{index}.parquet")
        pq.write_table(pa.table(arrays, names=["w", "n", "r"]), paths[-1], row_group_size=13)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_runs, "_LARGEST_BATCH", batch)
        found = [
            tuple(row.values()) for b in merged(paths, ["w", "n", "r"]) for row in b.to_pylist()
        ]
    assert found == sorted(every, key=_key)


def test_files_that_follow_one_another_are_passed_on_as_they_are(tmp_path):
    files = []
    for index in range(3):
        files.append(tmp_path / f"{index}.parquet")
        numbers = list(range(index * 100, index * 100 + 100))
        pq.write_table(pa.table({"n": numbers, "x": ["x"] * 100}), files[-1])
    batches = list(merged(files, ["n"], ["x"]))
    assert [(b.num_rows, b.schema.names) for b in batches] == [(100, ["x"])] * 3


def test_times_and_decimals_are_compared_exactly(tmp_path):
    times = [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC)]
    amounts = [Decimal("-1.00"), Decimal("0.01")]
    files = [tmp_path / "a", tmp_path / "b"]
    schema = pa.schema({"t": pa.timestamp("us", "UTC"), "d": pa.decimal128(5, 2)})
    for file, time in zip(files, reversed(times), strict=True):
        pq.write_table(pa.table({"t": [time] * 2, "d": amounts}, schema=schema), file)
    found = [tuple(row.values()) for b in merged(files, ["t", "d"]) for row in b.to_pylist()]
    assert found == [(time, amount) for time in times for amount in amounts]
