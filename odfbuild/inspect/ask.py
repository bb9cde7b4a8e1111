"""Run a SQL query over committed records; commits nothing.

Datasets are relations by their names, `us.bts.flights`, with or without backticks. They show the
current state, with all retractions and corrections applied, or the whole history with the system
columns. Source: Open Data Fabric, "Engine Contract", raw query.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from odfbuild.engine.contract import InputSlices, QueryTask, SliceFile
from odfbuild.engine.lazy import LazyEngine
from odfbuild.errors import Location, OdfbuildError, QueryError
from odfbuild.odf.identity import identifier_of
from odfbuild.odf.schema.arrow_schema import schema_of
from odfbuild.odf.vocabulary import vocabulary_of
from odfbuild.records.facts import facts_in
from odfbuild.records.facts import valid_at as true_at
from odfbuild.records.personal.files import converted
from odfbuild.records.personal.shown import shown_of
from odfbuild.sql.sql_words import Quote, Word, words_of
from odfbuild.store.as_of import PointInTime, states_at
from odfbuild.store.disposable import scratch_folder
from odfbuild.store.moving_heads import consistent_heads
from odfbuild.values import Value
from odfbuild.wording import did_you_mean

if TYPE_CHECKING:
    from odfbuild.engine.contract import Engine, EngineFactory, EngineResult
    from odfbuild.odf.chain.projection import Projection
    from odfbuild.odf.timestamp import Timestamp
    from odfbuild.store.workspace import Workspace


class Question(Value):
    """A query whose relations are datasets.

    `sql` has their names in quotes; `asked` is what was written, and `quoted` the places in it
    (line and column from 1) where a quote came in. `names` gives the dataset of each name in it:
    `order_lines` is another one for `order-lines`.
    """

    asked: str
    sql: str
    names: Mapping[str, str]
    quoted: tuple[tuple[int, int], ...] = ()

    @property
    def datasets(self) -> tuple[str, ...]:
        """What it reads, each dataset once."""
        return tuple(dict.fromkeys(self.names.values()))


def understand(sql: str, aliases: Sequence[str], quote: Quote = "`") -> Question:
    """Find the datasets that a query names; `QueryError` E0580 when there is none.

    `quote` is what the dialect puts around names.

    Names of several parts count wherever they stand, those of one part where a word does: a
    dataset too many does no harm. With `_` for `-` and `.`, a name counts where no dataset has that
    very name, and it can be that of one dataset only.
    """
    words = words_of(sql, quote)
    known = {tuple(word.text for word in words_of(alias)): alias for alias in aliases}
    by_name = {alias.lower(): alias for alias in aliases}
    in_sql = _names_in_sql(aliases)
    longest = max(map(len, known), default=0)
    found: dict[str, str] = {}
    marks: list[int] = []
    at = 0
    while at < len(words):
        if words[at].text.startswith(quote):
            alias = by_name.get(words[at].name)
            length = 1
        else:
            alias, length = _longest_name(words, at, known, longest)
            if alias is not None and length > 1:
                marks += (words[at].start, words[at + length - 1].end)
        name = alias if alias is not None else words[at].name
        if alias is None and name in in_sql and not _is_part(words, at):
            alias = in_sql[name]
        if alias is not None:
            found[name] = alias
        at += length
    if not found:
        raise _reads_nothing(sql, words, aliases, quote)
    pieces = [sql[i:j] for i, j in zip([0, *marks], [*marks, len(sql)], strict=True)]
    quoted = tuple(
        (sql.count("\n", 0, mark) + 1, mark - sql.rfind("\n", 0, mark)) for mark in marks
    )
    return Question(sql, quote.join(pieces), found, quoted)


def _names_in_sql(aliases: Sequence[str]) -> dict[str, str]:
    """Datasets by names that SQL takes without quotes, where these are not names of others."""
    own = {alias.lower() for alias in aliases}
    names = [(identifier_of(alias).lower(), alias) for alias in aliases]
    times = Counter(name for name, _ in names)
    return {name: alias for name, alias in names if times[name] == 1 and name not in own}


class Source(Value):
    """What a question reads as a relation: a dataset of the workspace, as it was at a block."""

    name: str
    state: Projection


Sources = Mapping[str, Source]
"""By the names that the question gives them."""


def at_heads(workspace: Workspace, question: Question) -> Sources:
    """The datasets of a question as they are now."""
    return _as_called(question, workspace.projections(question.datasets))


def at_one_moment(workspace: Workspace, question: Question) -> Sources:
    """The datasets of a question as they are now, either all before a promotion or all after it.

    `QueryError` E0580 for one that exists only after it.
    """
    states = workspace.projections_at(consistent_heads(workspace))
    missing = sorted(set(question.datasets) - states.keys())
    if missing:
        raise QueryError(
            f"'{missing[0]}' does not exist before the promotion that is going on",
            code="E0580",
            help="run the query again after it, or without --consistent",
        )
    return _as_called(question, states)


def at_moment(workspace: Workspace, question: Question, moment: PointInTime) -> Sources:
    """The datasets of a question as they were; `QueryError` E0580 for one that did not exist."""
    states = states_at(workspace, moment, question.datasets)
    missing = sorted(set(question.datasets) - states.keys())
    if missing:
        raise QueryError(
            f"'{missing[0]}' did not exist at {moment}",
            code="E0580",
            help=f"`odfbuild log {missing[0]}` shows when it began",
        )
    return _as_called(question, states)


def _as_called(question: Question, states: Mapping[str, Projection]) -> Sources:
    """The states of datasets, by the names that the question gives them."""
    named = question.names.items()
    return {name: Source(dataset, states[dataset]) for name, dataset in named if dataset in states}


class QueryOptions(TypedDict, total=False):
    """How a question is answered.

    From the whole `history`; at most `limit` rows; only if `repeatable`, so that the same rows come
    the next time; as it was true at `valid_at`, an event time; `name` is the file of places in
    errors.
    """

    history: bool
    limit: int | None
    repeatable: bool
    valid_at: Timestamp | None
    name: str


@contextmanager
def answered(
    workspace: Workspace,
    question: Question,
    factory: EngineFactory,
    sources: Sources | None = None,
    **manner: Unpack[QueryOptions],
) -> Iterator[EngineResult]:
    """The answer as Parquet files that are gone afterwards.

    From `sources`, by default the datasets as they are now. Raises `QueryError`s, with places in
    the query as it was asked.
    """
    with (
        LazyEngine(factory) as engine,
        asked_of(engine.get, workspace, question, sources, **manner) as found,
    ):
        yield found


@contextmanager
def asked_of(
    get_engine: Callable[[], Engine],
    workspace: Workspace,
    question: Question,
    sources: Sources | None = None,
    *,
    history: bool = False,
    limit: int | None = None,
    repeatable: bool = False,
    valid_at: Timestamp | None = None,
    name: str = "query",
) -> Iterator[EngineResult]:
    """`answered`, by an engine that goes on running."""
    if sources is None:
        sources = at_heads(workspace, question)
    with scratch_folder(workspace.cache, "query") as folder:
        engine = get_engine()
        try:
            inputs = _inputs(workspace, question, sources, folder)
            chosen = {} if valid_at is None else _true_at(valid_at, inputs, folder)
            found = engine.run(
                QueryTask(question.sql, inputs, folder, history, limit, repeatable, chosen)
            )
        except OdfbuildError as error:
            raise error.mapped(lambda each: as_asked(each, question, name)) from None
        yield found


def _inputs(
    workspace: Workspace, question: Question, sources: Sources, folder: Path
) -> tuple[InputSlices, ...]:
    inputs = tuple(
        _input(workspace, alias, source, folder)
        for alias, source in sources.items()
        if source.state.schema is not None
    )
    if not inputs:
        without = sorted(question.datasets)
        raise QueryError(
            f"'{without[0]}' has no columns yet",
            code="E0580",
            help="run `odfbuild apply` first",
        )
    return inputs


def _true_at(moment: Timestamp, inputs: Sequence[InputSlices], folder: Path) -> dict[str, Path]:
    """By input, a file with the offsets of the records that were true at an event time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    chosen = {}
    for number, each in enumerate(inputs):
        offsets = true_at(facts_in(each.files, each.vocab), moment.millis)
        chosen[each.alias] = folder / f"valid-{number}.parquet"
        pq.write_table(pa.table({each.vocab.offset: offsets}), chosen[each.alias])
    return chosen


