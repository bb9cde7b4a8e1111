"""Sources that Spark cannot read as they are, and no others, are refused."""

from pathlib import Path

import pytest

from odfbuild.engine.contract import Engine
from odfbuild.engine.spark.reading.json_depth import DEEPEST
from odfbuild.errors import IngestError
from odfbuild.odf.model import ReadStepJson, ReadStepNdJson, ReadStepParquet
from tests.ingest.run_ingest import ingest

pytestmark = pytest.mark.spark

READ = ReadStepNdJson(ddl_schema=("a STRING",))


def nested(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


def refused(engine: Engine, folder: Path, content: str, read: ReadStepNdJson | ReadStepJson) -> str:
    file = folder / "rows"
    file.write_text(content)
    with pytest.raises(IngestError) as caught:
        ingest(engine, folder, file, read)
    assert caught.value.help
    assert caught.value.location is not None
    return f"{caught.value.code} {caught.value.location.line}"


def test_a_record_may_be_nested_and_not_without_end(spark_engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "rows"
    file.write_text(nested(DEEPEST) + "\n" + '{"a": "' + "[" * 3 * DEEPEST + '"}\n')
    _, table = ingest(spark_engine, tmp_path, file, READ)
    assert table["a"][0].as_py() == nested(DEEPEST - 1)
    assert table["a"][1].as_py() == "[" * 3 * DEEPEST
    deep = f'{{"a": 1}}\n{nested(DEEPEST + 1)}\n'
    assert refused(spark_engine, tmp_path, deep, READ) == "E0623 2"
    assert refused(spark_engine, tmp_path, deep, ReadStepNdJson()) == "E0623 2"
    for levels in (500, 5000):
        deep = "[" * levels + "]" * levels
        assert refused(spark_engine, tmp_path, deep, ReadStepJson()) == "E0623 None"


def test_bytes_that_are_no_text_make_no_text(spark_engine: Engine, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = tmp_path / "rows"
    pq.write_table(pa.table({"a": [b"x", b"\xff"]}), file)
    with pytest.raises(IngestError, match="'FF' in column 'a' is not STRING"):
        ingest(spark_engine, tmp_path, file, ReadStepParquet(ddl_schema=("a STRING",)))
