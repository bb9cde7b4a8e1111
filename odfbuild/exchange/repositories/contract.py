"""What pulling and pushing ask of a dataset that is elsewhere, whatever the protocol.

`pull` reads a `RemoteDataset`: its head, then the blocks behind a known one, then objects. `push`
hands a `Publication` to a `WritableDataset`. Both check every byte that they get; an implementation
keeps to its limits of size and time, and never shows credentials in an address or an error.
Sources: Open Data Fabric, "Repository Contract", "Dataset Sharing"; RFC-007, RFC-008.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from pathlib import Path
from typing import Protocol

from odfbuild.odf.multihash import Multihash
from odfbuild.store.storage import ObjectKind
from odfbuild.values import Value

Progress = Callable[[int], None]
"""Told how many more bytes have been transferred."""


class ObjectFile(Value):
    """An object of a dataset; `size` in bytes, as its block says it."""

    kind: ObjectKind
    hash: Multihash
    size: int


class RawBlock(Value):
    """A block as its bytes, which are never encoded again."""

    hash: Multihash
    data: bytes


class Offer(Protocol):
    """What a remote dataset has behind a known block; open while its context lasts."""

    @property
    def head(self) -> Multihash:
        """The newest of these blocks."""
        ...

    @property
    def blocks(self) -> Sequence[RawBlock]:
        """Oldest first: behind the known block, or from the seed on if that is not in the history.

        Their bytes have their hashes, and each names the one before; nothing else was checked.
        """
        ...

    def download(
        self, objects: Sequence[ObjectFile], folder: Path, progress: Progress | None = None
    ) -> None:
        """Bring each object to `folder/<kind>/<hash>`, several at once, those there already not.

        A file has that name only when it is complete and has that hash. `IntegrityError` when the
        other side has other bytes, `RepositoryError` when it does not have it or fails.
        """
        ...


class RemoteDataset(Protocol):
    """A dataset that can be read."""

    address: str
    """Where it is, without credentials."""

    def head(self) -> Multihash | None:
        """The newest block; `None` when there is no such dataset."""
        ...

    def offer(self, head: Multihash, after: Multihash | None) -> AbstractContextManager[Offer]:
        """The blocks of `(after, head]`; all of them when `after` is not among them."""
        ...

    def info(self, name: str) -> bytes | None:
        """The file `info/<name>`, at most 64 KiB, or 64 MiB of statements; `None`: not there."""
        ...


class Publication(Value, kw_only=True):
    """What a push adds to a dataset elsewhere.

    `expected` is the head there (`None`: no such dataset), and `blocks`, oldest first, go on from
    it, or from the seed where the history there is replaced (`force`). `files` has the file of each
    object. `info` are small files that lie beside the chain, by name, and `passports` those in the
    folder of the dataset, which only a place of files keeps, as it does `packs` of blocks, by the
    last block of each; `withdrawn` are objects that one of `info` says are to be removed.
    """

    expected: Multihash | None
    blocks: Sequence[RawBlock]
    objects: Sequence[ObjectFile]
    files: Mapping[Multihash, Path]
    force: bool = False
    info: Mapping[str, bytes] = field(default_factory=dict)
    passports: Mapping[str, bytes] = field(default_factory=dict)
    withdrawn: Sequence[ObjectFile] = ()
    packs: Sequence[tuple[Multihash, Callable[[], bytes]]] = ()


class WritableDataset(RemoteDataset, Protocol):
    """A dataset that can be written, too."""

    def publish(self, publication: Publication, progress: Progress | None = None) -> None:
        """Store objects, then blocks, then move the head by compare-and-swap; then write `info`.

        What is there already is not sent again; without blocks only `info` is written, which must
        not speak of a head that is not there. `StaleHeadError` when the head is not `expected`,
        `IntegrityError` E0813 when a file has other bytes than its hash says; nothing that anybody
        sees was changed then.
        """
        ...
