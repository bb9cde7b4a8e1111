"""A value is what it says, or its record is bad: nothing is completed, rounded or cut."""

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.engine.contract import IngestTask
from odfbuild.engine.slice import records_of
from odfbuild.odf.model import (
    MergeStrategyAppend,
    ReadStepCsv,
    ReadStepNdJson,
    ReadStepParquet,
)
from odfbuild.odf.vocabulary import Vocabulary
from tests.ingest.run_ingest import LATE, OneFile

pytestmark = pytest.mark.spark

TEXT: dict[str, tuple[dict[str, Any], list[str]]] = {
    "DATE": (
        {"2026-01-31": date(2026, 1, 31), "2026-1-5": date(2026, 1, 5)},
        ["2026", "2026-01", "2026-01-31T10:00:00Z", "2026-01-31 10:00", "20260131", "2026-02-30"],
    ),
    "TIMESTAMP": (
        {
            "2026-01-31T10:00:00.5Z": datetime(2026, 1, 31, 10, 0, 0, 500_000, UTC),
            "2026-01-31T10:00:00+02:00": datetime(2026, 1, 31, 8, tzinfo=UTC),
        },
        ["10:00", "2026", "T10:00:00", "2026-01-31T25:00:00Z"],
    ),
    "DECIMAL(5,2)": (
        {
            "1.5": Decimal("1.50"),
            "-999.9900": Decimal("-999.99"),
            "15e-1": Decimal("1.50"),
            "1E+2": Decimal("100.00"),
        },
        ["1.234", "1.005", "1000", "1234e-3", "1.2.3", ".", "1e400"],
    ),
    "BIGINT UNSIGNED": ({"18446744073709551615": 2**64 - 1}, ["-1", "18446744073709551616"]),
}
NUMBERS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "DOUBLE": (
        {"1.5": 1.5, "-2e-3": -0.002, ".5": 0.5, "0.000": 0.0, "Infinity": float("inf")},
        ["1d", "1f", "2.5D", "0x1p3", "1e400", "-1e400", "1e-400", "1,5"],
    ),
    "FLOAT": ({"1.5": 1.5, "0.1": 0.10000000149011612}, ["1F", "1e39", "1e-60"]),
    "INT": ({"+5": 5, "-0": 0}, ["1.0", "1e3", "2147483648", "0x10", " 1"]),
    "BOOLEAN": ({"true": True, "FALSE": False}, ["1", "yes", "t"]),
}
NO_JSON = ("1.2.3", ".")
PARQUET = [
    ("DECIMAL(5,2)", pa.decimal128(7, 4), [Decimal("1.5")], [Decimal("1.2345")]),
    ("INT", pa.float64(), [2.0], [2.5, 1e10, float("nan")]),
    ("DATE", pa.timestamp("us", "UTC"), [datetime(2026, 1, 1)], [datetime(2026, 1, 1, 5)]),
    ("DOUBLE", pa.int64(), [2**53], [2**53 + 1]),
    ("DATE", pa.string(), ["2026-01-01"], ["2026", "2026-01-01T10:00"]),
    ("DOUBLE", pa.string(), ["1.5"], ["1d", "1e400"]),
    ("FLOAT", pa.float64(), [0.1, float("inf")], [1e39]),
]


@dataclass(frozen=True)
class Found:
    """What came of a file: values of `x` that were kept, and all that is said of the others."""

    kept: list[object]
    said: list[str]
    counts: dict[str, int]


def _skipping(engine, folder, file, read):
    scratch = folder / f"scratch-{file.name}"
    scratch.mkdir()
    task = IngestTask(
        dataset="tests",
        file=file,
        source_name=file.name,
        read=read,
        preprocess=None,
        merge=MergeStrategyAppend(),
        vocab=Vocabulary(),
        history=OneFile(None),
        history_schema=None,
        event_time=LATE,
        scratch=scratch,
        skip_bad_records=True,
    )
    result = engine.run(task)
    rows = pa.Table.from_batches(list(records_of(result, Vocabulary())))
    said = [f"{each.location}: {each.reason}" for each in result.skipped.examples]
    return Found(rows["x"].to_pylist(), said, dict(result.skipped.counts))


