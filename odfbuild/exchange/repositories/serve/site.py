"""The datasets that are served: what there is, and how a push becomes part of one.

A push is staged: objects in a folder of their own, checked by size and hash while they come; blocks
are checked with all rules of the chain before any object is asked for. The commit claims the
dataset, and compares the head. What this project defines itself is built here and never pushed to.
"""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from odfbuild.errors import Code, IntegrityError, OdfbuildError, StaleHeadError
from odfbuild.exchange.repositories.accept import (
    Link,
    accept,
    identity_of,
    rules_at,
)
from odfbuild.exchange.repositories.contract import ObjectFile, RawBlock
from odfbuild.exchange.repositories.dataset_config import read_config
from odfbuild.exchange.repositories.history import blocks_behind, local_chain
from odfbuild.exchange.repositories.serve.named import NamedObjects
from odfbuild.exchange.repositories.signing import sign_head
from odfbuild.exchange.repositories.smart.messages import (
    Failure,
    Internal,
    InvalidInterval,
    NameCollision,
    RefCollision,
    Refused,
    SeedBlockOverwriteRestricted,
)
from odfbuild.exchange.repositories.withdrawn import left_of
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import Seed
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.signed_head import FILE, SignedHead
from odfbuild.odf.stewardship import FILE as STATEMENTS
from odfbuild.odf.stewardship import Signed
from odfbuild.project.load import read_project
from odfbuild.project.model import Config
from odfbuild.store.claims import Waiting, held_elsewhere
from odfbuild.store.creation import receiving
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.disposable import prepare_cache_folder
from odfbuild.store.files import make_folder, read_inside
from odfbuild.store.garbage import renew
from odfbuild.store.signed_heads import keep_statement, seen_statement
from odfbuild.store.stewardship import THERE, checked_statements
from odfbuild.store.storage import ObjectKind
from odfbuild.values import Value

MOST_BLOCKS = 100_000
"""How many blocks a message of the Smart Transfer Protocol can be expected to hold."""

_WAITING = Waiting(seconds=20)
_KINDS: tuple[ObjectKind, ...] = ("data", "checkpoints")


class Absent(Exception):
    """There is no dataset of that name."""


class Listed(Value):
    """A dataset in the list of all."""

    alias: str
    state: Projection


@dataclass(slots=True)
class Push:
    """A push under way: what it announced, and when it was heard of last."""

    alias: str
    token: str
    expected: dict[tuple[ObjectKind, Multihash], int] = field(default_factory=dict)
    heard: float = field(default_factory=time.monotonic)


