"""Files that are said to have the same columns have those that Spark infers of the first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from odfbuild.engine.contract import IngestTask
from odfbuild.engine.spark.engine import SparkEngine
from odfbuild.engine.spark.reading.csv_options import csv_options
from odfbuild.engine.spark.reading.inference import csv_schema, ndjson_schema
from odfbuild.engine.spark.reading.same_columns import have_same_columns
from odfbuild.engine.spark.reading.source_text import SourceText
from odfbuild.odf.model import ReadStepCsv, ReadStepNdJson

INFERRED = ReadStepCsv(header=True, infer_schema=True)
NAMED = ReadStepCsv(header=True)
LINES = ReadStepNdJson()
ALIKE: dict[str, list[str]] = {
    "whole": ["0", "-1", "999999999", "2147483648", "-999999999999999999"],
    "fraction": ["0.0", "-0.0", "1.5", "9999999.999999", "1.0"],
    "day": ["2024-02-28", "1000-01-01", "2999-12-01"],
    "time": ["2024-02-28 00:00:00", "1000-01-01 23:59:59", "2999-12-01 02:30:00"],
    "text": ["a", "True story", "NaNs", "e5", "Infinite", "ä1", "d", "T", "z 2024-01-01", "UTC"],
}


def texts(folder: Path, contents: list[str]) -> list[SourceText]:
    found = []
    for number, content in enumerate(contents):
        (folder / str(number)).write_text(content)
        found.append(SourceText(folder / str(number)))
    return found


@pytest.mark.spark
def test_cells_of_one_form_have_one_type(spark_engine: SparkEngine, tmp_path: Path) -> None:
    most = max(map(len, ALIKE.values()))
    rows = [[cells[turn % len(cells)] for cells in ALIKE.values()] for turn in range(most)]
    header = ",".join(ALIKE)
    files = texts(tmp_path, [f"{header}\n{','.join(row)}\n,,,,\n" for row in rows])
    assert have_same_columns(files, INFERRED)
    options = csv_options(INFERRED, "tests")
    nothing = cast("IngestTask", None)
    with spark_engine.request("tests") as spark:
        schemas = [csv_schema(spark, nothing, INFERRED, each, options) for each in files]
    assert all(each == schemas[0] for each in schemas)
    assert len({field.dataType for field in schemas[0].fields}) == len(ALIKE)


@pytest.mark.spark
def test_members_of_one_form_have_one_type(spark_engine: SparkEngine, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"a": "x", "b": 1, "c": 1.5, "d": True},
        {"a": " ", "b": -(2**63), "c": 1e300, "d": False},
        {"a": "2024-01-01", "b": 2**63 - 1, "c": -0.0, "d": True},
    ]
    empty = json.dumps({"a": "", "b": None, "c": None, "d": None})
    files = texts(tmp_path, [f"{json.dumps(row)}\n{empty}\n" for row in rows])
    assert have_same_columns(files, LINES)
    options = {"mode": "PERMISSIVE", "lineSep": "\n", "allowNonNumericNumbers": "false"}
    with spark_engine.request("tests") as spark:
        schemas = [ndjson_schema(spark, cast("IngestTask", None), f, options) for f in files]
    assert all(each == schemas[0] for each in schemas)


@pytest.mark.parametrize(
    ("read", "one", "other"),
    [
        (NAMED, "a,b\n", "b,a\n"),
        (NAMED, "a,b\n", "a,b,c\n"),
        (NAMED, "a\n", "a,a\n"),
        (NAMED, "a\n", ""),
        (INFERRED, "a\n1\n", "a\n1.5\n"),
        (INFERRED, "a\n1\n", "a\n1\n1.5\n"),
        (INFERRED, "a\n1\n", "a\n\n"),
        (INFERRED, "a\n1\n", "a\n1,2\n"),
        (INFERRED, "a\nx\n", "a\ntrue\n"),
        (INFERRED, "a\nx\n", "a\nInf\n"),
        (INFERRED, "a\nx\n", "a\nT10:00\n"),
        (INFERRED, "a\n1\n", "a\n1234567890123456789\n"),
        (INFERRED, "a\n2024-01-01\n", "a\n2024-02-30\n"),
        (LINES, '{"a": 1}\n', '{"a": 1.5}\n'),
        (LINES, '{"a": 1}\n', '{"a": 9223372036854775808}\n'),
        (LINES, '{"a": 1}\n', '{"a": NaN}\n'),
        (LINES, '{"a": 1, "b": 1}\n', '{"b": 1, "a": 1}\n'),
        (LINES, '{"a": 1}\n', '{"a": 1, "a": 1}\n'),
        (LINES, '{"a": 1}\n', '{"a": null}\n'),
        (LINES, '{"a": 1}\n', '{"a": {"b": 1}}\n'),
        (LINES, '{"a": 1}\n', '{"a": 1\n'),
        (LINES, '{"a": 1}\n', "[1]\n"),
    ],
)
def test_files_of_which_that_is_not_sure_are_told(
    tmp_path: Path, read: ReadStepCsv | ReadStepNdJson, one: str, other: str
) -> None:
    assert have_same_columns(texts(tmp_path, [one, one]), read)
    assert not have_same_columns(texts(tmp_path, [one, other]), read)