@pytest.mark.parametrize("kind", TEXT | NUMBERS)
def test_a_cell_of_csv_is_read_exactly_or_refused_with_its_place(spark_engine, tmp_path, kind):
    good, bad = (TEXT | NUMBERS)[kind]
    file = tmp_path / "x.csv"
    file.write_text("n;x\n" + "".join(f"1;{text}\n" for text in [*good, *bad]), "utf-8")
    read = ReadStepCsv(ddl_schema=("n INT", f"x {kind}"), header=True, separator=";")
    found = _skipping(spark_engine, tmp_path, file, read)
    assert found.kept == list(good.values())
    assert found.counts == {"column 'x'": len(bad)}
    for number, text in enumerate(bad[:3], 2 + len(good)):
        assert f"x.csv:{number}:3: '{text}' in column 'x' is not {kind}" in found.said


@pytest.mark.parametrize("kind", TEXT)
def test_a_value_of_json_is_read_exactly_or_refused_also_within_others(
    spark_engine, tmp_path, kind
):
    good, bad = TEXT[kind]
    bare = kind.startswith(("DECIMAL", "BIGINT"))
    texts = [t if bare else json.dumps(t) for t in (*good, *bad) if not (bare and t in NO_JSON)]
    wrong = len(texts) - len(good)
    # The range of unsigned numbers is that of a column; lists have decimals.
    nested = "DECIMAL(20,0)" if "UNSIGNED" in kind else kind
    schema: tuple[str, ...] = (f"x {kind}", f"l ARRAY<{nested}>", f"s STRUCT<m: {nested}>")
    forms = ['{"x": %s}', '{"l": [null, %s]}', '{"s": {"m": %s}}']
    if nested != kind:
        schema, forms = schema[:1], forms[:1]
    file = tmp_path / "x.ndjson"
    file.write_text("".join(form % text + "\n" for form in forms for text in texts), "utf-8")
    found = _skipping(spark_engine, tmp_path, file, ReadStepNdJson(ddl_schema=schema))
    rows = len(good)
    assert found.kept == list(good.values()) + [None] * rows * (len(forms) - 1)
    assert found.counts == {f"column '{column.split()[0]}'": wrong for column in schema}
    places = [int(each.split(":")[1]) for each in found.said]
    assert places == [
        form * len(texts) + rows + number
        for form in range(len(forms))
        for number in range(1, 1 + min(3, wrong))
    ]


def test_numbers_of_json_that_are_too_large_are_refused(spark_engine, tmp_path):
    file = tmp_path / "x.ndjson"
    file.write_text('{"x": 1.5}\n{"x": 1e400}\n{"x": "1.5"}\n', "utf-8")
    found = _skipping(spark_engine, tmp_path, file, ReadStepNdJson(ddl_schema=("x DOUBLE",)))
    assert found.kept == [1.5]
    assert found.counts == {"column 'x'": 2}


@pytest.mark.parametrize(("kind", "stored", "good", "bad"), PARQUET)
def test_a_value_of_parquet_is_converted_exactly_or_refused_with_its_row(
    spark_engine, tmp_path, kind, stored, good, bad
):
    file = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": pa.array([*good, *bad], stored)}), file)
    found = _skipping(spark_engine, tmp_path, file, ReadStepParquet(ddl_schema=(f"x {kind}",)))
    assert len(found.kept) == len(good)
    assert found.counts == {"column 'x'": len(bad)}
    assert found.said[0].startswith(f"x.parquet (row {len(good) + 1}): ")
    assert f"in column 'x' is not {kind}" in found.said[0]


def test_many_bad_records_are_counted_by_flaw_with_the_first_few_of_each(spark_engine, tmp_path):
    file = tmp_path / "x.csv"
    rows = ["1,2026-01-01"] + ["x,2026-01-01"] * 6 + ["1,2026"] * 5 + ["1"] * 4
    file.write_text("n,x\n" + "\n".join(rows) + "\n", "utf-8")
    read = ReadStepCsv(ddl_schema=("n INT", "x DATE"), header=True)
    found = _skipping(spark_engine, tmp_path, file, read)
    assert found.counts == {"column 'n'": 6, "column 'x'": 5, "the form of the record": 4}
    assert [each.split(": ")[0] for each in found.said] == [
        *(f"x.csv:{line}:1" for line in (3, 4, 5)),
        *(f"x.csv:{line}:3" for line in (9, 10, 11)),
        *(f"x.csv:{line}" for line in (14, 15, 16)),
    ]
