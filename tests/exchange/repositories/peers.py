"""A dataset in a folder that counts what is asked of it."""

from __future__ import annotations

from pathlib import Path

from odfbuild.exchange.repositories.simple import SimpleDataset
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.place import Folder, Progress


class _Counting(Folder):
    """A folder that lists the files that were read, but for the head."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.asked: list[str] = []

    def read(self, name: str, limit: int) -> bytes | None:
        if name != "refs/head":
            self.asked.append(name)
        return super().read(name, limit)

    def download(
        self, name: str, target: Path, limit: int, progress: Progress | None = None
    ) -> bool:
        self.asked.append(name)
        return super().download(name, target, limit, progress)


class Peer(SimpleDataset):
    """The dataset in `folder`; `asked` lists the files that were read, but for the head."""

    def __init__(self, folder: Path) -> None:
        place = _Counting(folder)
        super().__init__(place)
        self.folder = folder
        self.asked = place.asked

    @property
    def store(self) -> DatasetStore:
        """The same as a folder of this project."""
        return DatasetStore(self.folder, "peer")
