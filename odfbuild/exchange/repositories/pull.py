"""Bring chains of this project forward from where they are published.

The blocks are stored as the bytes that came, once all of them are accepted and their objects are
here; the head moves last, by compare-and-swap. Whoever is killed in between leaves nothing that
anybody sees, and complete objects are not fetched again. No private key is needed. Sources: Open
Data Fabric, "Dataset Sharing"; reference behaviour, "sync semantics".
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial

from odfbuild.errors import OdfbuildError, RepositoryError
from odfbuild.exchange.repositories.accept import (
    Link,
    accept,
    check_identity,
    identity_of,
    records_of,
    rules_at,
)
from odfbuild.exchange.repositories.contract import ObjectFile, Offer, RawBlock, RemoteDataset
from odfbuild.exchange.repositories.dataset_config import DatasetConfig, write_config
from odfbuild.exchange.repositories.head_rules import Line, Vouched
from odfbuild.exchange.repositories.history import blocks_behind, local_chain
from odfbuild.exchange.repositories.outcome import Transfer, TransferStatus, Watcher
from odfbuild.exchange.repositories.parallel import each_on_its_own
from odfbuild.exchange.repositories.relation import Kind, Relation, relate
from odfbuild.exchange.repositories.signing import check_vouched, line_of, settled
from odfbuild.exchange.repositories.withdrawn import left_of, statements_at
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.stewardship import Signed
from odfbuild.python_gc import paused_collector
from odfbuild.store.claims import NOT_WAITING, Waiting, held_elsewhere
from odfbuild.store.creation import receiving
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.garbage import renew
from odfbuild.store.signed_heads import keep_statement
from odfbuild.store.workspace import Workspace
from odfbuild.values import Value
from odfbuild.wording import count


class Pull(Value, kw_only=True):
    """Bring the dataset `name` forward from the one that `open` gives.

    `reference` is what `info/config` of a new dataset names as its origin. `expected` is its
    identity, if the reference says it. `to` is the last block to take: its hash, or the beginning
    or end of it. Without `data` only the chain comes. `replace` lets a history that was rewritten
    there replace the one that is here. With `signed` its owner has to have signed the head there;
    `unsigned` consents to a head that is not signed where one was before.
    An `external` dataset is moved by nothing but pulls.
    """

    name: str
    address: str
    reference: str
    open: Callable[[], RemoteDataset]
    expected: DatasetId | None = None
    to: str | None = None
    data: bool = True
    replace: bool = False
    signed: bool = False
    unsigned: bool = False
    external: bool = False


def pull(
    workspace: Workspace,
    wanted: Sequence[Pull],
    *,
    dry_run: bool = False,
    waiting: Waiting = NOT_WAITING,
    watcher: Watcher | None = None,
) -> tuple[Transfer, ...]:
    """Pull each dataset on its own; never raises for the failure of one."""
    work = partial(_pull, workspace, _Identities(workspace), dry_run, waiting)
    with paused_collector():  # the blocks of long chains are many objects
        return each_on_its_own(wanted, work, watcher)


def _pull(
    workspace: Workspace,
    identities: _Identities,
    dry_run: bool,
    waiting: Waiting,
    wanted: Pull,
    watcher: Watcher,
) -> Transfer:
    source = wanted.open()
    there, said = settled(source)
    if there is None:
        raise RepositoryError(
            f"there is no dataset at {source.address}",
            code="E1020",
            help="check name and address; `odfbuild ls --remote REPOSITORY` lists what is there, "
            "where that is possible",
        )
    store = workspace.dataset(wanted.name)
    attempt = _Attempt(workspace, store, wanted, identities, watcher, said)
    if dry_run or (store.head() == there and wanted.to is None):
        return attempt.run(source, there, dry_run)
    with workspace.claim([wanted.name], waiting) as claim:
        if wanted.name in claim.held:
            raise held_elsewhere(wanted.name, claim.held[wanted.name])
        return attempt.run(source, there, dry_run)


class _News(Value):
    """New blocks and what they mean: `lost` are the blocks here that they replace.

    `served` is the whole history there, also behind the last block that is wanted.
    """

    blocks: Sequence[RawBlock]
    links: Sequence[Link]
    relation: Relation
    served: Line
    id: DatasetId
    lost: Sequence[Link] = ()


class _Attempt(Value):
    """One dataset on its way; `said` is the statement about its head there."""

    workspace: Workspace
    store: DatasetStore
    wanted: Pull
    identities: _Identities
    watcher: Watcher
    said: bytes | None

    def run(self, source: RemoteDataset, there: Multihash, dry_run: bool) -> Transfer:
        """Look at what the other side has, and take what is new and right."""
        here = self.store.head()
        if here is not None:
            self._check_expected(here)
            behind = blocks_behind(self.store, here, there)
            if behind is not None:
                return self._nothing_new(here, there, behind, source, dry_run)
        with source.offer(there, here) as offer:
            _check_complete(offer, there, source)
            news = self._examine(offer, here)
            if news is None or not news.blocks:
                return _up_to_date(self.wanted, here)
            diverged = news.relation.kind is Kind.DIVERGED
            try:
                vouched = self._vouched(source, here, news.served, news.id)
            except OdfbuildError as error:
                raise (error.noted(*_differences(news)) if diverged else error) from None
            if diverged and not self.wanted.replace:
                raise _rewritten(self.wanted, news, source)
            said = statements_at(source, news.id, self.wanted.name)
            known = () if here is None else self.store.statements()
            left, _ = left_of(news.links, (*known, *said))
            objects = left if self.wanted.data else ()
            new_head = news.blocks[-1].hash
            if not dry_run:
                if here is None:
                    self._create(offer, news, objects, vouched, said)
                else:
                    self._advance(offer, news, objects, here, vouched, said)
        return Transfer(
            name=self.wanted.name,
            address=source.address,
            status=_status(here, news),
            before=here,
            after=new_head,
            blocks=len(news.blocks),
            records=records_of(news.links),
            objects=len(objects),
            bytes=sum(each.size for each in objects),
            lost_blocks=len(news.lost),
            lost_records=records_of(news.lost),
            vouched=vouched,
        )

    def _vouched(
        self,
        source: RemoteDataset,
        here: Multihash | None,
        served: Line,
        id: DatasetId,
        *,
        news: bool = True,
    ) -> Vouched:
        """Check what vouches for the head there; what only pulls move here counts, too."""
        pinned = self.wanted.external and here is not None
        state = self.workspace.projection(self.wanted.name) if pinned else None
        return check_vouched(
            self.store,
            source.address,
            id,
            served,
            self.said,
            required=self.wanted.signed,
            pinned=None if state is None else line_of(self.store, state.head, state.blocks),
            reset=self.wanted.replace,
            unsigned=self.wanted.unsigned,
            news=news,
        )

    def _check_expected(self, here: Multihash) -> None:
        """Whether the dataset that has this name here is the one that was asked for."""
        expected = self.wanted.expected
        if expected is None:
            return
        state = self.workspace.projection(self.wanted.name)
        if state is not None and state.dataset_id != expected:
            raise RepositoryError(
                f"'{self.wanted.name}' is another dataset here",
                code="E1023",
                notes=(f"asked for: {expected}", f"here:      {state.dataset_id}"),
                help="pull it under another name: `--as NAME`",
            )

    def _nothing_new(
        self, here: Multihash, there: Multihash, behind: int, source: RemoteDataset, dry_run: bool
    ) -> Transfer:
        """The head there is in the history here, `behind` blocks before its head."""
        self._up_to_the_last_wanted((), here)
        state = self.workspace.projection(self.wanted.name)
        assert state is not None
        served = line_of(self.store, there, state.blocks - behind)
        vouched = self._vouched(source, here, served, state.dataset_id, news=False)
        said = statements_at(source, state.dataset_id, self.wanted.name)
        if not dry_run:
            keep_statement(self.store, vouched.signed)
            self.store.add_statements(said)
        if behind == 0 or self.wanted.to is not None:
            return _up_to_date(self.wanted, here, vouched)
        if not self.wanted.replace:
            raise RepositoryError(
                f"'{self.wanted.name}' has {count(behind, 'block')} that {source.address} does not "
                "have",
                code="E1026",
                notes=(f"head here:  {here}", f"head there: {there}", "nothing was changed"),
                help=f"publish them: `odfbuild push {self.wanted.name} --to REPOSITORY`; or give "
                f"them up: `odfbuild pull {self.wanted.name} --allow reset:{self.wanted.name}`",
            )
        lost = local_chain(self.store, here, there)
        if not dry_run:
            renew(self.store, here)
            self.store.swap_head(here, there)
        return Transfer(
            name=self.wanted.name,
            address=source.address,
            status=TransferStatus.REPLACED,
            before=here,
            after=there,
            lost_blocks=len(lost),
            lost_records=records_of([(hash, block) for hash, _, block in lost]),
            vouched=vouched,
        )

    def _examine(self, offer: Offer, here: Multihash | None) -> _News | None:
        """What is new, if it may become part of the chain here; `None` up to a block of it."""
        blocks = self._up_to_the_last_wanted(offer.blocks, here)
        if not blocks:
            return None
        name = self.wanted.name
        if here is not None and _previous(blocks[0]) == here:
            state = self.workspace.projection(name)
            assert state is not None
            links = accept(blocks, rules_at(self.store, state), name)
            known = line_of(self.store, here, state.blocks)
            served = Line(
                {here: state.blocks, **_numbered(offer.blocks, state.blocks)}, known.number
            )
            return _News(blocks, links, Relation(here, 0, len(blocks)), served, state.dataset_id)
        links = accept(blocks, None, name)
        mine = [] if here is None else local_chain(self.store, here)
        self._check_identity(links, is_new=here is None)
        relation = relate([hash for hash, _, _ in mine], [hash for hash, _ in links])
        new = len(blocks) - relation.there
        lost = [(hash, block) for hash, _, block in mine[len(mine) - relation.here :]]
        return _News(
            blocks[new:],
            links[new:],
            relation,
            Line(_numbered(offer.blocks, 0)),
            identity_of(links).id,
            lost if relation.there else (),
        )

    def _check_identity(self, links: Sequence[Link], *, is_new: bool) -> None:
        found, name = identity_of(links), self.wanted.name
        if self.wanted.expected is not None:
            check_identity(found, self.wanted.expected, name, "it was asked for")
        if is_new:
            self.identities.check_free(found.id, name)
            return
        state = self.workspace.projection(name)
        if state is not None:
            check_identity(found, state.dataset_id, name, "the chain here")

    def _up_to_the_last_wanted(
        self, blocks: Sequence[RawBlock], here: Multihash | None
    ) -> Sequence[RawBlock]:
        to = self.wanted.to
        if to is None:
            return blocks
        found = [n for n, each in enumerate(blocks) if _is_called(each.hash, to)]
        if len(found) == 1:
            return blocks[: found[0] + 1]
        known = [] if here is None else [hash for hash, _, _ in local_chain(self.store, here)]
        if not found and sum(_is_called(each, to) for each in known) == 1:
            return ()
        problem = "is more than one block" if found else "is no block"
        raise RepositoryError(
            f"'{to}' {problem} of '{self.wanted.name}'",
            code="E1031",
            help="give the hash of a block, or more of its beginning or end",
        )

    def _create(
        self,
        offer: Offer,
        news: _News,
        objects: Sequence[ObjectFile],
        vouched: Vouched,
        said: Sequence[Signed],
    ) -> None:
        workspace, store = self.workspace, self.store
        with receiving(workspace.state, workspace.keys, store):
            self._bring(offer, objects)
            store.put_blocks([each.data for each in news.blocks])
            write_config(store.path, DatasetConfig(pull_aliases=(self.wanted.reference,)))
            keep_statement(store, vouched.signed)
            store.add_statements(said)
            with store.knowing(news.links):
                store.swap_head(None, news.blocks[-1].hash)

    def _advance(
        self,
        offer: Offer,
        news: _News,
        objects: Sequence[ObjectFile],
        here: Multihash,
        vouched: Vouched,
        said: Sequence[Signed],
    ) -> None:
        self._bring(offer, objects)
        if news.lost:
            renew(self.store, here)
        self.store.put_blocks([each.data for each in news.blocks])
        keep_statement(self.store, vouched.signed)
        self.store.add_statements(said)
        with self.store.knowing(news.links):
            self.store.swap_head(here, news.blocks[-1].hash)

    def _bring(self, offer: Offer, objects: Sequence[ObjectFile]) -> None:
        if not objects:
            return
        name, store = self.wanted.name, self.store
        self.watcher.sized(name, sum(each.size for each in objects))
        offer.download(objects, store.path, lambda size: self.watcher.moved(name, size))
        if store.storage is not None:
            for each in objects:
                store.storage.put(each.kind, each.hash, store.object_path(each.kind, each.hash))


class _Identities:
    """Which datasets are here, by identity; each is told apart from those that come."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._lock = threading.Lock()
        self._names: dict[DatasetId, str] | None = None

    def check_free(self, id: DatasetId, name: str) -> None:
        """`RepositoryError` E1024 when another dataset here is the same; else it is `name` now."""
        with self._lock:
            if self._names is None:
                states = self._workspace.readable()
                self._names = {state.dataset_id: alias for alias, state in states.items()}
            other = self._names.setdefault(id, name)
        if other != name:
            raise RepositoryError(
                f"the dataset is here already, as '{other}'",
                code="E1024",
                dataset=name,
                notes=(str(id),),
                help=f"bring that one forward: `odfbuild pull {other}`; or rename it first "
                "(docs/rename.md)",
            )


