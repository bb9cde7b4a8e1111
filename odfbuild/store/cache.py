"""The projections of all datasets of a project in one disposable file.

A projection is cached under the head that it belongs to, so it is right or not asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Raw

from odfbuild.errors import IntegrityError
from odfbuild.odf.chain.projection import Projection, QueryEra, layout
from odfbuild.odf.multihash import Multihash
from odfbuild.python_gc import paused_collector
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.disposable import packed, read_disposable, unpacked, write_disposable

_STAMP = b"odfbuild projections 3\n" + layout(Projection, QueryEra).encode()
"""Changes whenever projections would be understood differently: other releases keep them."""

_Entry = tuple[bytes, bytes, Raw | None]
"""Head, public key of the dataset, and the projection as it is kept; `None`: not yet."""


class ProjectionCache:
    """Projections by alias, each with the text of the head that it belongs to.

    A branch keeps those that differ in a folder of its `own`: so what is kept of the head stays as
    it is while one goes back and forth.
    """

    def __init__(self, folder: Path, own: Path | None = None) -> None:
        self.folder = own or folder
        self.file = self.folder / "projections.bin"
        self._shared_file = None if own is None else folder / "projections.bin"
        self._shared: dict[str, _Entry] = {}
        self._entries: dict[str, _Entry] = {}
        self._live: dict[str, Projection] = {}
        self._changed = False
        self._loaded = False

    def load(self) -> None:
        """Read the file once; later calls do nothing."""
        if self._loaded:
            return
        self._loaded = True
        with paused_collector():
            if self._shared_file is not None:
                self._shared = _read(self._shared_file)
            self._entries = self._shared | _read(self.file) | self._entries

    def has(self, alias: str, head: bytes) -> bool:
        """Whether the projection at that head is known."""
        entry = self._entries.get(alias)
        return entry is not None and entry[0] == head

    def get(self, alias: str, head: bytes) -> Projection | None:
        """The projection at that head."""
        entry = self._entries.get(alias)
        return self._projection(alias, entry) if entry and entry[0] == head else None

    def identities(self) -> dict[str, bytes]:
        """Public keys of all datasets that are known, by alias, sorted."""
        return {alias: self._entries[alias][1] for alias in sorted(self._entries)}

    def latest(self, alias: str) -> Projection | None:
        """The projection of `alias` at whatever head it was last seen."""
        entry = self._entries.get(alias)
        return self._projection(alias, entry) if entry else None

    def put(self, alias: str, head: bytes, projection: Projection) -> None:
        """Remember a projection; `save` makes it last."""
        self._entries[alias] = (head, projection.dataset_id.key, None)
        self._live[alias] = projection
        self._changed = True

    def keep_only(self, aliases: Mapping[str, object]) -> None:
        """Forget datasets that are gone."""
        gone = self._entries.keys() - aliases.keys()
        for alias in gone:
            del self._entries[alias]
            self._live.pop(alias, None)
        self._changed = self._changed or bool(gone)

    def save(self) -> None:
        """Write the file if anything changed. A folder that cannot be written keeps no cache."""
        if not self._changed:
            return
        own = {}
        for alias, (head, key, kept) in self._entries.items():
            shared = self._shared.get(alias)
            if shared is None or shared[0] != head:
                # Times before 1677 and after 2554 do not fit: such a chain is read again.
                with suppress(OverflowError):
                    own[alias] = (head, key, kept or Raw(packed(self._live[alias])))
        if write_disposable(self.file, _STAMP, own):
            self._changed = False

    def _projection(self, alias: str, entry: _Entry) -> Projection:
        if alias not in self._live:
            self._live[alias] = unpacked(Projection, entry[2])
        return self._live[alias]


def _read(file: Path) -> dict[str, _Entry]:
    return read_disposable(file, _STAMP, dict[str, tuple[bytes, bytes, Raw]]) or {}


def project(store: DatasetStore, head: Multihash, before: Projection | None) -> Projection:
    """The projection at `head`, extended from `before` when that lies in its history.

    Reads only the blocks after `before`; the whole chain when `before` is not part of it.
    """
    from odfbuild.odf.chain.projection import fold

    if before is not None and before.head == head:
        return before
    blocks, met = store.summary(head, before.head if before else None)
    try:
        return fold(before if met else None, blocks)
    except ValueError as error:  # decoded, and still no chain
        raise IntegrityError(
            f"the chain of '{store.name}' cannot be read: {error}",
            code="E0803",
            dataset=store.name,
            help=f"`odfbuild verify {store.name}` names the block",
        ) from None
