"""Push and pull a branch: `refs/<branch>` in a repository, beside the heads that peers read.

Blocks and objects are stored first, then what is known of the branch, and last its reference, by
compare-and-swap. No head moves, on either side, and no statement is signed: it would be about the
head. Repositories that are folders or object stores hold branches, web servers show them; the Smart
Transfer Protocol has no words for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial

from odfbuild.errors import BranchError, RepositoryError
from odfbuild.exchange.repositories.accept import (
    Link,
    accept,
    check_identity,
    identity_of,
    objects_of,
    records_of,
)
from odfbuild.exchange.repositories.contract import (
    ObjectFile,
    Offer,
    Publication,
    RawBlock,
    RemoteDataset,
    WritableDataset,
)
from odfbuild.exchange.repositories.history import blocks_behind, local_chain
from odfbuild.exchange.repositories.outcome import Transfer, TransferStatus, Watcher
from odfbuild.exchange.repositories.parallel import each_on_its_own
from odfbuild.exchange.repositories.push import files_of
from odfbuild.odf.multihash import Multihash
from odfbuild.store.branches import BranchInfo, info_name
from odfbuild.store.claims import NOT_WAITING, Waiting, held_elsewhere
from odfbuild.store.creation import receiving
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.workspace import Workspace
from odfbuild.values import Value


class BranchTransfer(Value, kw_only=True):
    """Push or pull `branch` of the dataset `name`; `open` gives it elsewhere, `heads` its head.

    `replace` lets it replace a branch on the other side that has other blocks.
    """

    name: str
    branch: str
    address: str
    open: Callable[[], WritableDataset]
    heads: Callable[[], RemoteDataset]
    replace: bool = False
    data: bool = True


def push_branches(
    workspace: Workspace,
    wanted: Sequence[BranchTransfer],
    *,
    dry_run: bool = False,
    watcher: Watcher | None = None,
) -> tuple[Transfer, ...]:
    """Push the branch of each dataset on its own; never raises for the failure of one."""
    return each_on_its_own(wanted, partial(_push, workspace, dry_run), watcher)


def pull_branches(
    workspace: Workspace,
    wanted: Sequence[BranchTransfer],
    *,
    dry_run: bool = False,
    waiting: Waiting = NOT_WAITING,
    watcher: Watcher | None = None,
) -> tuple[Transfer, ...]:
    """Pull the branch of each dataset on its own; never raises for the failure of one."""
    return each_on_its_own(wanted, partial(_pull, workspace, dry_run, waiting), watcher)


def _push(
    workspace: Workspace, dry_run: bool, wanted: BranchTransfer, watcher: Watcher
) -> Transfer:
    store, target = workspace.dataset(wanted.name), wanted.open()
    here, there = store.branch_head(wanted.branch), target.head()
    assert here is not None, "whoever asked found the dataset in the branch"
    if here == there:
        return _nothing_new(wanted, here)
    forward = there is not None and blocks_behind(store, here, there) is not None
    if there is not None and not forward and not wanted.replace:
        raise _apart(wanted, "there", target.address)
    # What the head there has lies in the same folder.
    known = there if forward else wanted.heads().head()
    chain = local_chain(store, here, known)
    links = [(hash, block) for hash, _, block in chain]
    objects = objects_of(links)
    if not dry_run:
        watcher.sized(wanted.name, sum(each.size for each in objects))
        info = BranchInfo.read(store.folder, wanted.name, wanted.branch)
        publication = Publication(
            expected=there,
            blocks=[RawBlock(hash, data) for hash, data, _ in chain],
            objects=objects,
            files=files_of(store, objects),
            force=there is not None and not forward,
            info={info_name(wanted.branch): info.encode()},
        )
        target.publish(publication, lambda moved: watcher.moved(wanted.name, moved))
    return _moved(wanted, there, here, links, objects, replaced=there is not None and not forward)


def _pull(
    workspace: Workspace,
    dry_run: bool,
    waiting: Waiting,
    wanted: BranchTransfer,
    watcher: Watcher,
) -> Transfer:
    source = wanted.open()
    there = source.head()
    if there is None:
        raise no_such_branch(wanted.branch, wanted.address)
    store = workspace.dataset(wanted.name)
    here = store.branch_head(wanted.branch)
    if here is not None and blocks_behind(store, here, there) is not None:
        return _nothing_new(wanted, here)
    with workspace.claim([wanted.name], waiting) as claim:
        if wanted.name in claim.held:
            raise held_elsewhere(wanted.name, claim.held[wanted.name])
        known = here or store.main_head()
        with source.offer(there, known) as offer:
            links = _accepted(store, offer, known, wanted)
            forward = here is None or any(b.prev_block_hash == here for _, b in links)
            if not forward and not wanted.replace:
                raise _apart(wanted, "here", source.address)
            objects = objects_of(links) if wanted.data else ()
            if not dry_run:
                info = _info(source, wanted)
                new = not store.references()
                creating = receiving(workspace.state, workspace.keys, store)
                with creating if new else nullcontext():
                    _bring(store, offer, objects, wanted.name, watcher)
                    store.put_blocks([each.data for each in offer.blocks])
                    store.set_branch(wanted.branch, here, there, info)
    return _moved(wanted, here, there, links, objects, replaced=not forward)


def _accepted(
    store: DatasetStore, offer: Offer, known: Multihash | None, wanted: BranchTransfer
) -> tuple[Link, ...]:
    """The blocks there, checked: behind the known one, or all of a chain of the same dataset."""
    from odfbuild.odf.flatbuffers.form import decode_block

    try:
        follows = bool(offer.blocks) and decode_block(offer.blocks[0].data).prev_block_hash == known
    except ValueError:
        follows = False  # `accept` says what is wrong
    if follows and known is not None:
        return accept(offer.blocks, store.rule_state(known), wanted.name)
    links = accept(offer.blocks, None, wanted.name)
    if known is not None:
        check_identity(identity_of(links), store.identity(known), wanted.name, "the chain here")
    return links


def _bring(
    store: DatasetStore,
    offer: Offer,
    objects: Sequence[ObjectFile],
    name: str,
    watcher: Watcher,
) -> None:
    if not objects:
        return
    watcher.sized(name, sum(each.size for each in objects))
    offer.download(objects, store.path, lambda size: watcher.moved(name, size))
    if store.storage is not None:
        for each in objects:
            store.storage.put(each.kind, each.hash, store.object_path(each.kind, each.hash))


def _info(source: RemoteDataset, wanted: BranchTransfer) -> BranchInfo:
    """What is known there of the branch; `BranchError` E1104."""
    try:
        return BranchInfo.decode(source.info(info_name(wanted.branch)) or b"")
    except ValueError as error:
        raise BranchError(
            f"what is known of the branch '{wanted.branch}' of '{wanted.name}' is missing or "
            "damaged",
            code="E1104",
            dataset=wanted.name,
            notes=(f"at {source.address}", str(error)),
            help=f"push the branch again where it is: `odfbuild push -b {wanted.branch}`",
        ) from None


def no_such_branch(branch: str, address: str) -> BranchError:
    """The error for a branch that is not in a repository."""
    return BranchError(
        f"there is no branch '{branch}' at {address}",
        code="E1143",
        help=f"push it where it is: `odfbuild push -b {branch}`; or name its repository: "
        f"`odfbuild pull -b {branch} --from REPOSITORY`",
    )


def _apart(wanted: BranchTransfer, side: str, address: str) -> RepositoryError:
    verb, other = ("push", "pull") if side == "there" else ("pull", "push")
    return RepositoryError(
        f"the branch '{wanted.branch}' of '{wanted.name}' {side} has blocks that the other side "
        "does not have",
        code="E1144",
        dataset=wanted.name,
        notes=(f"there: {address}", "nothing was changed"),
        help=f"keep them: `odfbuild {other} -b {wanted.branch} {wanted.name}`; or give them up: "
        f"`odfbuild {verb} -b {wanted.branch} {wanted.name} --allow reset:{wanted.name}`",
    )


def _nothing_new(wanted: BranchTransfer, head: Multihash) -> Transfer:
    return Transfer(
        name=wanted.name,
        address=wanted.address,
        status=TransferStatus.UP_TO_DATE,
        before=head,
        after=head,
    )


def _moved(
    wanted: BranchTransfer,
    before: Multihash | None,
    after: Multihash,
    links: Sequence[Link],
    objects: Sequence[ObjectFile],
    *,
    replaced: bool,
) -> Transfer:
    status = TransferStatus.REPLACED if replaced else TransferStatus.UPDATED
    return Transfer(
        name=wanted.name,
        address=wanted.address,
        status=TransferStatus.NEW if before is None else status,
        before=before,
        after=after,
        blocks=len(links),
        records=records_of(links),
        objects=len(objects),
        bytes=sum(each.size for each in objects),
    )
