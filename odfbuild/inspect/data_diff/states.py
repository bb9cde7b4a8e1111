"""Compare the records of a dataset at two blocks: two moments of it, or a branch and the head."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from odfbuild.engine.operation import APPEND, CORRECT_TO
from odfbuild.inspect.data_diff.compare import SIGN, Side, compare
from odfbuild.inspect.data_diff.model import DataDiff, Key
from odfbuild.odf.model import MergeStrategy
from odfbuild.records.duckdb_views import connect, quote
from odfbuild.records.records import Records, records_of
from odfbuild.store.cache import project
from odfbuild.store.disposable import scratch_folder

if TYPE_CHECKING:
    import duckdb

    from odfbuild.odf.chain.projection import Projection
    from odfbuild.odf.multihash import Multihash
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
) -> DataDiff:
    """The differences between two states of a dataset; `None`: it has no records there.

    `names` are those of the states. Slices before the newest block that both have are read only to
    tell distributions, and to find a key where there is none among `keys`.
    """
    same = DataDiff(dataset=dataset, old=names[0], new=names[1])
    known = [each for each in (old, new) if each is not None and each.schema is not None]
    if not known or (old is not None and new is not None and old.head == new.head):
        count = sum(records_of(workspace, dataset, each).count() for each in known[:1])
        return replace(same, old_records=count, new_records=count)
    shared = _shared(workspace.dataset(dataset), old, new)
    with database(workspace) as connection:
        sides, unread = [], 0
        for prefix, name, state in zip(("old", "new"), names, (old, new), strict=True):
            if state is None or state.schema is None:
                sides.append(no_records(connection, prefix, name, known[0], workspace, dataset))
                continue
            records = records_of(workspace, dataset, state)
            since = records_of(workspace, dataset, shared).pin if shared else None
            moves = records_of(workspace, dataset, state, view="history", since=since)
            unread = len(records.stored.slices) - len(moves.stored.slices)
            sides.append(committed(connection, prefix, name, records, moves))
        return replace(compare(connection, dataset, *sides, keys), unread=unread)


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
    connection: duckdb.DuckDBPyConnection,
    prefix: str,
    name: str,
    records: Records,
    moves: Records,
) -> Side:
    """Views of `records`, and of those that led there."""
    state, history = f"{prefix}_state", f"{prefix}_history"
    records.duckdb_view(connection, state)
    moves.duckdb_view(connection, history)
    operation = moves.stored.vocab.operation_type
    return signed(
        connection, prefix, name, state, history, operation, records.schema.names, records.count()
    )


def signed(
    connection: duckdb.DuckDBPyConnection,
    prefix: str,
    name: str,
    state: str,
    history: str,
    operation: str,
    columns: Sequence[str],
    records: int,
) -> Side:
    """A side whose moves are `history`: by what records do, according to the column `operation`."""
    moves = f"{prefix}_moves"
    connection.execute(
        f"CREATE VIEW {moves} AS SELECT {', '.join(map(quote, columns))}, "
        f"CASE WHEN {quote(operation)} IN ({APPEND}, {CORRECT_TO}) THEN 1 ELSE -1 END AS {SIGN} "
        f"FROM {history}"
    )
    return Side(name, state, moves, records)


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


def keys_of(config: Config, dataset: str, state: Projection | None) -> list[Key]:
    """What identifies records of a dataset: its primary key, else what a check has as unique."""
    sources = []
    if state is not None:
        polled = [state.polling_source] if state.polling_source else []
        sources = [*polled, *state.push_sources.values()]
    primary = {key for each in sources if (key := _primary_key(each.merge))}
    found = [Key(columns=key, origin="primary key") for key in primary if len(primary) == 1]
    from odfbuild.project.settings.by_name import matching

    declared = (each.unique for each in config.checks if matching(each, dataset) is not None)
    unique = chain.from_iterable(declared)
    return [*found, *(Key(columns=each, origin="unique by a check") for each in unique)]


def _primary_key(merge: MergeStrategy) -> tuple[str, ...]:
    return tuple(getattr(merge, "primary_key", ()))


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
