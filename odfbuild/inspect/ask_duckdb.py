"""Answer questions in DuckDB, which starts in milliseconds.

For looking only: the dialect is DuckDB's, nothing is committed and nothing is proven. A question
reads the slices of its datasets and nothing else: no other file, no network, no extension, and it
cannot change its settings. Only a SELECT is a question.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.engine.contract import EngineResult
from odfbuild.engine.settings import QUESTION_SECONDS, EngineSettings, duckdb_memory, in_force
from odfbuild.errors import Location, OdfbuildError, QueryError, RecordsError
from odfbuild.exchange.tables.pruning import part_with
from odfbuild.inspect.ask import QueryOptions, Question, Sources, as_asked, at_heads
from odfbuild.inspect.asked_values import asked_values
from odfbuild.odf.schema.arrow_form import read_schema
from odfbuild.records.duckdb_views import connect, literal, quote
from odfbuild.records.facts import facts_in
from odfbuild.records.facts import valid_at as true_at
from odfbuild.records.pin import View
from odfbuild.records.records import Records, records_of
from odfbuild.store.disposable import scratch_folder
from odfbuild.wording import did_you_mean

if TYPE_CHECKING:
    import duckdb

    from odfbuild.odf.chain.projection import Projection
    from odfbuild.odf.timestamp import Timestamp
    from odfbuild.project.tables import Table
    from odfbuild.store.workspace import Workspace

_T = TypeVar("_T")

_BATCH_ROWS = 65_536
_INTERRUPTED_SECONDS = 0.1
ENGINE = b"odfbuild.engine"
"""In the metadata of an answer's schema: what answered."""
_EXPLAIN = "EXPLAIN\n"
_SPARK = "`--engine spark` answers in Spark SQL"


@contextmanager
def answered_by_duckdb(
    workspace: Workspace,
    question: Question,
    settings: EngineSettings,
    sources: Sources | None = None,
    tables: Sequence[Table] = (),
    **options: Unpack[QueryOptions],
) -> Iterator[EngineResult]:
    """The answer as a Parquet file that is gone afterwards, as `ask.answered` gives it.

    Where one of `tables` has an index on what is asked for, only those of its files are read.

    `question` has the names of datasets in double quotes. Raises `RecordsError` E1206 for a query
    that DuckDB cannot answer, E1207 for one that is not allowed, E1208 for one that takes more
    memory or time than `settings` grant.
    """
    settings = in_force(settings)
    name = options.get("name", "query")
    sources = sources or at_heads(workspace, question)
    with scratch_folder(workspace.cache, "query") as folder:
        memory = duckdb_memory(settings)
        with connect(memory_limit=memory, temp_directory=str(folder / "spill")) as connection:
            _show(connection, workspace, question, sources, tables, options)
            write = partial(
                _write, connection, question.sql, options.get("limit"), folder / "answer"
            )
            try:
                found = _within(settings.question_seconds, connection, write)
            except OdfbuildError as error:
                raise as_asked(error, question, name) from None
            except _errors() as error:
                told = _told(error, settings, memory, question.sql, sources)
                raise as_asked(told, question, name) from None
        yield found


