"""Reset a dataset to an older block, or to its definition without records.

Later blocks stay on disk until garbage collection, so a reset can be undone by another one.
Sources: Open Data Fabric, "Metadata Chain"; reference behaviour, "reset", "compact" (keeping
metadata only).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from odfbuild.apply.refuse_external import check_own
from odfbuild.errors import PlanError
from odfbuild.ingest.fetch.inbox import bring_back_inbox
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.chain.step import Link
from odfbuild.odf.model import AddData, ExecuteTransform, MetadataEvent, Seed, SetDataSchema
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.project.model import Config
from odfbuild.store.cache import project
from odfbuild.store.claims import NOT_WAITING, Waiting, held_elsewhere
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.garbage import renew
from odfbuild.store.workspace import Workspace
from odfbuild.survey.protection import check_unprotected
from odfbuild.values import Value


class Reset(Value, kw_only=True):
    """What taking `name` back from `head` to the block `to` means.

    `events` are appended to `to` again; `records` and `blocks` go. `readers` are derivatives that
    consumed what goes: they cannot continue and must be computed again.
    """

    name: str
    head: Multihash
    to: Multihash
    events: tuple[MetadataEvent, ...] = ()
    records: int
    blocks: int
    readers: tuple[str, ...] = ()

    @property
    def is_needed(self) -> bool:
        """Whether anything changes."""
        return self.to != self.head


def without_records(links: Iterable[Link], *, schema: bool) -> tuple[MetadataEvent, ...]:
    """The events of a chain that stay when records and watermarks go, in order.

    With `schema` that goes, too: the next records set it anew.
    """
    gone = (Seed, AddData, ExecuteTransform, *([SetDataSchema] if schema else []))
    return tuple(block.event for _, block in links if not isinstance(block.event, gone))


def plan_reset(
    workspace: Workspace, name: str, to: Multihash | None = None, *, schema: bool = False
) -> Reset:
    """What it takes to bring `name` to the block `to`, by default to its definition alone.

    `to` may be any block that is on disk and belongs to the same dataset, also one that an earlier
    reset left behind. Raises `PlanError` when it is not. Without `to` the schema stays, as it does
    in the reference, unless `schema` asks for it to go.
    """
    store = workspace.dataset(name)
    now = workspace.projection(name)
    if now is None:
        raise AssertionError("the caller has found this dataset")
    if to is None:
        check_own(workspace, name)
        links = list(store.walk(now.head))[::-1]
        seed = links[0][0]
        events = without_records(links, schema=schema)
        if len(events) == len(links) - 1:
            return Reset(name=name, head=now.head, to=now.head, records=0, blocks=0)
        kept, records, blocks = {seed}, now.records, len(links) - 1 - len(events)
        to = seed
    else:
        target = _state_at(store, to, now)
        events = ()
        kept = {hash for hash, _ in store.walk(to)}
        records = max(0, now.records - target.records)
        blocks = sum(hash not in kept for hash, _ in store.walk(now.head))
    return Reset(
        name=name,
        head=now.head,
        to=to,
        events=events,
        records=records,
        blocks=blocks,
        readers=tuple(_readers(workspace.readable(), now, kept)),
    )


def carry_out(
    workspace: Workspace, resets: Iterable[Reset], waiting: Waiting = NOT_WAITING
) -> None:
    """Do `resets` one after the other, each in one step.

    Raises `StaleHeadError` for a dataset that another process has locked or has moved since; those
    before it have been reset then.
    """
    todo = [reset for reset in resets if reset.is_needed]
    with workspace.claim([reset.name for reset in todo], waiting) as claim:
        for reset in todo:
            if reset.name in claim.held:
                raise held_elsewhere(reset.name, claim.held[reset.name])
            store = workspace.dataset(reset.name)
            renew(store, reset.head)
            if reset.events:
                # A clock that was set back must not break the order of the chain.
                moment = max(Timestamp.now(), store.read_block(reset.to).system_time)
                # All in one: nobody ever sees the dataset without its definition.
                store.append(reset.head, reset.events, moment, onto=reset.to)
            else:
                store.swap_head(reset.head, reset.to)


def restore_deleted(config: Config, workspace: Workspace, name: str, to: str) -> str | None:
    """Bring the deleted dataset `name` back whose head begins or ends with `to`; its name.

    `None` when there is none in the bin; `PlanError` E0393 when its name is in use.
    """
    found = [
        each
        for each in workspace.deleted()
        if each.name.lower() == name.lower()
        and (str(each.head).startswith(to) or str(each.head).endswith(to))
    ]
    if not found:
        return None
    deleted = found[-1]
    # The inbox first: whoever is killed in between does all of it again.
    bring_back_inbox(deleted.inbox, config.inbox, deleted.name)
    workspace.restore(deleted)
    return deleted.name


def with_readers(workspace: Workspace, reset: Reset, *, schema: bool = False) -> list[Reset]:
    """`reset` and those of all its readers, to their definitions, readers first.

    `schema` as for `plan_reset`. In this order no dataset ever reads a history that is gone, also
    when the work is cut off.
    """
    found: dict[str, Reset] = {}

    def visit(one: Reset) -> None:
        for reader in one.readers:
            if reader not in found:
                visit(plan_reset(workspace, reader, schema=schema))
        found[one.name] = one

    visit(reset)
    return list(found.values())


def plan_resets(
    config: Config,
    workspace: Workspace,
    name: str,
    to: Multihash | None = None,
    *,
    readers: bool = False,
    schema: bool = False,
) -> list[Reset]:
    """What a reset of a dataset comes to, in the order of work; empty when it is there already.

    Raises `PlanError` as `plan_reset`, and E0339 when one of the datasets is protected.
    """
    first = plan_reset(workspace, name, to, schema=schema)
    found = with_readers(workspace, first, schema=schema) if readers else [first]
    resets = [each for each in found if each.is_needed]
    for each in resets:
        check_unprotected(config, workspace, each.name)
    return resets


def _state_at(store: DatasetStore, block: Multihash, now: Projection) -> Projection:
    state = project(store, block, None)
    if state.dataset_id != now.dataset_id:
        raise PlanError(
            f"block {block} belongs to another dataset than '{store.name}'",
            code="E0333",
            dataset=store.name,
            help=f"`odfbuild log {store.name}` lists its blocks",
        )
    return state


def _readers(
    projections: Mapping[str, Projection], source: Projection, kept: set[Multihash]
) -> Iterable[str]:
    for name, state in projections.items():
        for consumed in state.consumed:
            if consumed.dataset_id == source.dataset_id and consumed.new_block_hash not in kept:
                yield name
