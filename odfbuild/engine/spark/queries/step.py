"""What a step of a transformation runs: its queries, over views of whole histories."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.engine.contract import TransformTask
from odfbuild.engine.spark.queries.findings import Step
from odfbuild.engine.spark.queries.modes import changelog
from odfbuild.engine.spark.queries.shared_states import shared_states
from odfbuild.engine.spark.queries.temporal import make_view, rewrite, versions_of
from odfbuild.engine.spark.results import small_jobs as few
from odfbuild.engine.spark.session.limits import files_read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from odfbuild.odf.model import TransformSql


def steps_of(transform: TransformSql) -> list[Step]:
    """The queries of a transformation in normal form."""
    tables = [table.name for table in transform.temporal_tables or ()]
    return [Step(step.alias, rewrite(step.query, tables)) for step in transform.queries or ()]


def history_views(spark: SparkSession, task: TransformTask, scratch: Path | None = None) -> None:
    """Make views of what inputs and their versions amount to.

    With a folder `scratch`, few records pass through it.
    """
    for each in task.inputs:
        changelog.history_view(spark, each, scratch)
    for table in versions_of(task.dataset, task.transform, task.inputs):
        make_view(spark, table)


def tuned(frame: DataFrame, task: TransformTask) -> set[Path]:
    """Set up the session for the files that a result is made of; returns them."""
    shared = shared_states(frame.sparkSession)
    files = files_read(frame, task, None if shared is None else shared.folder)
    few.tune(frame.sparkSession, files)
    return files