def _within(seconds: float, connection: duckdb.DuckDBPyConnection, work: Callable[[], _T]) -> _T:
    """What `work` gives; it is interrupted behind `seconds`, and by whoever presses Ctrl-C.

    In a thread of its own, because Python takes no signal while DuckDB computes.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="question") as pool:
        done = pool.submit(work)
        try:
            wait([done], seconds)
        finally:
            # Once is not enough: between two statements there is nothing to interrupt.
            while not done.done():
                connection.interrupt()
                wait([done], _INTERRUPTED_SECONDS)
        return done.result()


def _show(
    connection: duckdb.DuckDBPyConnection,
    workspace: Workspace,
    question: Question,
    sources: Sources,
    tables: Sequence[Table],
    options: QueryOptions,
) -> None:
    """Make the views of a question, and close the door behind it."""
    view: View = "history" if options.get("history") else "current"
    shown = {
        name: records_of(workspace, source.name, source.state, view=view)
        for name, source in sources.items()
        if source.state.schema is not None
    }
    if not shown:
        raise QueryError(
            f"'{next(iter(sources))}' has no columns yet",
            code="E0580",
            help="run `odfbuild apply` first",
        )
    moment = options.get("valid_at")
    asked = asked_values(question.sql, shown) if tables and moment is None else {}
    files: list[str] = []
    for name, records in shown.items():
        usable = name in asked and records.shown is None  # a table shows what others may see
        part = part_with(tables, records, asked[name]) if usable else None
        if part is not None:
            part.duckdb_view(connection, name)
            files += map(literal, map(str, part.paths))
            continue
        if moment is None:
            records.duckdb_view(connection, name)
        else:
            _show_true_at(connection, name, records, moment)
        files += [literal(str(each)) for each in records.stored.files]
    connection.execute(
        f"SET allowed_paths = [{', '.join(files)}];"
        # As Spark sorts; and a name is never that of a variable of this program.
        "SET default_null_order = 'nulls_first_on_asc_last_on_desc';"
        "SET python_enable_replacements = false;"
        "SET enable_external_access = false; SET lock_configuration = true"
    )


def _show_true_at(
    connection: duckdb.DuckDBPyConnection, name: str, records: Records, moment: Timestamp
) -> None:
    stored, everything = records.stored, f"{name} (all)"
    records.history().duckdb_view(connection, everything)
    facts = facts_in(stored.files, stored.vocab)
    connection.register("__odf_true", pa.table({"offset": true_at(facts, moment.millis)}))
    connection.execute(
        f"CREATE TABLE {quote(f'{name} (true)')} AS FROM __odf_true;"
        f"CREATE VIEW {quote(name)} AS SELECT {', '.join(map(quote, records.schema.names))}"
        f" FROM {quote(everything)} WHERE {quote(stored.vocab.offset)} IN"
        f' (SELECT "offset" FROM {quote(f"{name} (true)")})'
    )
    connection.unregister("__odf_true")


def _write(
    connection: duckdb.DuckDBPyConnection, sql: str, limit: int | None, file: Path
) -> EngineResult:
    import duckdb

    statements = connection.extract_statements(sql)
    if len(statements) != 1 or statements[0].type.name != "SELECT":
        raise RecordsError(
            "a question is one SELECT: nothing else is allowed",
            code="E1207",
            help="write one query that begins with SELECT, WITH or FROM",
        )
    # Tells mistakes with their places, which a relation does not.
    connection.execute(f"{_EXPLAIN}{sql}")
    answer = connection.sql(sql)
    twice = {each for each in answer.columns if answer.columns.count(each) > 1}
    if twice:
        raise RecordsError(
            f"the result has several columns '{min(twice)}'",
            code="E1206",
            help="give each column a name of its own, with AS",
        )
    kinds = list(map(str, answer.types))
    with answer.to_arrow_reader(_BATCH_ROWS) as reader:
        engine = {ENGINE: f"DuckDB {duckdb.__version__}"}
        schema = pa.schema(list(map(_field, reader.schema, kinds)), engine)
        with pq.ParquetWriter(file, schema) as writer:
            missing = limit
            for batch in reader:
                writer.write_batch(batch.slice(0, missing).cast(schema))
                if missing is not None and (missing := missing - batch.num_rows) <= 0:
                    break
    return EngineResult(parts=(file,), schema=schema)


def _field(field: pa.Field, kind: str) -> pa.Field:
    """The sum of integers is one again, as in Spark: too large ones are an error."""
    return field.with_type(pa.int64()) if kind == "HUGEINT" else field


def _errors() -> tuple[type[Exception], ...]:
    import duckdb

    return (duckdb.Error, pa.ArrowInvalid, pa.ArrowNotImplementedError)


def _told(
    error: Exception, settings: EngineSettings, memory: str, sql: str, sources: Sources
) -> OdfbuildError:
    """What DuckDB says, as an error of ours with its place in the query."""
    kind, said = type(error).__name__, str(error)
    first = re.sub(r"^[\w ]+ Error: ", "", said.split("\n", maxsplit=1)[0])
    if kind == "InterruptException":
        return RecordsError(
            f"the question took longer than {settings.question_seconds:g} s",
            code="E1208",
            help="ask for less, or raise `engine.questionSeconds` in odfbuild.yaml, or "
            f"{QUESTION_SECONDS}",
        )
    if kind == "OutOfMemoryException":
        return RecordsError(
            f"the question needs more than {memory} of memory",
            code="E1208",
            notes=(first,),
            help="ask for less, or raise `engine.memory` in odfbuild.yaml",
        )
    place = _place(said, sql)
    if kind == "PermissionException":
        return RecordsError(
            "a question reads datasets and nothing else: no files, no network, no extensions",
            code="E1207",
            location=place,
            notes=(first,),
            help="name the dataset to read; `odfbuild ls` lists them",
        )
    column = re.search(r'^Referenced column "(.+)" not found| a column named "(.+)"', first)
    if column is not None:
        return _no_column(column[1] or column[2], place, sources)
    if _quotes(place) == "`":
        return RecordsError(
            f"DuckDB cannot answer: {first}",
            code="E1206",
            location=place,
            help=f"write names in double quotes, or names of datasets without quotes; {_SPARK}",
        )
    hint = re.search(r"^(?:Did you mean|Candidate bindings): .*", said, re.M)
    return RecordsError(
        f"DuckDB cannot answer: {first}",
        code="E1206",
        location=place,
        notes=(hint[0],) if hint else (),
        help=f"the dialect is DuckDB's (docs/sql.md lists differences); {_SPARK}",
    )


def _no_column(name: str, place: Location | None, sources: Sources) -> RecordsError:
    schemas = [each.state.schema for each in sources.values() if each.state.schema]
    columns = [field.name for schema in schemas for field in read_schema(schema)]
    otherwise = f"the columns are: {', '.join(dict.fromkeys(columns))}"
    text = f"text is in single quotes: '{name}'" if _quotes(place) == '"' else None
    return RecordsError(
        f"there is no column '{name}'",
        code="E1206",
        location=place,
        help=text or did_you_mean(name, columns, otherwise),
    )


def _quotes(place: Location | None) -> str:
    """The first character of what is wrong."""
    if place is None or place.snippet is None or place.column is None:
        return ""
    return place.snippet[place.column - 1 : place.column]


def _place(said: str, sql: str) -> Location | None:
    """The line, and the column of what is underlined; long lines are shown in part."""
    found = re.search(r"^LINE (\d+): (.*)\n( *)(\^+)", said, re.M)
    if found is None:
        return None
    line = int(found[1])
    if found[2] not in sql.split("\n")[line - 1 : line]:
        line -= _EXPLAIN.count("\n")
    if found[2].startswith("..."):
        return Location("query", line)
    column = len(found[3]) - len(f"LINE {found[1]}: ") + 1
    return Location("query", line, column, found[2], len(found[4]))


def export_views(
    workspace: Workspace, states: Mapping[str, Projection], file: Path, *, history: bool = False
) -> list[Records]:
    """Write a new DuckDB file with a view for each dataset, and a table of what they were read at.

    Views name the slices by absolute paths; they show the datasets as they are now. Returns what
    has a view.
    """
    view: View = "history" if history else "current"
    shown = [
        records_of(workspace, name, state, view=view, audience="nobody")
        for name, state in states.items()
        if state.schema is not None
    ]
    pins: list[tuple[Any, ...]] = []
    with connect(str(file)) as connection:
        for records in shown:
            records.duckdb_view(connection, records.pin.dataset, lasting=True)
            pin = records.pin
            pins.append((pin.dataset, str(pin.dataset_id), str(pin.block), str(pin)))
        connection.execute(
            "CREATE TABLE odfbuild_pins (dataset VARCHAR, did VARCHAR, block VARCHAR,"
            " citation VARCHAR)"
        )
        for each in pins:
            connection.execute("INSERT INTO odfbuild_pins VALUES (?, ?, ?, ?)", each)
    return shown
