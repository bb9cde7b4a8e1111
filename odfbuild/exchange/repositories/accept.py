"""Check blocks that come from elsewhere, before any of them becomes part of a chain here.

Each must decode (Manifest 2 or 3), have the hash that it is called by, follow the block before it,
and keep every rule of the chain; all of them must belong to the expected dataset. Only new blocks
are looked at. Reads at most a few blocks of the chain that is here, and writes nothing. Sources:
Open Data Fabric, "Metadata Chain", "Dataset Sharing"; reference behaviour, "append validation".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from odfbuild.errors import ChainError, RepositoryError
from odfbuild.exchange.repositories.contract import ObjectFile, RawBlock
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.chain.rules import check, check_hash
from odfbuild.odf.chain.state import ChainState, advance
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import AddData, DatasetKind, ExecuteTransform, MetadataBlock, Seed
from odfbuild.odf.multihash import Multihash
from odfbuild.store.dataset import DatasetStore
from odfbuild.values import Value

Link = tuple[Multihash, MetadataBlock]


class Identity(Value):
    """What the Seed of a chain says: whose it is, and its kind."""

    id: DatasetId
    kind: DatasetKind


def accept(blocks: Sequence[RawBlock], base: ChainState | None, dataset: str) -> tuple[Link, ...]:
    """The blocks, decoded, if they may follow `base` (`None`: they begin with a Seed).

    `RepositoryError` E1021 for one that cannot be read, E1022 for one that breaks a rule.
    """
    from odfbuild.odf.flatbuffers.form import decode_block

    state, links = base, []
    for raw in blocks:
        try:
            check_hash(raw.hash, Multihash.sha3_256(raw.data))
            block = decode_block(raw.data)
            check(state, block)
        except ChainError as error:
            raise RepositoryError(
                f"'{dataset}' breaks a rule of the chain in block {raw.hash.short}: "
                f"{error.message}",
                code="E1022",
                notes=(f"rule {error.code}: `odfbuild explain {error.code}`", *error.notes),
                help="nothing was changed here; the owner of the dataset has to correct its chain",
                dataset=dataset,
            ) from None
        except ValueError as error:
            raise RepositoryError(
                f"'{dataset}' has a block that cannot be read: {error}",
                code="E1021",
                notes=(f"block: {raw.hash}",),
                help="nothing was changed here; a newer odfbuild may read it, otherwise the owner "
                "of the dataset has to correct its chain",
                dataset=dataset,
            ) from None
        state = advance(state, raw.hash, block)
        links.append((raw.hash, block))
    return tuple(links)


def identity_of(links: Sequence[Link]) -> Identity:
    """Whose chain this is; `links` begin with its Seed."""
    seed = links[0][1].event
    if not isinstance(seed, Seed):
        raise AssertionError("the first block of an accepted chain is a Seed")
    return Identity(seed.dataset_id, seed.dataset_kind)


def check_identity(found: Identity, expected: DatasetId, dataset: str, why: str) -> None:
    """`RepositoryError` E1023 unless the chain is that of the expected dataset."""
    if found.id == expected:
        return
    raise RepositoryError(
        f"'{dataset}' is another dataset there",
        code="E1023",
        dataset=dataset,
        notes=(f"expected: {expected} ({why})", f"there:    {found.id}"),
        help="check name and address; to have both datasets, pull the other one under another "
        "name: `--as NAME`",
    )


def rules_at(store: DatasetStore, state: Projection) -> ChainState:
    """What the rules need to know of the chain here, from its projection and the last blocks.

    Data events of the other kind than the dataset's do not occur in it: roots ingest, derivatives
    transform.
    """
    wanted = AddData if state.kind is DatasetKind.Root else ExecuteTransform
    known = ChainState(
        head=state.head,
        sequence_number=state.blocks - 1,
        system_time=state.system_time,
        schema=state.schema,
        transform=state.transform,
        polling=state.polling_source is not None,
        push_sources=state.push_sources,
    )
    if not state.ever_ran:
        return known
    for hash, block in store.walk(state.head):
        if isinstance(block.event, AddData | ExecuteTransform):
            if not isinstance(block.event, wanted):
                break  # a chain that nobody here would write: all of it is read
            last = advance(known, hash, block)
            return replace(known, data=last.data, added=last.added, executed=last.executed)
    full = store.rule_state(state.head)
    if full is None:
        raise AssertionError("a chain with a head has a state")
    return full


def objects_of(links: Sequence[Link]) -> tuple[ObjectFile, ...]:
    """The objects that blocks refer to, in their order, each once."""
    found: dict[tuple[str, Multihash], ObjectFile] = {}
    for _, block in links:
        for each in objects_in(block):
            found.setdefault((each.kind, each.hash), each)
    return tuple(found.values())


def records_of(links: Sequence[Link]) -> int:
    """How many records blocks add."""
    return sum(records_in(block) for _, block in links)


def objects_in(block: MetadataBlock) -> Iterator[ObjectFile]:
    """The objects that a block refers to: data before the checkpoint."""
    event = block.event
    if isinstance(event, AddData | ExecuteTransform):
        if event.new_data is not None:
            yield ObjectFile("data", event.new_data.physical_hash, event.new_data.size)
        if event.new_checkpoint is not None:
            made = event.new_checkpoint
            yield ObjectFile("checkpoints", made.physical_hash, made.size)


def records_in(block: MetadataBlock) -> int:
    """How many records a block adds."""
    event = block.event
    if not isinstance(event, AddData | ExecuteTransform) or event.new_data is None:
        return 0
    interval = event.new_data.offset_interval
    return interval.end - interval.start + 1
