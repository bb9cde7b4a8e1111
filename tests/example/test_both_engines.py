"""Spark and DuckDB give the same rows for the example, and so does the dataset object."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
import pytest

from odfbuild import Project
from odfbuild.engine.contract import Engine
from tests.apply.in_process import share
from tests.docs.console import ROOT, commands
from tests.example.odfbuild_project import ExampleProject

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, spark_engine: Engine) -> Iterator[Project]:
    """The example, and April after it: aggregates were corrected."""
    built = ExampleProject.applied(tmp_path_factory)
    copied = built.copy(tmp_path_factory.mktemp("both") / "project")
    with pytest.MonkeyPatch.context() as patch:
        share(spark_engine, patch)
        made = Project(copied.root)
        copied.next_month()
        made.apply()
        yield made


def questions() -> list[tuple[str, bool]]:
    """The questions of docs/sql.md, and whether they are about the history."""
    found = []
    for command in commands(ROOT / "docs" / "sql.md"):
        asked = re.search(r'odfbuild sql.*"(SELECT[^"]*)"', command.text, re.DOTALL)
        if asked is not None:
            found.append((asked[1], "--history" in command.text))
    return found


def test_all_questions_of_the_documentation_have_the_same_rows_on_both_engines(
    project: Project,
) -> None:
    asked = questions()
    assert len(asked) >= 8
    for query, history in asked:
        both = [
            project.sql(query, history=history, engine="spark"),
            project.sql(query, history=history, engine="duckdb"),
        ]
        assert both[0].column_names == both[1].column_names, query
        rows = [[tuple(map(str, row.values())) for row in each.to_pylist()] for each in both]
        assert rows[0] == rows[1], query


def test_every_dataset_shows_what_spark_shows(project: Project) -> None:
    corrected = 0
    for name in project.datasets():
        dataset = project[name]
        expected = project.sql(f"SELECT * FROM {name}", engine="spark")
        found = dataset.to_arrow()
        assert found.schema.names == expected.schema.names
        assert dataset.count() == expected.num_rows
        keys = [(column, "ascending") for column in expected.column_names]
        assert _plain(found).sort_by(keys).equals(_plain(expected).sort_by(keys)), name
        corrected += dataset.history.count() > dataset.count()
    assert corrected >= 1


def _plain(table: pa.Table) -> pa.Table:
    return table.replace_schema_metadata(None).cast(
        pa.schema([(f.name, f.type) for f in table.schema])
    )
