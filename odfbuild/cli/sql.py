"""`odfbuild sql`."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import Context

if TYPE_CHECKING:
    from odfbuild.engine.contract import EngineResult


class AnswerFormat(StrEnum):
    """Form of an answer."""

    text = "text"
    csv = "csv"
    json = "json"
    jsonl = "jsonl"
    parquet = "parquet"


_SHOWN = 100
"""Rows of a table on the terminal, if nobody says how many."""


def sql(
    context: typer.Context,
    query: Annotated[
        str | None, typer.Argument(metavar="[QUERY]", help="The query, or - to read it from stdin.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="Read the query from this file.")
    ] = None,
    history: Annotated[
        bool,
        typer.Option("--history", help="All records ever committed, with the system columns."),
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, help="At most so many rows (default: 100 as text)."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the answer to this file.")
    ] = None,
    format: Annotated[
        AnswerFormat | None,
        typer.Option("--format", help="Form of the answer (default: by the file's ending, text)."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Short for --format json.")] = False,
) -> int:
    """Ask committed datasets a question in Spark SQL; commits nothing.

    Datasets are tables by their names. They show what they say now, with retractions and
    corrections carried out; --history shows every record.
    """
    from odfbuild.apply.ask import answered, understand

    state: Context = context.obj
    text, name = _query(query, file)
    form = _form(AnswerFormat.json if as_json else format, out)
    shown = limit or (_SHOWN if form is AnswerFormat.text and out is None else None)
    # One more than is shown tells whether there are more.
    wanted = shown + 1 if shown is not None and limit is None else shown
    workspace = state.workspace()
    question = understand(text, workspace.aliases())
    with answered(
        workspace, question, state.start_engine, history=history, limit=wanted, name=name
    ) as found:
        _show(state, found, form, out, shown)
    return 0


def _query(query: str | None, file: Path | None) -> tuple[str, str]:
    """The query, and what it is called in messages."""
    if (query is None) == (file is None):
        raise typer.BadParameter("give a query, or a file with one", param_hint="QUERY")
    try:
        if file is not None:
            return file.read_text(encoding="utf-8"), str(file)
        return (sys.stdin.read(), "stdin") if query == "-" else (str(query), "query")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"cannot be read: {error}", param_hint="--file") from None


def _form(format: AnswerFormat | None, out: Path | None) -> AnswerFormat:
    if format is not None or out is None:
        return format or AnswerFormat.text
    try:
        return AnswerFormat(out.suffix.removeprefix("."))
    except ValueError:
        raise typer.BadParameter(
            f"its ending tells no format: name it .csv, .json, .jsonl or .parquet, "
            f"or say --format, to write {out}",
            param_hint="--out",
        ) from None


def _show(
    state: Context, found: EngineResult, form: AnswerFormat, out: Path | None, shown: int | None
) -> None:
    from odfbuild.errors import EnvironmentProblem
    from odfbuild.report.answer import render_answer, write_answer

    assert found.schema is not None
    if form is AnswerFormat.text and out is None:
        state.console.result(render_answer(found.parts, found.schema, shown))
        return
    try:
        if out is None:
            write_answer(found.parts, found.schema, form, sys.stdout.buffer)
            return
        staged = out.with_name(f".{out.name}.part")
        try:
            with staged.open("wb") as to:
                write_answer(found.parts, found.schema, form, to)
            staged.replace(out)
        finally:
            staged.unlink(missing_ok=True)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--format") from None
    except OSError as error:
        raise EnvironmentProblem(
            f"{out} cannot be written: {error.strerror}",
            code="E0910",
            help="give a file in a folder that exists and that you may write to",
        ) from None
    state.console.note(f"Wrote {out}.")
