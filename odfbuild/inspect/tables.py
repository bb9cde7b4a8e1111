"""Questions about published tables: what is there, whether it is right, and what is garbage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from odfbuild.engine.settings import duckdb_memory, in_force
from odfbuild.errors import OdfbuildError, TableError
from odfbuild.exchange.tables.behind import behind, pin_of
from odfbuild.exchange.tables.contract import Garbage, TableFormat, TableSpec, TableState
from odfbuild.exchange.tables.faults import NOT_THERE, differs, reaching
from odfbuild.exchange.tables.formats import open_table
from odfbuild.exchange.tables.planned import located
from odfbuild.exchange.tables.remembered import known_of, remember
from odfbuild.exchange.tables.rules import check_columns
from odfbuild.inspect.verify.finding import Finding, fault
from odfbuild.project.tables import Table, declared_tables
from odfbuild.records.duckdb_views import connect, quote
from odfbuild.records.records import records_of
from odfbuild.store.cache import project
from odfbuild.store.disposable import scratch_folder
from odfbuild.values import Value
from odfbuild.wording import count

if TYPE_CHECKING:
    from odfbuild.inspect.verify.check import Verdict
    from odfbuild.project.model import Config
    from odfbuild.records.records import Records
    from odfbuild.store.workspace import Workspace


class TableFacts(Value, kw_only=True):
    """A table as it is: its `state` (`None`: it was never published), and what it lacks.

    `lacks` is empty where the table holds all that its dataset has.
    """

    table: Table
    state: TableState | None
    lacks: str


@contextmanager
def opened(
    config: Config, workspace: Workspace, table: Table
) -> Iterator[tuple[TableFormat, Records]]:
    """A table in its format, and the records that it has to hold."""
    records = records_of(workspace, table.dataset, view=table.view, audience="public")
    check_columns(table, records.stored.state)
    with scratch_folder(config.cache, "table") as scratch, reaching(table):
        yield open_table(TableSpec(table, records.schema, scratch, records.personal)), records


def look_at(config: Config, workspace: Workspace, table: Table) -> TableFacts:
    """What is there, asked of the place; remembered for plans."""
    with opened(config, workspace, table) as (there, records):
        state = there.read_state()
    remember(config, table, state)
    return TableFacts(table=table, state=state, lacks=_lacks(table, state, records))


def changed_by_others(
    config: Config, workspace: Workspace, tables: Iterable[Table]
) -> dict[str, str]:
    """Which of these tables somebody else changed, and how, by name.

    What cannot be asked tells why when it is written.
    """
    found = {}
    for table in tables:
        with suppress(OdfbuildError):
            state = look_at(config, workspace, table).state
            if state is not None and (state.pin is None or state.changed_by is not None):
                found[table.name] = state.changed_by or "odfbuild did not write it"
    return found


def _lacks(table: Table, state: TableState | None, records: Records) -> str:
    if state is None:
        return "it was not published yet"
    if state.pin is None or state.changed_by is not None:
        return state.changed_by or "odfbuild did not write it"
    stored = records.stored
    store = stored.committed.store
    found = behind(state.pin, pin_of(table, stored.state, store), stored.state, store)
    if found is None:
        return ""
    return found.anew or f"it is behind its dataset, at offset {state.pin.last_offset}"


def with_tables(
    verdict: Verdict, config: Config, workspace: Workspace, names: Iterable[str], *, records: bool
) -> Verdict:
    """A verdict on datasets with what is wrong with their tables (`table_findings`)."""
    found = table_findings(config, workspace, names, records=records)
    return replace(verdict, findings=(*verdict.findings, *found)) if found else verdict


def table_findings(
    config: Config, workspace: Workspace, names: Iterable[str], *, records: bool
) -> tuple[Finding, ...]:
    """What is wrong with the tables of these datasets: their files and, if asked, their records."""
    if workspace.branch is not None:
        return ()
    found = []
    for table in declared_tables(config, names):
        try:
            wrong: Exception | None = _compare(config, workspace, table, records=records)
        except Exception as error:  # one table must not end the verification of others
            wrong = error
        if wrong is not None:
            found.append(fault(config.cache, table.dataset, wrong))
    return tuple(found)


def _compare(
    config: Config, workspace: Workspace, table: Table, *, records: bool
) -> TableError | None:
    """What is wrong with a table; `None`: nothing, or it is to be made yet, or written anew.

    A table that is behind is compared with its dataset at the block that it holds.
    """
    state = workspace.projection(table.dataset)
    if state is None or state.schema is None:
        return None
    with opened(config, workspace, table) as (there, now):
        present = there.read_state()
        if present is None:
            return differs(table, NOT_THERE) if known_of(config, table) else None
        if present.pin is None or present.changed_by is not None:
            return differs(table, present.changed_by or "odfbuild did not write it")
        lost = next(there.missing(present), None)
        if lost is not None:
            return differs(table, f"{lost} is not there, or not as it was written")
        stored = now.stored
        wanted = pin_of(table, state, stored.committed.store)
        lacks = behind(present.pin, wanted, state, stored.committed.store)
        if not records or (lacks is not None and lacks.anew is not None):
            return None
        held = project(stored.committed.store, present.pin.block, None)
        then = records_of(workspace, table.dataset, held, view=table.view, audience="public")
        more, less = _differences(config, there, present, then)
    if not more and not less:
        return None
    return differs(table, f"it lacks {count(less, 'record')} and has {count(more, 'other')}")


def _differences(
    config: Config, there: TableFormat, present: TableState, held: Records
) -> tuple[int, int]:
    """How many records only the table has, and how many only the dataset."""
    columns = ", ".join(map(quote, held.schema.names))
    with connect(memory_limit=duckdb_memory(in_force(config.engine))) as connection:
        held.duckdb_view(connection, "dataset")
        found: list[int] = []
        for one, other in (("published", "dataset"), ("dataset", "published")):
            # A stream can be read once.
            batches = there.content_of(present, None)
            connection.register("stream", pa.RecordBatchReader.from_batches(held.schema, batches))
            connection.execute(f"CREATE OR REPLACE VIEW published AS SELECT {columns} FROM stream")
            found += connection.execute(
                f"SELECT count(*) FROM (FROM {one} EXCEPT ALL FROM {other})"
            ).fetchall()[0]
    more, less = found
    return more, less


class TableGarbage(Value, kw_only=True):
    """What a table no longer needs; with an `error` nothing is known."""

    table: Table
    garbage: Garbage = field(default_factory=Garbage)
    error: OdfbuildError | None = None


def collect_tables(
    config: Config,
    workspace: Workspace,
    tables: Iterable[Table],
    keep: timedelta | None = None,
    *,
    dry_run: bool,
) -> tuple[TableGarbage, ...]:
    """Remove what these tables no longer need: states that were replaced before `keep`.

    By default each keeps its states as long as its entry in odfbuild.yaml says.
    """
    found = []
    for table in tables:
        try:
            state = workspace.projection(table.dataset)
            if state is None or state.schema is None:
                continue
            with opened(config, workspace, table) as (there, _):
                garbage = there.collect(table.keep if keep is None else keep, dry_run=dry_run)
            found.append(TableGarbage(table=table, garbage=garbage))
        except OdfbuildError as error:
            found.append(TableGarbage(table=table, error=located(config, error)))
    return tuple(found)
