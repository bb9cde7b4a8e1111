"""Publish chains of this project: what the other side lacks, objects first, the head last.

Every block and object is checked against its hash before it is sent. Append-only: blocks that the
other side has and that are not here are given up only where that is asked for by name, and a
dataset never takes the place of another one. Sources: Open Data Fabric, "Dataset Sharing";
reference behaviour, "sync semantics".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from odfbuild.errors import Code, IntegrityError, PlanError, RepositoryError
from odfbuild.exchange.repositories.accept import Link, accept, identity_of, records_of
from odfbuild.exchange.repositories.contract import (
    ObjectFile,
    Publication,
    RawBlock,
    WritableDataset,
)
from odfbuild.exchange.repositories.head_rules import Vouched
from odfbuild.exchange.repositories.history import (
    LocalBlock,
    blocks_behind,
    local_chain,
    pack_at,
)
from odfbuild.exchange.repositories.outcome import Transfer, TransferStatus, Watcher
from odfbuild.exchange.repositories.parallel import each_on_its_own
from odfbuild.exchange.repositories.relation import Kind, Relation, relate
from odfbuild.exchange.repositories.signing import is_signed, sign_head, stated_at
from odfbuild.exchange.repositories.withdrawn import (
    left_of,
    statements_to_send,
    withdrawn_from,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.signed_head import FILE
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.packs import SIZES, size_of_pack
from odfbuild.store.storage import ObjectKind
from odfbuild.store.workspace import Workspace
from odfbuild.values import Value
from odfbuild.wording import count


def no_passports(workspace: Workspace) -> Mapping[str, bytes]:
    """Nothing lies in the folder of a dataset but what the protocol has."""
    return {}


class Push(Value, kw_only=True):
    """Publish the dataset `name` at the one that `open` gives.

    `replace` lets the chain here replace a history there that differs. `passports` makes the files
    that lie in its folder there, by name.
    """

    name: str
    address: str
    open: Callable[[], WritableDataset]
    replace: bool = False
    passports: Callable[[Workspace], Mapping[str, bytes]] = no_passports


def push(
    workspace: Workspace,
    wanted: Sequence[Push],
    *,
    dry_run: bool = False,
    watcher: Watcher | None = None,
) -> tuple[Transfer, ...]:
    """Push each dataset on its own; never raises for the failure of one."""
    return each_on_its_own(wanted, partial(_push, workspace, dry_run), watcher)


def _push(workspace: Workspace, dry_run: bool, wanted: Push, watcher: Watcher) -> Transfer:
    store = workspace.dataset(wanted.name)
    here = store.head()
    if here is None:
        raise PlanError(
            f"'{wanted.name}' has no chain yet",
            code="E0301",
            dataset=wanted.name,
            help="run `odfbuild apply` to create it",
        )
    target = wanted.open()
    there = target.head()
    if there == here:
        vouched = None if dry_run else _sign_there(workspace, wanted.name, target, here)
        return Transfer(
            name=wanted.name,
            address=target.address,
            status=TransferStatus.UP_TO_DATE,
            before=there,
            after=here,
            vouched=vouched,
        )
    blocks, lost = _missing_there(store, target, here, there, wanted)
    links = [(hash, block) for hash, _, block in blocks]
    objects, _ = left_of(links, store.statements())
    vouched = None
    if not dry_run:
        vouched = _signed(workspace, wanted.name)
        if lost and vouched.signed is None:
            _check_unsigned(store, target, here)
        size = sum(each.size for each in objects)
        watcher.sized(wanted.name, size)
        publication = Publication(
            expected=there,
            blocks=[RawBlock(hash, data) for hash, data, _ in blocks],
            objects=objects,
            files=files_of(store, objects),
            force=bool(lost),
            info=_beside(vouched) | _statements(workspace, wanted.name, target),
            withdrawn=withdrawn_from(store),
            packs=_packs(store, blocks),
            passports=wanted.passports(workspace),
        )
        target.publish(publication, lambda moved: watcher.moved(wanted.name, moved))
    return Transfer(
        name=wanted.name,
        address=target.address,
        status=_status(there, lost),
        before=there,
        after=here,
        blocks=len(blocks),
        records=records_of(links),
        objects=len(objects),
        bytes=sum(each.size for each in objects),
        lost_blocks=len(lost),
        lost_records=records_of(lost),
        vouched=vouched,
    )


def _packs(
    store: DatasetStore, blocks: Sequence[LocalBlock]
) -> list[tuple[Multihash, Callable[[], bytes]]]:
    """The packs that end within `blocks`: of each the larger one, and smaller ones behind all."""
    found: list[tuple[Multihash, Callable[[], bytes]]] = []
    large = True
    for hash, _, block in reversed(blocks):
        size = size_of_pack(block.sequence_number)
        if size == SIZES[0] or (size > 1 and large):
            found.append((hash, partial(_pack, store, hash)))
        large = large and size != SIZES[0]
    return found


def _pack(store: DatasetStore, end: Multihash) -> bytes:
    data = pack_at(store, end)
    assert data is not None, "a pack ends with it"
    return data


def _sign_there(
    workspace: Workspace, name: str, target: WritableDataset, head: Multihash
) -> Vouched:
    """Publish what is said of the head and of withdrawn records, unless that is there already."""
    vouched = _signed(workspace, name)
    info = _beside(vouched)
    if info and is_signed(target, head):
        info = {}
    said = _statements(workspace, name, target)
    withdrawn = withdrawn_from(workspace.dataset(name)) if said else ()
    if info or said:
        target.publish(
            Publication(
                expected=head,
                blocks=(),
                objects=(),
                files={},
                info=info | said,
                withdrawn=withdrawn,
            )
        )
    return vouched


def _statements(workspace: Workspace, name: str, target: WritableDataset) -> dict[str, bytes]:
    """What is to be published of what is said here about records that are no longer there."""
    state = workspace.projection(name)
    assert state is not None
    return statements_to_send(workspace.dataset(name), target, state.dataset_id)


def _signed(workspace: Workspace, name: str) -> Vouched:
    """What is published beside the head of a dataset that exists."""
    state = workspace.projection(name)
    assert state is not None
    signed = sign_head(workspace, name, state)
    return Vouched(signed, 0 if signed is not None else state.blocks)


def _check_unsigned(store: DatasetStore, target: WritableDataset, here: Multihash) -> None:
    """`RepositoryError` E1090 when the history that is replaced there was signed, ours is not.

    Whoever pulls would find a statement that contradicts the chain.
    """
    said = stated_at(target)
    if said is None or blocks_behind(store, here, said.statement.head) is not None:
        return
    raise RepositoryError(
        f"the history of '{store.name}' at {target.address} is signed, and the one here cannot be",
        code="E1090",
        notes=("the private key of the dataset is not here", "nothing was changed there"),
        help="import the key (`odfbuild key import FILE`), or let its owner push",
    )


def _beside(vouched: Vouched) -> dict[str, bytes]:
    return {} if vouched.signed is None else {FILE: vouched.signed.encode()}


def _missing_there(
    store: DatasetStore,
    target: WritableDataset,
    here: Multihash,
    there: Multihash | None,
    wanted: Push,
) -> tuple[list[LocalBlock], Sequence[Link]]:
    """The blocks to send, and those that they replace there.

    `RepositoryError` E1027 and E1028 when the chain there has blocks that are not here, E1029 when
    it is another dataset.
    """
    if there is None:
        return local_chain(store, here), ()
    if blocks_behind(store, here, there) is not None:
        return local_chain(store, here, there), ()
    with target.offer(there, here) as offer:
        theirs = offer.blocks
    relation, mine, found = _compare(store, here, theirs, wanted.name)
    lost = found[len(found) - relation.there :]
    if wanted.replace:
        return mine, lost
    raise _refusal(relation, lost, target, wanted)


def _compare(
    store: DatasetStore, here: Multihash, theirs: Sequence[RawBlock], name: str
) -> tuple[Relation, list[LocalBlock], Sequence[Link]]:
    """How the chains relate, the whole chain here, and the blocks there."""
    mine = local_chain(store, here)
    base = None
    if theirs and not _is_seed(theirs[0]):
        base = store.rule_state(here)  # they follow the head here
    found = accept(theirs, base, name)
    if base is not None:
        return Relation(here, 0, len(found)), mine, found
    seed, other = identity_of([(hash, block) for hash, _, block in mine[:1]]), identity_of(found)
    if seed != other:
        raise RepositoryError(
            f"another dataset is at the address for '{name}'",
            code="E1029",
            notes=(f"here:  {seed.id}", f"there: {other.id}", "nothing was changed there"),
            help="push under another name: `--as NAME`; a dataset is never replaced by another one",
        )
    return relate([hash for hash, _, _ in mine], [hash for hash, _ in found]), mine, found


def _is_seed(first: RawBlock) -> bool:
    from odfbuild.odf.flatbuffers.form import decode_block

    try:
        return decode_block(first.data).prev_block_hash is None
    except ValueError:
        return True  # `accept` says what is wrong


def _refusal(
    relation: Relation, lost: Sequence[Link], target: WritableDataset, wanted: Push
) -> RepositoryError:
    name = wanted.name
    more = f"{count(relation.there, 'block')} with {count(records_of(lost), 'record')}"
    if relation.kind is Kind.BEHIND:
        return RepositoryError(
            f"{target.address} has {count(relation.there, 'block')} of '{name}' that are not here",
            code="E1027",
            notes=(f"only there: {more}", "nothing was changed there"),
            help=f"bring them here first: `odfbuild pull {name}`; to give them up: `odfbuild push "
            f"{name} --allow reset:{name}`",
        )
    common = f"the last common block is {relation.common}" if relation.common else "no common block"
    return RepositoryError(
        f"'{name}' and the chain at {target.address} have different histories",
        code="E1028",
        notes=(
            common,
            f"only here:  {count(relation.here, 'block')}",
            f"only there: {more}",
            "nothing was changed there",
        ),
        help=f"compare with `odfbuild log {name}`; to replace the history there: `odfbuild push "
        f"{name} --allow reset:{name}`",
    )


_MISSING = (Code.OBJECT_MISSING, Code.REPOSITORY_LACKS_FILE)
"""An object is neither here nor in the storage; nor where the dataset was published."""


def files_of(store: DatasetStore, objects: Sequence[ObjectFile]) -> Mapping[Multihash, Path]:
    """The file of each object, brought from the project's storage if need be.

    `RepositoryError` E1030 with those that are missing.
    """
    missing: list[ObjectFile] = []
    found: dict[Multihash, Path] = {}
    kinds: tuple[ObjectKind, ...] = ("data", "checkpoints")
    for kind in kinds:
        for each in objects:
            if each.kind == kind:
                try:
                    found[each.hash] = store.bring(kind, each.hash)
                except (IntegrityError, RepositoryError) as error:
                    if error.code not in _MISSING:
                        raise
                    missing.append(each)
    if missing:
        names = [f"{each.kind}/{each.hash}" for each in missing[:3]]
        more = [f"and {len(missing) - 3} more"] if len(missing) > 3 else []
        raise RepositoryError(
            f"{count(len(missing), 'object')} of '{store.name}' "
            f"{'is' if len(missing) == 1 else 'are'} neither here nor in the storage",
            code="E1030",
            notes=(*names, *more, "nothing was pushed"),
            help="push from a clone that has the data, or bring it here first: "
            "`odfbuild storage pull`, `odfbuild pull`",
        )
    return found


def _status(there: Multihash | None, lost: Sequence[Link]) -> TransferStatus:
    if there is None:
        return TransferStatus.NEW
    return TransferStatus.REPLACED if lost else TransferStatus.UPDATED
