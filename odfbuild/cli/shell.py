"""`odfbuild shell`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from odfbuild.cli.context import Context
from odfbuild.cli.options import AsOfOption
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
from odfbuild.errors import OdfbuildError, PlanError, QueryError, missing_extra
from odfbuild.wording import did_you_mean

if TYPE_CHECKING:
    from odfbuild.engine.lazy import LazyEngine

Columns = Mapping[str, Mapping[str, str]]
"""Columns by name of dataset: their types, in the words of Arrow, by name."""

HELP = """\
A question ends with a semicolon: SELECT * FROM name LIMIT 10;
.datasets        names of all datasets
.columns NAME    columns of a dataset and their types
.help            this text
.quit            the end, as Ctrl-D"""
_COMMANDS = (".datasets", ".columns", ".help", ".quit")
_WORDS = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "HAVING", "LIMIT", "JOIN", "LEFT JOIN"),
    *("ON", "USING", "AS", "AND", "OR", "NOT", "IN", "IS NULL", "IS NOT NULL", "BETWEEN", "LIKE"),
    *("CASE", "WHEN", "THEN", "ELSE", "END", "DISTINCT", "UNION ALL", "WITH", "DESC", "OVER"),
    *("count(*)", "sum", "avg", "min", "max", "coalesce", "CAST", "PARTITION BY"),
)


def shell(
    state: Context,
    history: HistoryOption = False,
    as_of: AsOfOption = None,
    engine: EngineOption = None,
) -> int:
    """Query committed datasets at a prompt, which completes names and keeps a history.

    Questions end with a semicolon, and may have several lines. Without a terminal, questions are
    read from standard input.
    """
    return converse(state, history=history, as_of=as_of, engine=engine)


def converse(state: Context, *, history: bool, as_of: str | None, engine: AnsweredBy | None) -> int:
    """Answer questions until there are no more; an error ends only its question."""
    from odfbuild.engine.lazy import LazyEngine

    by = engine_of(state, engine)
    columns = _columns(state, history)
    spark = LazyEngine(state.start_engine)
    failed = False
    try:
        for text in _questions(state, columns):
            try:
                if text.startswith("."):
                    state.console.result(_command(text, columns))
                else:
                    _answer(state, spark, text, by, history, as_of)
            except OdfbuildError as error:
                state.console.error(*error.apart())
                failed = True
            except KeyboardInterrupt:
                # A question in Spark goes on in its JVM: that ends with the shell.
                if by is not AnsweredBy.DUCKDB or not state.console.interactive:
                    raise
                state.console.note("Interrupted.")
    finally:
        spark.stop()
    return int(failed and not state.console.interactive)


def completions(text: str, columns: Columns) -> list[tuple[str, int]]:
    """What may stand where `text` ends, and how many characters of it that replaces.

    Columns of the datasets that the text names come first, then datasets, then words of SQL.
    """
    found = re.search(r"[\w./-]*$", text)
    begun = (found[0] if found else "").lower()
    if not begun:
        return []
    named = [name for name in columns if name.lower() in text.lower()[: len(text) - len(begun)]]
    known = [*(column for name in named for column in columns[name]), *columns, *_WORDS]
    fitting = dict.fromkeys(each for each in known if each.lower().startswith(begun))
    return [(each, len(begun)) for each in fitting]


def _answer(
    state: Context,
    spark: LazyEngine,
    text: str,
    by: AnsweredBy,
    history: bool,
    as_of: str | None,
) -> None:
    workspace = state.workspace()
    question = understood(workspace, text, by)
    sources = sources_of(workspace, question, as_of)
    options: Any = {"history": history, "limit": SHOWN + 1}
    with answer(state, question, sources, by, options, spark.get) as found:
        show_table(state, found, SHOWN)


def _command(text: str, columns: Columns) -> str:
    verb, _, rest = text.strip().partition(" ")
    asked = rest.strip().rstrip(";")
    if verb == ".help":
        return HELP
    if verb == ".datasets":
        return "\n".join(columns)
    if verb != ".columns":
        raise PlanError(
            f"there is no command '{verb}'",
            code="E0376",
            help=did_you_mean(verb, _COMMANDS, "`.help` lists the commands"),
        )
    name = next((each for each in columns if each.lower() == asked.lower()), None)
    if name is None:
        raise QueryError(
            f"there is no dataset '{asked}'" if asked else "`.columns` needs the name of a dataset",
            code="E0580",
            help=did_you_mean(asked, list(columns), "`.datasets` lists the datasets"),
        )
    width = max(map(len, columns[name]), default=0)
    return "\n".join(f"{column:<{width}}  {kind}" for column, kind in columns[name].items())


def _columns(state: Context, history: bool) -> Columns:
    """What questions can use; the system columns are there in the history only."""
    from odfbuild.odf.schema.arrow_form import read_schema
    from odfbuild.odf.vocabulary import vocabulary_of

    found: dict[str, dict[str, str]] = {}
    for name, each in state.workspace().readable().items():
        vocab = vocabulary_of(each.vocab)
        hidden = () if history else (vocab.offset, vocab.operation_type, vocab.system_time)
        fields = read_schema(each.schema) if each.schema else ()
        found[name] = {f.name: str(f.type) for f in fields if f.name not in hidden}
    return found


def _questions(state: Context, columns: Columns) -> Iterator[str]:
    """Each question without its semicolon, and each line that begins with a full stop."""
    read = _prompt(state, columns) if state.console.interactive else _line
    waiting = ""
    while (line := read(waiting)) is not None:
        if not waiting and line.strip() in (".quit", ".exit"):
            return
        if not waiting and line.startswith("."):
            yield line
            continue
        waiting += line + "\n"
        if waiting.rstrip().endswith(";"):
            yield waiting.rstrip().rstrip(";")
            waiting = ""
        elif not waiting.strip():
            waiting = ""
    if waiting.strip():
        yield waiting.rstrip()


def _line(waiting: str) -> str | None:
    line = sys.stdin.readline()
    return line.rstrip("\n") if line else None


def _prompt(state: Context, columns: Columns) -> Callable[[str], str | None]:
    """Asks for a line on the terminal; `None` at the end."""
    try:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import Completer, Completion
        from prompt_toolkit.history import FileHistory
    except ModuleNotFoundError:
        raise missing_extra("duckdb", "prompts") from None
    from odfbuild.store.disposable import prepare_cache_folder

    class Names(Completer):
        def get_completions(self, document: Any, complete_event: Any) -> Iterator[Completion]:
            before = lines[0] + document.text_before_cursor
            for each, replaced in completions(before, columns):
                yield Completion(each, -replaced)

    cache = state.config().cache
    prepare_cache_folder(cache)
    lines = [""]
    asked: PromptSession[str] = PromptSession(
        history=FileHistory(str(cache / "shell-history")), completer=Names()
    )
    state.console.note("Questions end with a semicolon; .help shows more.")

    def ask(waiting: str) -> str | None:
        lines[0] = waiting
        while True:
            try:
                return asked.prompt("     …> " if waiting else "odfbuild> ")
            except KeyboardInterrupt:
                continue
            except EOFError:
                return None

    return ask
