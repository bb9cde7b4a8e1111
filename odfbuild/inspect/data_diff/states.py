"""Compare the records of a dataset at two blocks: two moments of it, or a branch and the head."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.inspect.data_diff.columns import row_of
from odfbuild.inspect.data_diff.compare import ASKED, SIGN, Side, compare
from odfbuild.inspect.data_diff.model import DataDiff, Key
from odfbuild.odf.model import AddPushSource, SetPollingSource
from odfbuild.odf.operation import APPEND, CORRECT_TO
from odfbuild.project.settings.by_name import matching
from odfbuild.records.duckdb_views import connect, files_sql, quote
from odfbuild.records.records import Records, records_of
from odfbuild.store.cache import project
from odfbuild.store.disposable import scratch_folder

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from odfbuild.odf.chain.projection import Projection
    from odfbuild.odf.multihash import Multihash
    from odfbuild.odf.vocabulary import Vocabulary
    from odfbuild.project.model import Config
    from odfbuild.store.dataset import DatasetStore
    from odfbuild.store.workspace import Workspace

MEMORY = "1GB"
"""What DuckDB may use before it writes to the scratch folder."""


def diff_states(
    workspace: Workspace,
    dataset: str,
    old: Projection | None,
    new: Projection | None,
    names: tuple[str, str],
    keys: Sequence[Key] = (),
) -> DataDiff | None:
    """The differences between two states of a dataset (`None`: it is not there), `names` theirs.

    Slices before the newest block that both have are read only to tell distributions, and to find
    a key where there is none among `keys`. `None` where the chain alone says that nothing differs.
    """
    known = [each for each in (old, new) if each is not None and each.schema is not None]
    shared = _shared(workspace.dataset(dataset), old, new)
    if not known or _adds_nothing(workspace, dataset, known, shared):
        return None
    with database(workspace) as connection:
        sides: list[Side] = []
        unread = 0
        for prefix, name, state in zip(("old", "new"), names, (old, new), strict=True):
            if state is None or state.schema is None:
                sides.append(no_records(connection, prefix, name, known[0], workspace, dataset))
                continue
            records = records_of(workspace, dataset, state)
            moves = _since(workspace, dataset, state, shared)
            unread = len(records.stored.slices) - len(moves.stored.slices)
            sides.append(committed(connection, prefix, name, records, moves))
        return replace(compare(connection, dataset, sides[0], sides[1], keys), unread=unread)


def _since(
    workspace: Workspace, dataset: str, state: Projection, shared: Projection | None
) -> Records:
    """Every record of a state that came after `shared`."""
    return records_of(workspace, dataset, state, view="history", since=shared)


def _adds_nothing(
    workspace: Workspace, dataset: str, states: Sequence[Projection], shared: Projection | None
) -> bool:
    """Whether no state has columns or records that `shared` does not have."""
    return shared is not None and not any(
        each.schema != shared.schema or _since(workspace, dataset, each, shared).stored.slices
        for each in states
    )


@contextmanager
def database(workspace: Workspace) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection whose memory is bounded; what does not fit lies in the cache."""
    with (
        scratch_folder(workspace.cache, "diff") as folder,
        connect(
            memory_limit=MEMORY, temp_directory=str(folder), preserve_insertion_order=False
        ) as connection,
    ):
        yield connection


def committed(
    connection: duckdb.DuckDBPyConnection, prefix: str, name: str, records: Records, moves: Records
) -> Side:
    """Views of `records`, and of those that led there."""
    records.duckdb_view(connection, f"{prefix}_state")
    moves.duckdb_view(connection, f"{prefix}_history")
    _signed(connection, prefix, moves.stored.vocab, records.schema.names)
    return Side(name, f"{prefix}_state", f"{prefix}_moves", records.count())