class Site:
    """The datasets of the project of `config`. Methods may be called from several threads."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self.workspace = config.workspace()
        self._scratch = config.cache / "scratch"
        self._named = NamedObjects(self.workspace)
        self.pushes: list[Push] = []
        self.draining = False

    # --- Reading ---

    def find(self, alias: str) -> DatasetStore | None:
        """A dataset that has a head, by its name in any case."""
        name = self.workspace.find(alias)
        return None if name is None else self.workspace.dataset(name)

    def datasets(self) -> list[Listed]:
        """All datasets whose chains can be read."""
        return [Listed(alias, state) for alias, state in self.workspace.readable().items()]

    def object_file(self, store: DatasetStore, kind: ObjectKind, hash: Multihash) -> Path | None:
        """The file of an object, from the storage if need be; `None` when there is none.

        A link could show any file of this machine, so links are no objects. Nor is what the history
        of this dataset does not refer to: the storage keeps the objects of others, too.
        """
        if (store, kind, hash) not in self._named:
            return None
        try:
            file = store.bring(kind, hash)
        except IntegrityError:
            return None
        return None if file.is_symlink() or not file.is_file() else file

    def passport(self, store: DatasetStore, name: str) -> bytes | None:
        """A passport by its name in the folder of the dataset; `None` where it cannot be made."""
        from odfbuild.exchange.passport.forms import form_of, passport

        form = form_of(name)
        try:
            if form is not None:
                return passport(self._config, self.workspace, store.name, form)
        except OdfbuildError:
            pass  # data files or the private key are not here
        return None

    def info(self, store: DatasetStore, name: str) -> bytes | None:
        """A file of `info/` that is for others; the head is signed if this machine has the key."""
        if name == FILE:
            state = self.workspace.projection(store.name)
            try:
                signed = None if state is None else sign_head(self.workspace, store.name, state)
                signed = signed or seen_statement(store)
            except OdfbuildError:
                signed = None
            return None if signed is None else signed.encode()
        if name not in ("alias", STATEMENTS):
            return None
        try:
            return read_inside(f"{store.folder}/info/{name}")
        except OSError:
            return None

    def blocks(
        self, store: DatasetStore, after: Multihash | None, stop: Multihash | None, force: bool
    ) -> list[RawBlock]:
        """The blocks of `(after, stop]`; `Refused` when `after` is not before `stop`."""
        head = store.head()
        if head is None:
            raise Refused(Internal(_pull("InitialRequest"), "the dataset is gone"))
        stop = stop or head
        if blocks_behind(store, head, stop) is None:
            raise Refused(InvalidInterval(head, stop))
        if after == stop:
            return []
        known = after is not None and store.has_block(after)
        before = store.read_block(after).sequence_number + 1 if known and after is not None else 0
        if (news := store.read_block(stop).sequence_number + 1 - before) > MOST_BLOCKS:
            why = f"there are {news:,} new blocks, and a message of this protocol holds "
            why += f"{MOST_BLOCKS:,}: pull with a newer odfbuild, or from the address without odf+"
            raise Refused(Internal(_pull("InitialRequest"), why))
        found = local_chain(store, stop, after)
        if after is not None and found[0][2].prev_block_hash is None and not force:
            raise Refused(InvalidInterval(stop, after))
        return [RawBlock(hash, data) for hash, data, _ in found]

    # --- Writing ---

    def check_free(self, alias: str) -> None:
        """`Refused` when a push must not write the dataset of this name."""
        project = read_project(self._config.root, self._config.given)
        defined = {each.name.lower() for each in project.definitions}
        defined |= {each.name.lower() for each in project.wrong if each.name}
        if alias.lower() in defined:
            raise Refused(_failed("InitialRequest", "this project builds that dataset itself"))
        pulled = alias.lower() in {each.lower() for each in self._config.external}
        if pulled or read_config(f"{self.workspace.state}/{alias}").pull_aliases:
            raise Refused(_failed("InitialRequest", "this project pulls that dataset itself"))

    def examine(
        self, alias: str, head: Multihash | None, blocks: Sequence[RawBlock], force: bool
    ) -> tuple[Link, ...]:
        """The blocks, if they may follow `head` or replace the history there; else `Refused`."""
        if not blocks:
            raise Refused(_failed("MetadataRequest", "there are no blocks"))
        state = self.workspace.projection(alias) if head is not None else None
        try:
            if state is not None and not (force and _is_seed(blocks[0])):
                base = rules_at(self.workspace.dataset(alias), state)
                return accept(blocks, base, alias)
            links = accept(blocks, None, alias)
        except OdfbuildError as error:
            raise Refused(_failed("MetadataRequest", error.message)) from None
        identity = identity_of(links)
        if state is not None and (identity.id, identity.kind) != (state.dataset_id, state.kind):
            raise Refused(SeedBlockOverwriteRestricted())
        if state is None and (other := self.workspace.resolve(identity.id)) is not None:
            raise Refused(
                NameCollision(alias)
                if other.lower() == alias.lower()
                else RefCollision(str(identity.id))
            )
        return links

    def has(self, alias: str, file: ObjectFile) -> bool:
        """Whether an object need not be sent: a push of it waits, or it is the dataset's already.

        Else whoever knows the hash of an object in the storage could make it one of his own.
        """
        store = self.workspace.dataset(alias)
        if _holds(self.staged(alias, file.kind, file.hash), file.size):
            return True
        if (store, file.kind, file.hash) not in self._named:
            return False
        if _holds(store.object_path(file.kind, file.hash), file.size):
            return True
        return store.storage is not None and store.storage.size(file.kind, file.hash) == file.size

    def staged(self, alias: str, kind: ObjectKind, hash: Multihash) -> Path:
        """Where an object of a push waits for its commit."""
        return self._incoming(alias) / kind / str(hash)

    def _incoming(self, alias: str) -> Path:
        # A folder for each dataset: `gc` removes those that nobody has written to for long.
        return self._scratch / f"incoming-{alias.replace('/', '+')}"

    def prepare(self, alias: str) -> None:
        """Make the folders that `staged` names."""
        prepare_cache_folder(self._config.cache)
        for kind in _KINDS:
            make_folder(self._incoming(alias) / kind)

    def commit(
        self,
        alias: str,
        head: Multihash | None,
        blocks: Sequence[RawBlock],
        links: Sequence[Link],
        info: Mapping[str, str],
    ) -> None:
        """Make the blocks part of the dataset; `OdfbuildError` when that cannot be done."""
        said = self._said(alias, info.get(STATEMENTS), links)
        objects, _ = left_of(links, said)
        missing = [each for each in objects if not self.has(alias, each)]
        if missing:
            raise IntegrityError(
                f"{len(missing)} objects were not sent, such as {missing[0].hash}",
                code=Code.OBJECT_MISSING,
            )
        signed = self._pushed_statement(alias, info.get(FILE), links)
        with self.workspace.claim([alias], _WAITING) as claim:
            if alias in claim.held:
                raise held_elsewhere(alias, claim.held[alias])
            store = self.workspace.dataset(alias)
            # Before the name is reserved, which fails in other words.
            store.check_head(head)
            with self._folder(store, head):
                for each in objects:
                    staged = self.staged(alias, each.kind, each.hash)
                    if staged.is_file():
                        store.put_object(each.kind, staged, each.hash)
                if head is not None and links[0][1].prev_block_hash != head:
                    renew(store, head)
                store.put_blocks([each.data for each in blocks])
                store.add_statements(said)
                store.swap_head(head, blocks[-1].hash)
                if signed is not None or not _fits(store, blocks[-1].hash):
                    keep_statement(store, signed)

    def vouch(self, alias: str, data: bytes) -> None:
        """Keep a statement about the head; `IntegrityError` E1081 when its owner did not sign.

        `Absent` when there is no such dataset.
        """
        store = self.find(alias)
        state = None if store is None else self.workspace.projection(store.name)
        if store is None or state is None:
            raise Absent
        keep_statement(store, _signed(data, state.dataset_id, state.head))

    def hear(self, alias: str, data: bytes) -> None:
        """Keep statements about withdrawn records; `PersonalDataError` unless the owner signed.

        `Absent` when there is no such dataset.
        """
        store = self.find(alias)
        state = None if store is None else self.workspace.projection(store.name)
        if store is None or state is None:
            raise Absent
        store.add_statements(checked_statements(data, state.dataset_id, alias, "a push", THERE))

    def _said(self, alias: str, text: str | None, links: Sequence[Link]) -> tuple[Signed, ...]:
        """What is said of withdrawn records, here and by a push."""
        store = self.workspace.dataset(alias)
        known = store.statements()
        data = b"" if text is None else _decoded(text)
        return (
            *known,
            *checked_statements(data, self._owner(alias, links), alias, "a push", THERE),
        )

    def _owner(self, alias: str, links: Sequence[Link]) -> DatasetId:
        event = links[0][1].event
        if isinstance(event, Seed):
            return event.dataset_id
        return self.workspace.projections([alias])[alias].dataset_id

    def _pushed_statement(
        self, alias: str, text: str | None, links: Sequence[Link]
    ) -> SignedHead | None:
        """The statement about its last block that came with a push."""
        if text is None:
            return None
        return _signed(_decoded(text), self._owner(alias, links), links[-1][0])

    @contextmanager
    def _folder(self, store: DatasetStore, head: Multihash | None) -> Iterator[None]:
        """The folder of the dataset, made for one that is new."""
        new = head is None
        state, keys = self.workspace.state, self.workspace.keys
        with receiving(state, keys, store) if new else nullcontext():
            yield


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b"?"  # no statement


def _holds(file: Path, size: int) -> bool:
    return file.is_file() and file.stat().st_size == size


def _fits(store: DatasetStore, head: Multihash) -> bool:
    """Whether the statement that is here, if any, is about the history of that head."""
    try:
        said = seen_statement(store)
    except IntegrityError:
        return False
    return said is None or blocks_behind(store, head, said.statement.head) is not None


def failure_of(error: OdfbuildError, phase: str) -> Failure:
    """What a peer is told of an error here."""
    if isinstance(error, StaleHeadError):
        return _failed(phase, "the head moved: pull and push again")
    return _failed(phase, error.message)


def _failed(phase: str, message: str) -> Internal:
    return Internal({"Push": phase}, message)


def _pull(phase: str) -> dict[str, str]:
    return {"Pull": phase}


def _is_seed(first: RawBlock) -> bool:
    from odfbuild.odf.flatbuffers.reader import decode_block

    try:
        return decode_block(first.data).prev_block_hash is None
    except ValueError:
        return False


def _signed(data: bytes, owner: DatasetId, head: Multihash) -> SignedHead:
    """A statement that the owner signed for that head."""
    try:
        signed = SignedHead.parse(data)
        if signed.holds and (signed.statement.dataset_id, signed.statement.head) == (owner, head):
            return signed
    except ValueError:
        pass
    raise IntegrityError("the signature of the head does not hold", code="E1081")
