"""Find out what is older than `retain` in odfbuild.yaml keeps it, and whether it can go.

Reads chains, and the event times of files that are here; asks no storage.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from odfbuild.errors import OdfbuildError, PersonalDataError
from odfbuild.extras import has_engine
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import vocabulary_of
from odfbuild.plan.model import Plan
from odfbuild.plan.retention import (
    DueWithdrawal,
    Old,
    Reader,
    age_in_words,
    need_of,
    old_slices,
    own_need,
    readers_of,
)
from odfbuild.project.settings.retention import kept_for
from odfbuild.store.stewardship import withdrawals

if TYPE_CHECKING:
    from odfbuild.odf.chain.projection import Projection
    from odfbuild.project.model import Config
    from odfbuild.store.dataset import DatasetStore
    from odfbuild.store.workspace import Workspace


def due_withdrawals(
    config: Config,
    workspace: Workspace,
    plan: Plan,
    states: Mapping[str, Projection],
    allowed: Collection[str],
) -> tuple[DueWithdrawal, ...]:
    """What of the datasets of a plan is due, in its order; `allowed` are names with consent.

    `PersonalDataError` E1632 for consent about a dataset of which nothing is due.
    """
    if config.branch is not None:
        return ()
    inputs = {each.name: each.inputs for each in plan.datasets}
    wanted = {each.lower() for each in allowed}
    found = tuple(_due(config, workspace, inputs, states, wanted))
    for each in sorted(wanted - {due.dataset.lower() for due in found}):
        raise PersonalDataError(
            f"nothing of '{each}' is due to be withdrawn",
            code="E1632",
            help="`retain` in odfbuild.yaml says how long records are kept; `odfbuild plan` lists "
            "what is older. What a withdrawal that was cut off left, `odfbuild gc` removes",
        )
    return found


def _due(
    config: Config,
    workspace: Workspace,
    inputs: Mapping[str, Sequence[str]],
    states: Mapping[str, Projection],
    wanted: Collection[str],
) -> Iterator[DueWithdrawal]:
    now = Timestamp.now()
    for name in inputs:
        keep, state = kept_for(config.retain, name), states.get(name)
        if keep is None or state is None or workspace.find(name) is None:
            continue
        store = workspace.dataset(name)
        ends = {each.through for each in withdrawals(store.statements())}
        before = Timestamp(now.ns - int(keep.total_seconds()) * 1_000_000_000)
        old = old_slices(store.walk(state.head), before, ends)
        if old is not None:
            yield DueWithdrawal(
                dataset=name,
                why=f"records are kept for {age_in_words(keep)}",
                through=old.through,
                number=old.number,
                until=old.until,
                objects=len(old.slices),
                records=sum(
                    e.offset_interval.end - e.offset_interval.start + 1 for e in old.slices
                ),
                bytes=sum(each.size for each in old.slices),
                allowed=name.lower() in wanted,
                refusal=why_not(name, store, state, old, states, inputs),
            )


def why_not(
    name: str,
    store: DatasetStore,
    state: Projection,
    old: Old,
    states: Mapping[str, Projection],
    inputs: Mapping[str, Sequence[str]],
) -> OdfbuildError | None:
    """What still needs these slices; `None`: nothing in this project."""
    own = own_need(name, state)
    if own is not None:
        return own
    last = old.slices[-1].offset_interval.end
    for reader in readers_of(name, state.dataset_id, states, inputs):
        need = need_of(reader, name, last, _is_closed(reader, store, state, old))
        if need is not None:
            return need
    return None


def _is_closed(reader: Reader, store: DatasetStore, state: Projection, old: Old) -> bool | None:
    """Whether all windows of a reader over these slices are closed; `None`: that cannot be told."""
    from odfbuild.engine.event_windows import windows_of

    then = reader.state
    windows = windows_of(then.transform.transform) if then and then.transform else None
    if then is None or windows is None or not has_engine():
        return None
    if then.watermark is None:
        return False
    from odfbuild.engine.event_times import covering, event_times

    files = [store.object_path("data", each.physical_hash) for each in old.slices]
    if not all(each.exists() for each in files):
        return None
    column = vocabulary_of(state.vocab).event_time
    last = covering(event_times(each, column) for each in files).last
    if last in (float("inf"), float("-inf")):
        return None
    return bool(windows.last_end(int(last) * 1000 + 999) <= then.watermark.millis * 1000)
