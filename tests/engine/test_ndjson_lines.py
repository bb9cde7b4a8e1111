"""No record of newline-delimited JSON vanishes."""

from pathlib import Path

import pytest

from odfbuild.engine.contract import Engine
from odfbuild.errors import IngestError
from odfbuild.odf.model import ReadStepNdJson
from tests.ingest.run_ingest import ingest

pytestmark = pytest.mark.spark

READ = ReadStepNdJson(ddl_schema=("city STRING", "n INT"))


def test_a_line_with_two_objects_is_refused_with_its_place(
    spark_engine: Engine, tmp_path: Path
) -> None:
    file = tmp_path / "rows.ndjson"
    file.write_text('{"city": "a", "n": 1}\n{"city": "b", "n": 2} {"city": "c", "n": 3}\n')
    with pytest.raises(IngestError) as caught:
        ingest(spark_engine, tmp_path, file, READ)
    assert caught.value.code == "E0424"
    assert caught.value.location is not None
    assert (caught.value.location.line, caught.value.location.column) == (2, 23)


def test_braces_inside_text_are_no_second_object(spark_engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "rows.ndjson"
    file.write_text('{"city": "} {", "n": 1}\n')
    _, table = ingest(spark_engine, tmp_path, file, READ)
    assert table["city"].to_pylist() == ["} {"]


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ('[{"city": "b", "n": 2}]', 1),
        ('{"city": "b", "n": 2},', 22),
        ('{"city": "b", "n": 2},{"city": "c", "n": 3}', 22),
        ('{"city": "b", "n": 2}]', 22),
    ],
)
def test_a_line_that_is_not_one_object_is_refused_with_its_place(
    line: str, column: int, spark_engine: Engine, tmp_path: Path
) -> None:
    file = tmp_path / "rows.ndjson"
    file.write_text(f'{{"city": "a", "n": 1}}\r\n\r\n{line}\r\n{{"city": "d", "n": 4}}')
    with pytest.raises(IngestError) as caught:
        ingest(spark_engine, tmp_path, file, READ)
    assert caught.value.code == "E0424"
    assert caught.value.location is not None
    assert (caught.value.location.line, caught.value.location.column) == (3, column)


def test_an_array_of_objects_inside_an_object_is_part_of_the_record(
    spark_engine: Engine, tmp_path: Path
) -> None:
    file = tmp_path / "rows.ndjson"
    file.write_text('{"city": "a", "of": [{"x": 1},{"x": 2}]}\n{"city": "b", "of": [ {"x": 3}]}')
    _, table = ingest(spark_engine, tmp_path, file, READ)
    assert table["city"].to_pylist() == ["a", "b"]
