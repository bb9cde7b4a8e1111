"""Questions in SQL, as `sql` and `shell` ask them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.engine.settings import AnsweredBy
from odfbuild.extras import require_pyarrow

if TYPE_CHECKING:
    from odfbuild.engine.contract import Engine, EngineResult
    from odfbuild.inspect.ask import QueryOptions, Question, Sources
    from odfbuild.store.workspace import Workspace

SHOWN = 100
"""Rows of a table on the terminal, if nobody says how many."""

HistoryOption = Annotated[
    bool, typer.Option("--history", help="Query all committed records, with the system columns.")
]
EngineOption = Annotated[
    AnsweredBy | None,
    typer.Option(
        "--engine",
        help="What answers: Spark, or DuckDB, which answers at once and has another dialect "
        "(default: `engine.questions` in odfbuild.yaml, or spark).",
    ),
]


def engine_of(state: Context, given: AnsweredBy | None) -> AnsweredBy:
    """What answers: as the option says, or odfbuild.yaml; E0903 where DuckDB's libraries lack."""
    by = given or state.config().engine.questions
    if by is AnsweredBy.DUCKDB:
        require_pyarrow("questions")
    return by


def understood(workspace: Workspace, text: str, by: AnsweredBy) -> Question:
    """The question that a text asks in the dialect of an engine."""
    from odfbuild.inspect.ask import understand

    return understand(text, workspace.aliases(), by.quote)


def sources_of(
    workspace: Workspace, question: Question, as_of: str | None, *, consistent: bool = False
) -> Sources:
    """The datasets of a question, now or at a moment."""
    from odfbuild.inspect.ask import at_heads, at_moment, at_one_moment
    from odfbuild.survey.names import moment_in

    if as_of is not None:
        return at_moment(workspace, question, moment_in(workspace, as_of))
    return at_one_moment(workspace, question) if consistent else at_heads(workspace, question)


def answer(
    state: Context,
    question: Question,
    sources: Sources,
    by: AnsweredBy,
    options: QueryOptions,
    spark: Callable[[], Engine] | None = None,
) -> AbstractContextManager[EngineResult]:
    """The answer of an engine; `spark` gives one that goes on running."""
    workspace = state.workspace()
    state.tell_of_hidden(workspace, (each.name for each in sources.values()))
    if by is AnsweredBy.DUCKDB:
        from odfbuild.inspect.ask_duckdb import answered_by_duckdb
        from odfbuild.project.tables import declared_tables

        config = state.config()
        tables = declared_tables(config, question.datasets)
        return answered_by_duckdb(workspace, question, config.engine, sources, tables, **options)
    from odfbuild.inspect.ask import answered, asked_of

    if spark is not None:
        return asked_of(spark, workspace, question, sources, **options)
    return answered(workspace, question, state.start_engine, sources, **options)


def show_table(state: Context, found: EngineResult, shown: int | None) -> None:
    """Print an answer, and which engine gave it where that was not Spark."""
    from odfbuild.report.records.answer import render_answer

    assert found.schema is not None
    state.console.result(render_answer(found.parts, found.schema, shown))
