"""`odfbuild sql`."""

from __future__ import annotations

import sys
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.gone import tell_gone
from odfbuild.cli.options import AsOfOption, parse_time
from odfbuild.cli.output_file import replace_file, write_json, write_output
from odfbuild.cli.questions import (
    SHOWN,
    EngineOption,
    HistoryOption,
    answer,
    engine_of,
    show_table,
    sources_of,
    understood,
)
from odfbuild.engine.settings import AnsweredBy
from odfbuild.errors import OdfbuildError, RecordsError

if TYPE_CHECKING:
    from odfbuild.engine.contract import EngineResult
    from odfbuild.inspect.ask import QueryOptions, Question, Sources
    from odfbuild.odf.timestamp import Timestamp


_SHOWS = "odfbuild.report.records.answer"


class AnswerFormat(StrEnum):
    """Form of an answer."""

    text = "text"
    csv = "csv"
    json = "json"
    jsonl = "jsonl"
    parquet = "parquet"


def sql(
    state: Context,
    query: Annotated[
        str | None, typer.Argument(metavar="QUERY", help="The query, or - to read it from stdin.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="Read the query from this file.")
    ] = None,
    history: HistoryOption = False,
    as_of: AsOfOption = None,
    consistent: Annotated[
        bool,
        typer.Option(
            "--consistent",
            help="Read all datasets as they were at one moment: before a promotion, or after it.",
        ),
    ] = False,
    valid_at: Annotated[
        str | None,
        typer.Option("--valid-at", metavar="TIME", help="Show what was true at this event time."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, help="Maximum number of rows (default: 100 as text)."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the result to this file.")
    ] = None,
    format: Annotated[
        AnswerFormat | None,
        typer.Option("--format", help="Output format (default: from the file extension, or text)."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Short for --format json.")] = False,
    engine: EngineOption = None,
    export: Annotated[
        Path | None,
        typer.Option(
            "--export",
            metavar="FILE.duckdb",
            help="Write a DuckDB file with a view for each dataset, for other programs.",
        ),
    ] = None,
    prove: Annotated[
        Path | None,
        typer.Option(
            "--prove",
            metavar="FILE",
            help="Write a signed proof of the result to this file; others check it with "
            "`verify --proof`.",
        ),
    ] = None,
) -> int:
    """Query committed datasets in SQL.

    Without a query, on a terminal, it is a prompt, as `odfbuild shell`. Dataset names are table
    names. Tables show the current state, with retractions and corrections
    applied; --history shows all records. --as-of queries the state known at a system time,
    --valid-at the state that was true at an event time; both can be combined.
    """
    if export is not None:
        others = (valid_at, limit, out, format, as_json, prove, consistent, engine)
        if query is not None or file is not None or any(others):
            raise typer.BadParameter(
                "it writes all datasets, without a query; it goes with --history and --as-of",
                param_hint="--export",
            )
        return _export(state, export, history, as_of)
    if as_of and consistent:
        raise typer.BadParameter("--as-of is one moment already", param_hint="--consistent")
    of_query = any((consistent, valid_at, limit, out, format, as_json, prove))
    if query is None and file is None and not of_query and state.console.interactive:
        from odfbuild.cli.shell import converse

        return converse(state, history=history, as_of=as_of, engine=engine)
    text, name = _query(query, file)
    workspace = state.workspace()
    by = engine_of(state, engine)
    question = understood(workspace, text, by)
    sources = sources_of(workspace, question, as_of, consistent=consistent)
    if prove is not None:
        if any((limit, out, format, as_json, valid_at)):
            raise typer.BadParameter(
                "it writes the whole answer, as JSON; write LIMIT or a condition into the query",
                param_hint="--prove",
            )
        if by is AnsweredBy.DUCKDB:
            raise _cannot_prove()
        return _prove(state, question, sources, history, prove)
    form = _form(AnswerFormat.json if as_json else format, out)
    shown = limit or (SHOWN if form is AnswerFormat.text and out is None else None)
    # One more than is shown tells whether there are more.
    wanted = shown + 1 if shown is not None and limit is None else shown
    options: QueryOptions = {
        "history": history,
        "limit": wanted,
        "valid_at": _valid_at(valid_at, history),
        "name": name,
    }
    # While the engine works, there is time to import what shows the answer.
    Thread(target=import_module, args=(_SHOWS,), name="imports", daemon=True).start()
    with answer(state, question, sources, by, options) as found:
        _show(state, found, form, out, shown)
    tell_gone(state.console, workspace, dict.fromkeys(each.name for each in sources.values()))
    return 0


def _cannot_prove() -> OdfbuildError:
    return RecordsError(
        "answers of DuckDB cannot be proven",
        code="E1209",
        notes=("a proof names the dialect of its query, which has to give the same rows later",),
        help="ask Spark: `odfbuild sql --engine spark --prove FILE QUERY`",
    )


def _export(state: Context, file: Path, history: bool, as_of: str | None) -> int:
    from odfbuild.extras import require_pyarrow
    from odfbuild.store.as_of import states_at
    from odfbuild.survey.names import moment_in
    from odfbuild.wording import count

    require_pyarrow("DuckDB files")
    from odfbuild.inspect.ask_duckdb import export_views

    workspace = state.workspace()
    if as_of is None:
        states = workspace.projections()
    else:
        states = states_at(workspace, moment_in(workspace, as_of))
    shown = replace_file(file, lambda new: export_views(workspace, states, new, history=history))
    state.console.result(f"Wrote {file}: {count(len(shown), 'view')}, and a table of their pins.")
    return 0


def _valid_at(text: str | None, history: bool) -> Timestamp | None:
    if text is None:
        return None
    if history:
        raise typer.BadParameter(
            "--history shows all records; say WHERE event_time <= … instead",
            param_hint="--valid-at",
        )
    return parse_time(text, "--valid-at")


def _prove(state: Context, question: Question, sources: Sources, history: bool, file: Path) -> int:
    from odfbuild.inspect.proof import prove
    from odfbuild.wording import count

    document = prove(state.workspace(), question, state.start_engine, sources, history=history)
    write_json(file, document)
    signer = document["proof"]["verificationMethod"]
    rows = count(len(document["output"]["data"]), "row")
    state.console.result(f"Wrote {file}: {rows}, signed by {signer}.")
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
    from odfbuild.report.records.answer import engine_of_answer, write_answer

    assert found.schema is not None
    if form is AnswerFormat.text and out is None:
        show_table(state, found, shown)
        return
    if other := engine_of_answer(found.schema):
        state.console.note(f"Answered by {other}.")
    try:
        if out is None:
            write_answer(found.parts, found.schema, form, state.console.bytes_out())
            return
        schema, parts = found.schema, found.parts
        write_output(out, lambda to: write_answer(parts, schema, form, to))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--format") from None
    state.console.note(f"Wrote {out}.")
