"""A dataset in the Simple Transfer Protocol: files at a place, named as in a dataset's folder.

Reading walks from the head to a known block, one block after the other, since each names the one
before; objects come several at once. Writing stores objects, then blocks, then moves the head.
Where a place has packs beside the blocks (see `store.packs`), which only odfbuild writes, they come
in place of their blocks, and are no more trusted than these.
Sources: RFC-007; Open Data Fabric, "Repository Contract", "Dataset Layout".
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar, cast

from odfbuild.errors import Code, IntegrityError, RepositoryError, StaleHeadError
from odfbuild.exchange.repositories.contract import (
    ObjectFile,
    Offer,
    Progress,
    Publication,
    RawBlock,
)
from odfbuild.odf.flatbuffers.reader import BRIEFLY, decode_block, decode_place
from odfbuild.odf.model import MetadataBlock
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.stewardship import FILE as STATEMENTS
from odfbuild.odf.stewardship import MOST_BYTES
from odfbuild.store.branches import HEAD
from odfbuild.store.files import PENDING, make_folder, move_file, sync
from odfbuild.store.packs import Pack, size_of_pack
from odfbuild.store.place import Place, ReadablePlace, TooLarge, Unconditional
from odfbuild.store.remote import CREDENTIALS, is_failure, scheme_of, why
from odfbuild.store.storage import damaged_object
from odfbuild.store.stored_blocks import PACKS
from odfbuild.values import Value

_T = TypeVar("_T")

AT_ONCE = 8
"""Files of one dataset that are transferred at once."""

_HEAD_BYTES = 1 << 10
_INFO_BYTES = 64 << 10
_BLOCK_BYTES = 16 << 20
_CHAIN_BYTES = 512 << 20
"""Blocks of one pull are kept in memory until they were checked."""


class Limits(Value):
    """How much a chain may be, in bytes; more is refused before it fills memory or disk."""

    block: int = _BLOCK_BYTES
    chain: int = _CHAIN_BYTES


_LIMITS = Limits()


class SimpleDataset:
    """The dataset at `place`; `name` is its alias there, and is written beside the chain.

    With a `branch` its head is that of the branch: another file, and everything else is shared.
    """

    def __init__(
        self,
        place: ReadablePlace,
        name: str | None = None,
        limits: Limits = _LIMITS,
        branch: str | None = None,
    ) -> None:
        self.address = place.address
        self.name = name
        self._branch = branch
        self._reference = f"refs/{branch or HEAD}"
        self._place = place
        self._limits = limits

    def __repr__(self) -> str:
        return f"SimpleDataset({self.address!r})"

    # --- Reading ---

    def head(self) -> Multihash | None:
        """The newest block; spelled in any multibase, with or without a newline."""
        return self._head()[0]

    def _head(self) -> tuple[Multihash | None, bytes | None]:
        """The newest block, and what the file of the head holds."""
        text = self._read(self._reference, _HEAD_BYTES)
        if text is None:
            return None, None
        try:
            return Multihash.parse(text.decode("ascii").strip()), text
        except ValueError:
            raise IntegrityError(
                f"the head of the dataset at {self.address} is not the hash of a block",
                code="E1009",
                notes=(f"content: {text[:100]!r}",),
                help="check the address; if it is right, its owner has to publish it again",
            ) from None

    @contextlib.contextmanager
    def offer(self, head: Multihash, after: Multihash | None) -> Iterator[Offer]:
        """The blocks of `(after, head]`; all of them when `after` is not among them."""
        yield SimpleOffer(self, head, tuple(self._walk(head, after))[::-1])

    def packed_offer(self, head: Multihash, after: Multihash | None) -> SimpleOffer | None:
        """The same by packs; `None` where there are none."""
        try:
            return SimpleOffer(self, head, tuple(self._walk(head, after, only_packs=True))[::-1])
        except _NoPacks:
            return None

    def info(self, name: str) -> bytes | None:
        """The file `info/<name>`."""
        return self._read(f"info/{name}", info_bytes(name))

    def fetch(self, each: ObjectFile, folder: Path, progress: Progress | None) -> None:
        """Bring an object to `folder/<kind>/<hash>`, unless it is there; syncs no list of names."""
        target = folder / each.kind / str(each.hash)
        if target.exists():
            return
        make_folder(target.parent)
        staged = target.parent / f"{PENDING}{secrets.token_hex(8)}"
        name = f"{each.kind}/{each.hash}"
        try:
            if not self._ask(name, lambda: self._place.download(name, staged, each.size, progress)):
                raise self._missing(f"object {name}")
            found = Multihash.of_contents(staged)
            if found != each.hash:
                raise IntegrityError(
                    f"object {each.hash} at {self.address} is not what its block says",
                    code="E1008",
                    notes=(f"its bytes hash to {found}",),
                    help="nothing was taken; its owner has to publish an intact copy",
                )
            move_file(staged, target, list_synced=False)
        finally:
            staged.unlink(missing_ok=True)

    def block(self, hash: Multihash) -> tuple[bytes, MetadataBlock]:
        """A block, whose bytes have that hash; of its event what adds up over a chain."""
        data = self.raw(hash)
        try:
            return data, decode_block(data, BRIEFLY)
        except ValueError as error:
            raise self._broken(f"block {hash} cannot be read: {error}") from None

    def raw(self, hash: Multihash) -> bytes:
        """The bytes of a block, which have that hash."""
        data = self._read(f"blocks/{hash}", self._limits.block)
        if data is None:
            raise self._missing(f"block {hash}")
        found = Multihash.sha3_256(data)
        if found != hash:
            raise IntegrityError(
                f"block {hash} at {self.address} does not have that hash",
                code="E1006",
                notes=(f"its bytes hash to {found}", *_encoded_anew(self.address, data)),
                help="nothing was taken; its owner has to publish an intact copy",
            )
        return data

    def place(self, hash: Multihash, data: bytes) -> tuple[int, Multihash | None]:
        """The number of a block and the one before it; the rest is left to who takes it."""
        try:
            return decode_place(data)
        except ValueError as error:
            raise self._broken(f"block {hash} cannot be read: {error}") from None

    def pack(self, end: Multihash) -> Mapping[Multihash, bytes] | None:
        """The blocks of the pack that ends with a block; `None` where there is no such pack."""
        name = f"{PACKS}/{end}"
        try:
            data = self._read(name, self._limits.chain)
        except RepositoryError as error:
            if error.code != Code.REPOSITORY_FORBIDS:
                raise
            return None  # some servers answer so for what is not there
        if data is None:
            return None
        try:
            return Pack.parse(data, end).blocks
        except ValueError as error:
            raise IntegrityError(
                f"a pack of blocks at {self.address} is damaged: {error}",
                code="E1671",
                notes=(f"file: {name}",),
                help="nothing was taken; its owner has to remove that file, of which the single "
                "blocks are there, too",
            ) from None

    def _walk(
        self, head: Multihash, after: Multihash | None, *, only_packs: bool = False
    ) -> Iterator[RawBlock]:
        """Blocks of `(after, head]`, newest first, each checked as the contract says.

        Raises `_NoPacks` where `only_packs` are wanted, and there are none.
        """
        current: Multihash | None = head
        number: int | None = None
        total = 0
        packs = _Packs(self)
        while current is not None and current != after:
            data = packs.block(current, number)
            place, before = self.place(current, data)
            if only_packs and packs.lacking:
                raise _NoPacks
            total += len(data)
            if total > self._limits.chain:
                problem = f"the new blocks are more than {self._limits.chain >> 20:,} MiB"
                raise _refused(self.address, problem)
            # Numbers go down by one, so that no chain is longer than its head says.
            if number is not None and place != number - 1:
                raise self._broken(
                    f"block {current} has the number {place}, and the one behind it {number}"
                )
            number = place
            if (number == 0) != (before is None):
                raise self._broken(f"block {current} has the number {number}, and is no seed")
            yield RawBlock(current, data)
            current = before

    # --- Writing ---

    def publish(self, publication: Publication, progress: Progress | None = None) -> None:
        """Store objects and blocks, move the head, and then write what lies beside the chain.

        What is known of a branch is written before it moves.
        """
        self._check_head(publication.expected)
        self._ask("", self._writable.tidy)
        in_parallel(
            lambda each: self._send(each, publication.files[each.hash], progress),
            distinct(publication.objects),
        )
        in_parallel(lambda each: self._store(f"blocks/{each.hash}", each.data), publication.blocks)
        in_parallel(lambda each: self._write(f"{PACKS}/{each[0]}", each[1]()), publication.packs)
        if publication.blocks:
            self._check_conditions(publication.blocks[-1])
        before = self._check_head(publication.expected)
        if self.name is not None:
            self._write("info/alias", self.name.encode())
        if self._branch is not None:
            self._write_beside(publication)
        if publication.blocks:
            self._move_head(publication.expected, before, publication.blocks[-1].hash)
        if self._branch is None:
            self._write_beside(publication)
            names = (f"{each.kind}/{each.hash}" for each in publication.withdrawn)
            in_parallel(lambda name: self._ask(name, lambda: self._writable.remove(name)), names)

    def _write_beside(self, publication: Publication) -> None:
        for name, data in publication.info.items():
            self._write(f"info/{name}", data)
        for name, data in publication.passports.items():
            self._write(name, data)

    def _send(self, each: ObjectFile, file: Path, progress: Progress | None) -> None:
        """Store an object, unless it is there."""
        name = f"{each.kind}/{each.hash}"
        size = file.stat().st_size
        if self._ask(name, lambda: self._writable.size(name)) == size:
            return
        found = Multihash.of_contents(file)
        if found != each.hash:
            raise damaged_object(each.hash, file, found)
        self._ask(name, lambda: self._writable.upload(file, name, progress))

    def _store(self, name: str, data: bytes) -> None:
        """Store a block, unless it is there."""
        if self._ask(name, lambda: self._writable.size(name)) != len(data):
            self._write(name, data)

    def _write(self, name: str, data: bytes) -> None:
        self._ask(name, lambda: self._writable.write(name, data))

    def _check_conditions(self, newest: RawBlock) -> None:
        """Refuse a store that ignores conditions: it lets a block be created that is there.

        Only such a store writes it again, and then the same bytes.
        """
        name = f"blocks/{newest.hash}"
        if self._ask(name, lambda: self._writable.swap(name, None, newest.data)):
            raise _unconditional(self.address, "it ignores the conditions of conditional requests")

    def _check_head(self, expected: Multihash | None) -> bytes | None:
        """What the file of the head holds; `StaleHeadError` when it is not `expected`."""
        actual, text = self._head()
        if actual != expected:
            raise self._moved(expected, actual)
        return text

    def _move_head(self, expected: Multihash | None, before: bytes | None, new: Multihash) -> None:
        name, text = self._reference, str(new).encode()
        if not self._ask(name, lambda: self._writable.swap(name, before, text)):
            actual = self.head()
            # A request whose answer was lost is sent again, and meets what it has written.
            if actual != new:
                raise self._moved(expected, actual)

    @property
    def _writable(self) -> Place:
        """The place, which can be written: `open.py` gives no other to who publishes."""
        return cast(Place, self._place)

    # --- Helpers ---

    def _read(self, name: str, limit: int) -> bytes | None:
        return self._ask(name, lambda: self._place.read(name, limit))

    def _ask(self, name: str, question: Callable[[], _T]) -> _T:
        return ask(self.address, name, question)

    def _missing(self, what: str) -> RepositoryError:
        return RepositoryError(
            f"{what} is missing at {self.address}",
            code=Code.REPOSITORY_LACKS_FILE,
            notes=("its chain refers to it",),
            help="if the dataset was just published again, run the command again; otherwise its "
            "owner has to publish it",
        )

    def _broken(self, problem: str) -> IntegrityError:
        return IntegrityError(
            f"the chain at {self.address} is broken: {problem}",
            code="E1010",
            help="nothing was taken; its owner has to publish an intact chain",
        )

    def _moved(self, expected: Multihash | None, actual: Multihash | None) -> StaleHeadError:
        return StaleHeadError(
            f"the dataset at {self.address} was changed by another writer in the meantime",
            code="E1016",
            notes=(f"expected head: {expected or 'none'}", f"actual head:   {actual or 'none'}"),
            help="run `odfbuild pull` to see what is new there, then push again",
        )


def info_bytes(name: str) -> int:
    """How large a file of `info/` may be."""
    return MOST_BYTES if name == STATEMENTS else _INFO_BYTES


class _NoPacks(Exception):
    """There are no packs at a place."""


class _Packs:
    """The blocks of a dataset, newest first, of packs as far as there are any.

    A pack is asked for where one ends; after one that is `lacking`, none is.
    """

    def __init__(self, dataset: SimpleDataset) -> None:
        self._dataset = dataset
        self._here: Mapping[Multihash, bytes] = {}
        self.lacking = False

    def block(self, hash: Multihash, follower: int | None) -> bytes:
        """A block, before the one of the number `follower`, if there is one."""
        if hash not in self._here and follower is not None:
            self._ask(hash, follower - 1)
        data = self._here.get(hash)
        if data is not None:
            return data
        data = self._dataset.raw(hash)
        if follower is None:
            self._ask(hash, self._dataset.place(hash, data)[0])
        return data

    def _ask(self, end: Multihash, number: int) -> None:
        if not self.lacking and size_of_pack(number) > 1:
            self._here = self._dataset.pack(end) or {}
            self.lacking = not self._here


class SimpleOffer:
    """What a dataset has behind a known block."""

    def __init__(self, dataset: SimpleDataset, head: Multihash, blocks: Sequence[RawBlock]) -> None:
        self.head = head
        self.blocks = blocks
        self._dataset = dataset

    def download(
        self, objects: Sequence[ObjectFile], folder: Path, progress: Progress | None = None
    ) -> None:
        """Bring each object to `folder/<kind>/<hash>`, several at once, those there already not."""
        wanted = distinct(objects)
        in_parallel(lambda each: self._dataset.fetch(each, folder, progress), wanted)
        for kind in {each.kind for each in wanted}:
            sync(folder / kind)


def _encoded_anew(address: str, data: bytes) -> tuple[str, ...]:
    """What explains other bytes of a block that can be read."""
    try:
        decode_block(data)
    except ValueError:
        return ()
    if not address.startswith("http"):
        return ()
    return (
        "it can be read: nodes of the reference implementation encode old blocks anew when they "
        f"send them so; try odf+{address}",
    )


def ask(address: str, name: str, question: Callable[[], _T]) -> _T:
    """The answer of a place about the file `name`, or an error that says what is wrong there."""
    try:
        return question()
    except TooLarge as error:
        raise _refused(address, str(error)) from None
    except Unconditional as error:
        raise _unconditional(address, str(error)) from None
    except Exception as error:
        if not is_failure(error):
            raise
        raise RepositoryError(
            f"{address} cannot be used: {why(error)}",
            code="E1001",
            notes=(f"file: {name}",) if name else (),
            help=CREDENTIALS
            if scheme_of(address)
            else "check the address, and that you may read the folder, or write to it",
        ) from None


def _refused(address: str, problem: str) -> RepositoryError:
    return RepositoryError(
        f"{address} sends too much: {problem}",
        code="E1011",
        help="nothing was taken; ask its owner whether this is right",
    )


def _unconditional(address: str, reason: str) -> RepositoryError:
    return RepositoryError(
        f"{address} cannot be pushed to: two writers at once could overwrite each other",
        code="E1017",
        notes=(reason,),
        help="use a store with conditional writes (S3, Google Cloud Storage, Azure, current "
        "MinIO), a folder, or `odfbuild serve`",
    )


def in_parallel(work: Callable[[_T], object], items: Iterable[_T], at_once: int = AT_ONCE) -> None:
    """Do `work` for all items, several at once; after an error none is begun."""
    todo = list(items)
    if len(todo) < 2:
        for item in todo:
            work(item)
        return
    with ThreadPoolExecutor(min(at_once, len(todo)), thread_name_prefix="transfer") as pool:
        begun = [pool.submit(work, each) for each in todo]
        try:
            for future in begun:
                future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def distinct(objects: Iterable[ObjectFile]) -> list[ObjectFile]:
    """Each object once: several blocks may share a checkpoint."""
    return list({(each.kind, each.hash): each for each in objects}.values())