def _input(workspace: Workspace, alias: str, source: Source, folder: Path) -> InputSlices:
    state = source.state
    assert state.schema is not None
    files = workspace.committed(source.name, state).files()
    shown = shown_of(workspace.dataset(source.name), state.dataset_id, "people")
    if shown is not None:
        own = folder / state.dataset_id.multibase
        files = tuple(converted(file, shown.scope, shown.convert, own) for file in files)
    return InputSlices(
        alias=alias,
        schema=schema_of(state.schema),
        vocab=vocabulary_of(state.vocab),
        slices=tuple(SliceFile(file) for file in files),
        first=None if state.last_offset is None else 0,
        last=state.last_offset,
    )


def _is_part(words: Sequence[Word], at: int) -> bool:
    """Whether a word goes on behind a dot."""
    return at > 0 and words[at - 1].text == "." and words[at - 1].end == words[at].start


def _longest_name(
    words: Sequence[Word], at: int, known: Mapping[tuple[str, ...], str], longest: int
) -> tuple[str | None, int]:
    """The dataset whose name begins at a word, and of how many words it is made."""
    if _is_part(words, at):
        return None, 1
    best: tuple[str | None, int] = (None, 1)
    for length in range(1, longest + 1):
        piece = words[at : at + length]
        adjacent = all(a.end == b.start for a, b in pairwise(piece))
        if len(piece) < length or not adjacent:
            break
        alias = known.get(tuple(word.text for word in piece))
        if alias is not None:
            best = alias, length
    return best