def computed(
    connection: duckdb.DuckDBPyConnection,
    prefix: str,
    name: str,
    files: Sequence[Path],
    schema: pa.Schema,
    vocab: Vocabulary,
) -> Side:
    """Views of records in files that no chain has, and of what they amount to."""
    state, moves, history = (f"{prefix}_{each}" for each in ("state", "moves", "history"))
    connection.execute(f"CREATE VIEW {history} AS {files_sql(files, schema, connection)}")
    system = (vocab.offset, vocab.operation_type, vocab.system_time)
    columns = [each for each in schema.names if each not in system]
    _signed(connection, prefix, vocab, columns)
    (taken,) = row_of(connection, f"SELECT count(*) FROM {moves} WHERE {SIGN} < 0")
    names = ", ".join(map(quote, columns))
    left = f"SELECT {names} FROM {moves}"
    if taken:
        sums = f"SELECT {names}, sum({SIGN})::BIGINT AS {SIGN} FROM {moves} GROUP BY {names}"
        left = f"SELECT {names} FROM ({sums}) t, unnest(range(t.{SIGN}))"
    connection.execute(f"CREATE VIEW {state} AS {left}")
    (records,) = row_of(connection, f"SELECT count(*) FROM {state}")
    return Side(name, state, moves, records)


def _signed(
    connection: duckdb.DuckDBPyConnection, prefix: str, vocab: Vocabulary, columns: Sequence[str]
) -> None:
    """The moves of a side: what the records of its history add, and what they retract."""
    adds = f"{quote(vocab.operation_type)} IN ({APPEND}, {CORRECT_TO})"
    connection.execute(
        f"CREATE VIEW {prefix}_moves AS SELECT {', '.join(map(quote, columns))}, "
        f"CASE WHEN {adds} THEN 1 ELSE -1 END AS {SIGN} FROM {prefix}_history"
    )


def no_records(
    connection: duckdb.DuckDBPyConnection,
    prefix: str,
    name: str,
    like: Projection,
    workspace: Workspace,
    dataset: str,
) -> Side:
    """The state of a dataset before it had any: the columns are those that it has at `like`."""
    records_of(workspace, dataset, like).duckdb_view(connection, f"{prefix}_like")
    return nothing_like(connection, prefix, name, f"{prefix}_like")


def nothing_like(
    connection: duckdb.DuckDBPyConnection, prefix: str, name: str, relation: str
) -> Side:
    """A side without records that has the columns of `relation`."""
    state, moves = f"{prefix}_state", f"{prefix}_moves"
    connection.execute(f"CREATE VIEW {state} AS FROM {relation} WHERE false")
    connection.execute(f"CREATE VIEW {moves} AS SELECT *, 1 AS {SIGN} FROM {state}")
    return Side(name, state, moves, 0)


def keys_of(
    config: Config, dataset: str, state: Projection | None, given: Sequence[str] = ()
) -> list[Key]:
    """What identifies records: what is `given`, the primary key, what a check has as unique."""
    sources: list[SetPollingSource | AddPushSource] = []
    if state is not None:
        sources += [state.polling_source] if state.polling_source else []
        sources += state.push_sources.values()
    primary = {each.merge.key for each in sources} - {()}
    found = [Key(columns=tuple(given), origin=ASKED)] if given else []
    found += [Key(columns=key, origin="primary key") for key in primary if len(primary) == 1]
    declared = (each.unique for each in config.checks if matching(each, dataset) is not None)
    unique = chain.from_iterable(declared)
    return [*found, *(Key(columns=each, origin="unique by a check") for each in unique)]


def _shared(
    store: DatasetStore, old: Projection | None, new: Projection | None
) -> Projection | None:
    """What the chain said at the newest block that both states have, if there were columns."""
    if old is None or new is None:
        return None
    block = _newest_common(store, old, new)
    found = None if block is None else project(store, block, None)
    return found if found is not None and found.schema is not None else None


def _newest_common(store: DatasetStore, old: Projection, new: Projection) -> Multihash | None:
    """The newest block that is in both histories; reads those behind it."""
    sides = [store.walk(each.head) for each in (old, new)]
    heads = [next(each, None) for each in sides]
    while (first := heads[0]) is not None and (second := heads[1]) is not None:
        if first[0] == second[0]:
            return first[0]
        numbers = [first[1].sequence_number, second[1].sequence_number]
        for side in (0, 1):
            if numbers[side] == max(numbers):
                heads[side] = next(sides[side], None)
    return None
