"""Blocks of a chain in the storage of the project, with a cache of those that were read or written.

`blocks/<hash>` are single blocks, `packs/<hash>` are packs (see `packs`). Nothing is replaced there
and nothing is removed, so clones that append at the same time cannot lose each other's blocks: each
has a head of its own. Whatever comes from the storage is checked by its hash.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.errors import EnvironmentProblem, IntegrityError
from odfbuild.odf.multihash import Multihash
from odfbuild.store.disposable import prepare_cache_folder
from odfbuild.store.files import read_bounded, stage
from odfbuild.store.packs import SIZES, Link, Pack, cut, pack, size_of_pack

if TYPE_CHECKING:
    from odfbuild.store.storage import Storage

BLOCKS = "blocks"
PACKS = "packs"

_AT_ONCE = 8
_OPEN_PACKS = 4
"""Packs that are kept in memory: a chain is read from its head on."""
_LARGEST = 1 << 28
"""Bytes that a block or a pack may have."""


class StoredBlocks:
    """The blocks of one chain in `storage`; `cache` is a folder for copies of them.

    Methods may be called from several threads at once. `EnvironmentProblem` E0911 when the storage
    cannot be used, E0914 when it has to be and this is `offline`.
    """

    def __init__(self, storage: Storage, cache: Path, *, offline: bool = False) -> None:
        self.storage = storage
        self.cache = cache
        self.offline = offline
        self._packs: OrderedDict[Multihash, Pack] = OrderedDict()
        self._ends: set[Multihash] = set()
        """Blocks with which packs end, as far as what was read before tells."""
        self._put: set[Multihash] = set()
        """Blocks that were stored under their names."""
        self._mutex = threading.Lock()

    @property
    def address(self) -> str:
        """The address of the storage."""
        return self.storage.address

    @property
    def folder(self) -> Path:
        """Where copies of single blocks lie, by their hashes."""
        return self.cache / BLOCKS

    def here(self) -> Iterator[Multihash]:
        """The blocks of which a copy is here, sorted."""
        found = set(_names(self.folder))
        for end in _names(self.cache / PACKS):
            known = self._cached_pack(end)
            found.update(known.blocks if known else ())
        yield from sorted(found)

    def read(self, block: Multihash) -> bytes | None:
        """The bytes of a block; `None` where neither its name nor what was read before tells where.

        `IntegrityError` E0674 when it is in a pack that is damaged.
        """
        data = self._copy(block)
        if data is not None:
            return data
        orders = (self._read_packed, self._read_single)
        for order in orders if block in self._ends else orders[::-1]:
            if (data := order(block)) is not None:
                return data
        return None

    def search(self, block: Multihash, heads: Iterable[Multihash]) -> bytes | None:
        """The bytes of a block in the history of one of `heads`; looks through its packs."""
        for head in heads:
            current: Multihash | None = head
            while current is not None:
                found = self._pack(current) if current in self._ends else None
                if found is not None:
                    if block in found.blocks:
                        return found.blocks[block]
                    current = found.before
                    continue
                data = self.read(current)
                if data is None or current == block:
                    break
                current = self._expect(Link.of(data))
            if (data := self.read(block)) is not None:
                return data
        return None

    def pack(self, end: Multihash) -> bytes | None:
        """The bytes of the pack that ends with a block; `None` where there is no such pack."""
        found = self._pack(end)
        return None if found is None else found.data

    def put(self, blocks: Sequence[bytes]) -> None:
        """Store blocks of one chain, oldest first: complete packs, and what remains singly."""
        parts = cut([Link.of(data) for data in blocks])
        self._upload({f"{BLOCKS}/{each.hash}": each.data for each in parts.loose})
        for each in parts.loose:
            self._keep(BLOCKS, each.hash, each.data)
        self._put.update(each.hash for each in parts.loose)
        self._put_packs(parts.packs)
        for end in parts.ends:
            self._put_packs(list(filter(None, [self._gathered(end)])))

    def anchor(self, head: Multihash, data: bytes) -> None:
        """See to it that a block, which becomes a head, is found by its name.

        A history that was cut back may end within a pack.
        """
        names = (f"{BLOCKS}/{head}", f"{PACKS}/{head}")
        if head in self._put or any(self.storage.has(name) for name in names):
            return
        links = [Link.of(data)]
        while size_of_pack(links[-1].number - 1) < SIZES[0] and links[-1].before is not None:
            before = self.read(links[-1].before)
            if before is None:
                break
            links.append(Link.of(before))
        self.put([each.data for each in reversed(links)])

    def _put_packs(self, packs: Sequence[Sequence[Link]]) -> None:
        made = {links[-1].hash: pack(links) for links in packs}
        self._upload({f"{PACKS}/{end}": data for end, data in made.items()})
        self._put.update(made)
        for end, data in made.items():
            self._keep(PACKS, end, data)
        copies = set(_names(self.folder))
        for link in chain.from_iterable(packs):
            if link.hash in copies:
                (self.folder / str(link.hash)).unlink(missing_ok=True)

    def _gathered(self, end: Link) -> tuple[Link, ...] | None:
        """The blocks of the pack that ends there; `None` where the storage lacks any of them."""
        links = [end]
        for _ in range(size_of_pack(end.number) - 1):
            before = links[-1].before
            data = None if before is None else self.read(before)
            if data is None:
                return None  # they are in the dataset's folder: it is about to be moved
            links.append(Link.of(data))
        return tuple(reversed(links))

    def _upload(self, files: dict[str, bytes]) -> None:
        if len(files) == 1:
            [(name, data)] = files.items()
            self.storage.write(name, data)
        elif files:
            with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="blocks") as pool:
                list(pool.map(lambda each: self.storage.write(*each), files.items()))

    # --- Reading ---

    def opened(self, block: Multihash) -> bytes | None:
        """The bytes of a block, if it is in memory."""
        with self._mutex:
            for known in reversed(self._packs.values()):
                if block in known.blocks:
                    return known.blocks[block]
        return None

    def _copy(self, block: Multihash) -> bytes | None:
        if (data := self.opened(block)) is not None:
            return data
        data = _content(self.folder / str(block))
        return data if data is not None and Multihash.sha3_256(data) == block else None

    def _read_single(self, block: Multihash) -> bytes | None:
        data = self._fetch(f"{BLOCKS}/{block}")
        if data is not None and Multihash.sha3_256(data) == block:
            self._keep(BLOCKS, block, data)
            with suppress(ValueError):
                self._expect(Link.of(data))
        return data

    def _fetch(self, name: str) -> bytes | None:
        if self.offline:
            raise EnvironmentProblem(
                "they are in the storage, and this command uses no network",
                code="E0914",
                help="run `odfbuild storage pull`, or `odfbuild plan --refresh`",
            )
        return self.storage.read(name, _LARGEST)

    def _read_packed(self, block: Multihash) -> bytes | None:
        found = self._pack(block)
        return found.blocks[block] if found is not None else None

    def _pack(self, end: Multihash) -> Pack | None:
        """The pack that ends with a block; `None` where the storage has no such pack."""
        with self._mutex:
            known = self._packs.get(end)
        known = known or self._cached_pack(end)
        if known is None:
            name = f"{PACKS}/{end}"
            data = self._fetch(name)
            if data is None:
                return None
            try:
                known = Pack.parse(data, end)
            except ValueError as error:
                raise IntegrityError(
                    f"a pack of blocks in the storage is damaged: {error}",
                    code="E0674",
                    notes=(f"file: {self.storage.address.rstrip('/')}/{name}",),
                    help="restore that file from a copy of the storage, or remove it: "
                    "`odfbuild chains move --to git`, and then `--to storage`, write it again in a "
                    "clone that has copies of its blocks",
                ) from None
            self._keep(PACKS, end, data)
        with self._mutex:
            self._packs[end] = known
            self._packs.move_to_end(end)
            while len(self._packs) > _OPEN_PACKS:
                self._packs.popitem(last=False)
            if known.before is not None:
                self._ends.add(known.before)
        return known

    def _expect(self, link: Link) -> Multihash | None:
        """The block before one that was read, noting whether a pack ends with it."""
        if link.before is not None and size_of_pack(link.number - 1) > 1:
            with self._mutex:
                self._ends.add(link.before)
        return link.before

    def _cached_pack(self, end: Multihash) -> Pack | None:
        data = _content(self.cache / PACKS / str(end))
        if data is None:
            return None
        try:
            return Pack.parse(data, end)
        except ValueError:
            return None  # a copy that a power cut damaged is fetched again

    def _keep(self, kind: str, name: Multihash, data: bytes) -> None:
        with suppress(OSError):  # a read-only checkout keeps no copies
            folder = self.cache / kind
            prepare_cache_folder(folder)
            stage(folder, data, durable=False).replace(folder / str(name))


def _names(folder: Path) -> Iterator[Multihash]:
    names = os.listdir(folder) if folder.is_dir() else ()  # noqa: PTH208 (thousands)
    return filter(None, map(Multihash.of_file, names))


def _content(file: Path) -> bytes | None:
    try:
        return read_bounded(file, _LARGEST)
    except OSError:
        return None
