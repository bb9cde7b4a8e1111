"""Changes of a table, such as `postgresql://host/shop?changes=odfbuild_orders#public.orders`.

Each step writes the table as a whole, or some transactions, to a file; the position behind them is
the new source state. How a step does that is up to the kind of database: see `read` and `binlog`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from odfbuild.ingest.fetch.context import FetchContext
from odfbuild.ingest.fetch.database.address import Wanted
from odfbuild.ingest.fetch.database.changes.found import Found
from odfbuild.ingest.fetch.event_time import event_time_of
from odfbuild.ingest.fetch.result import ETAG, Fetched, etag
from odfbuild.odf.model import FetchStepUrl, SourceState


def fetch_changes(
    step: FetchStepUrl, asked: Wanted, shown: str, state: SourceState | None, context: FetchContext
) -> Iterator[Fetched]:
    """Yield the table, then what changed, some transactions at a time. Raises `OdfbuildError`."""
    take = _step_of(asked)
    is_ours = state is not None and state.kind == ETAG and not context.moved
    known = state.value if state is not None and is_ours else None
    until: int | None = None
    while (found := take(asked, shown, context, known, until)) is not None:
        known = found.state
        until = found.until  # What is committed meanwhile comes with the next run.
        event_time = event_time_of(
            step.event_time,
            modified=found.committed or context.now,
            default=found.committed,
            now=context.now,
            name=shown,
        )
        # Who takes the next one has committed this one.
        yield Fetched(
            found.file,
            etag(found.state),
            event_time,
            shown,
            note=found.note,
            whole=found.whole,
            own_rows=found.whole,
            changes=found.file is not None and not found.whole,
        )


class _Take(Protocol):
    def __call__(
        self,
        asked: Wanted,
        shown: str,
        context: FetchContext,
        known: str | None,
        until: int | None,
    ) -> Found | None: ...


def _step_of(asked: Wanted) -> _Take:
    if asked.kind == "mysql":
        from odfbuild.ingest.fetch.database.changes.binlog.read import take_changes

        return take_changes
    from odfbuild.ingest.fetch.database.changes.read import take_changes as take_from_slot

    return take_from_slot
