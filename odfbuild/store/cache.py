"""The projections of all datasets of a project in one disposable file.

A projection is cached under the head that it belongs to, so it is right or not asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from odfbuild.errors import IntegrityError
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.multihash import Multihash
from odfbuild.python_gc import paused_collector
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.disposable import Buffer, map_disposable, write_disposable
from odfbuild.store.kept_objects import LAYOUT, KeptProjection, dump_projection

_STAMP = b"odfbuild projections 2\n" + LAYOUT


_Entry = tuple[bytes, bytes, Buffer | Projection]


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
        # By alias: head, public key of the dataset, projection.
        self._entries: dict[str, _Entry] = {}
        self._live: dict[str, KeptProjection] = {}
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
        return self._projection(alias, entry[2]) if entry and entry[0] == head else None

    def identities(self) -> dict[str, bytes]:
        """Public keys of all datasets that are known, by alias, sorted."""
        return {alias: self._entries[alias][1] for alias in sorted(self._entries)}

    def latest(self, alias: str) -> Projection | None:
        """The projection of `alias` at whatever head it was last seen."""
        entry = self._entries.get(alias)
        return self._projection(alias, entry[2]) if entry else None

    def put(self, alias: str, head: bytes, projection: Projection) -> None:
        """Remember a projection; `save` makes it last."""
        self._entries[alias] = (head, projection.dataset_id.key, projection)
        self._live.pop(alias, None)
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
        with paused_collector():
            places: dict[str, tuple[bytes, bytes, int, int]] = {}
            parts: list[Buffer] = []
            end = 0
            for alias, entry in self._entries.items():
                head, key, kept = entry
                known = self._shared.get(alias)
                if known is not None and known[0] == head:
                    continue
                parts.append(dump_projection(kept) if isinstance(kept, Projection) else kept)
                start, end = end, end + len(parts[-1])
                places[alias] = (head, key, start, end)
            if write_disposable(self.file, _STAMP, places, parts):
                self._changed = False

    def _projection(self, alias: str, kept: Buffer | Projection) -> Projection:
        if isinstance(kept, Projection):
            return kept
        live = self._live.get(alias)
        if live is None:
            live = self._live[alias] = KeptProjection.of(kept)
        return live


def _read(file: Path) -> dict[str, _Entry]:
    found = map_disposable(file, _STAMP)
    if found is None:
        return {}
    return {
        alias: (head, key, found.rest[start:end])
        for alias, (head, key, start, end) in found.plain.items()
    }


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