def _check_complete(offer: Offer, there: Multihash, source: RemoteDataset) -> None:
    """`RepositoryError` E1022 when the head there is not among the blocks that came."""
    if all(each.hash != there for each in offer.blocks):
        raise RepositoryError(
            f"{source.address} sent blocks without the head that it named",
            code="E1022",
            notes=(f"head:   {there}", f"blocks: {len(offer.blocks)}"),
            help="nothing was changed here; run the command again, or ask the owner of the dataset",
        )


def _numbered(blocks: Sequence[RawBlock], before: int) -> dict[Multihash, int]:
    """The number of each block, of which each names the one before."""
    return {each.hash: number for number, each in enumerate(blocks, before + 1)}


def _up_to_date(wanted: Pull, head: Multihash | None, vouched: Vouched | None = None) -> Transfer:
    return Transfer(
        name=wanted.name,
        address=wanted.address,
        status=TransferStatus.UP_TO_DATE,
        before=head,
        after=head,
        vouched=vouched,
    )


def _status(here: Multihash | None, news: _News) -> TransferStatus:
    if here is None:
        return TransferStatus.NEW
    return TransferStatus.REPLACED if news.lost else TransferStatus.UPDATED


def _rewritten(wanted: Pull, news: _News, source: RemoteDataset) -> RepositoryError:
    name = wanted.name
    return RepositoryError(
        f"the history of '{name}' was rewritten at {source.address}",
        code="E1025",
        notes=(*_differences(news), "nothing was changed"),
        help=f"ask its owner why; to give up what is only here: `odfbuild pull {name} --allow "
        f"reset:{name}`",
    )


def _differences(news: _News) -> tuple[str, ...]:
    """The last common block, and what only one of the two histories has."""
    relation = news.relation
    here, there = count(relation.here, "block"), count(relation.there, "block")
    return (
        f"the last common block is {relation.common}" if relation.common else "no common block",
        f"only here:  {here} with {count(records_of(news.lost), 'record')}",
        f"only there: {there} with {count(records_of(news.links), 'record')}",
    )


def _previous(first: RawBlock) -> Multihash | None:
    from odfbuild.odf.flatbuffers.form import decode_block

    try:
        return decode_block(first.data).prev_block_hash
    except ValueError:
        return None  # `accept` says what is wrong


def _is_called(hash: Multihash, text: str) -> bool:
    return str(hash).startswith(text) or str(hash).endswith(text)