def _reads_nothing(
    sql: str, words: Sequence[Word], aliases: Sequence[str], quote: Quote
) -> QueryError:
    for alias in aliases:
        for mark in "'\"":
            if mark != quote and f"{mark}{alias}{mark}" in sql:
                return QueryError(
                    "the query reads no dataset",
                    code="E0580",
                    notes=(f"{mark}{alias}{mark} is text, not a name",),
                    help=f"write {quote}{alias}{quote}, or the name without quotes",
                )
    name = next(_relations(sql, words), "")
    return QueryError(
        f"there is no dataset '{name}'" if name else "the query reads no dataset",
        code="E0580",
        help=did_you_mean(name, aliases, "`odfbuild ls` lists the datasets"),
    )


def _relations(sql: str, words: Sequence[Word]) -> Iterator[str]:
    """What is read by name: neither rows in the query itself, nor functions, nor subqueries."""
    named = zip(words, words[1:], words[2:], strict=False)
    made = {one.text for one, second, third in named if (second.text, third.text) == ("as", "(")}
    for number, (one, following) in enumerate(pairwise(words)):
        after = words[number + 2].text if number + 2 < len(words) else ""
        is_relation = following.text not in ("values", "lateral", "(", *made) and after != "("
        if one.text in ("from", "join") and is_relation:
            yield sql[following.start :].split(maxsplit=1)[0].strip('`";,()')


def as_asked(error: OdfbuildError, question: Question, name: str) -> OdfbuildError:
    """The error with a place in the query as it was written, and no dataset."""
    error = error.changed(dataset=None)
    location = error.location
    if location is None or location.line is None or location.column is None:
        return error
    lines = question.asked.splitlines()
    column = location.column
    for line, mark in question.quoted:
        if line == location.line and mark < column:
            column -= 1
    snippet = lines[location.line - 1] if location.line <= len(lines) else location.snippet
    return error.at(Location(name, location.line, column, snippet, location.length))
