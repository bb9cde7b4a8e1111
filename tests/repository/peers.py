"""A dataset in a folder, as small as the contract allows, that counts what is asked of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from odfbuild.errors import IntegrityError, RepositoryError
from odfbuild.odf.flatbuffers.form import decode_block
from odfbuild.odf.multihash import Multihash
from odfbuild.repository.contract import (
    ObjectFile,
    Offer,
    Progress,
    Publication,
    RawBlock,
)
from odfbuild.store.dataset import DatasetStore


@dataclass
class Peer:
    """The dataset in `folder`; `asked` lists the files that were read, but for the head."""

    folder: Path
    asked: list[str] = field(default_factory=list)

    @property
    def address(self) -> str:
        return str(self.folder)

    @property
    def store(self) -> DatasetStore:
        return DatasetStore(self.folder, "peer")

    def head(self) -> Multihash | None:
        return self.store.head()

    @contextmanager
    def offer(self, head: Multihash, after: Multihash | None) -> Iterator[Offer]:
        blocks: list[RawBlock] = []
        current: Multihash | None = head
        while current is not None and current != after:
            data = self._read("blocks", current)
            blocks.append(RawBlock(current, data))
            try:
                current = decode_block(data).prev_block_hash
            except ValueError:
                break
        yield PeerOffer(self, head, blocks[::-1])

    def info(self, name: str) -> bytes | None:
        file = self.folder / "info" / name
        return file.read_bytes() if file.exists() else None

    def publish(self, publication: Publication, progress: Progress | None = None) -> None:
        self.store.check_head(publication.expected)
        for each in publication.objects:
            target = self.folder / each.kind / str(each.hash)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(publication.files[each.hash], target)
            if progress is not None:
                progress(each.size)
        self.store.put_blocks([each.data for each in publication.blocks])
        self.store.swap_head(publication.expected, publication.blocks[-1].hash)

    def _read(self, kind: str, hash: Multihash) -> bytes:
        self.asked.append(f"{kind}/{hash}")
        try:
            return (self.folder / kind / str(hash)).read_bytes()
        except FileNotFoundError:
            raise RepositoryError(f"{hash} is not there", code="E1002") from None


@dataclass
class PeerOffer:
    peer: Peer
    head: Multihash
    blocks: Sequence[RawBlock]

    def download(
        self, objects: Sequence[ObjectFile], folder: Path, progress: Progress | None = None
    ) -> None:
        for each in objects:
            target = folder / each.kind / str(each.hash)
            if target.exists():
                continue
            data = self.peer._read(each.kind, each.hash)
            if Multihash.sha3_256(data) != each.hash:
                raise IntegrityError(f"{each.hash} has other bytes", code="E1003", help="x")
            target.parent.mkdir(parents=True, exist_ok=True)
            part = target.with_name(".pending-" + target.name)
            part.write_bytes(data)
            part.replace(target)
            if progress is not None:
                progress(len(data))
