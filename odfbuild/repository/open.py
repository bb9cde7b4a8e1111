"""Open repositories and datasets elsewhere, each by the protocol that it speaks.

Folders and object stores are read and written by the Simple protocol, `odf+http(s):` by the Smart
one. Clients are made once for each repository, and serve all datasets of a command.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from odfbuild.project.settings.sharing import RepositorySettings
from odfbuild.repository.addresses import DatasetAddress, Repository, find_dataset
from odfbuild.repository.contract import RemoteDataset, WritableDataset
from odfbuild.repository.simple import SimpleDataset
from odfbuild.store.place import Place
from odfbuild.store.storage import open_place


class Remotes:
    """What is elsewhere, for a project at `root` that knows these repositories by name.

    Connections are kept until the context ends. May be used from several threads at once.
    """

    def __init__(self, root: Path, known: Mapping[str, RepositorySettings]) -> None:
        self.known = known
        self._root = root
        self._places: dict[Repository, Place] = {}
        self._mutex = threading.Lock()
        self._opened = ExitStack()

    def __enter__(self) -> Remotes:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._opened.close()

    def dataset(self, reference: str | DatasetAddress) -> RemoteDataset:
        """The dataset that a reference or address means, whether or not there is one."""
        return self.writable(reference)

    def writable(self, reference: str | DatasetAddress) -> WritableDataset:
        """The same, to be pushed to; `RepositoryError` E1014 where that cannot be done."""
        address = self._address(reference)
        place = self._place(address.repository)
        return SimpleDataset(place.below(address.path) if address.path else place, address.name)

    def _address(self, reference: str | DatasetAddress) -> DatasetAddress:
        if isinstance(reference, DatasetAddress):
            return reference
        return find_dataset(reference, self.known)

    def _place(self, repository: Repository) -> Place:
        with self._mutex:
            place = self._places.get(repository)
            if place is None:
                place = self._places[repository] = open_place(repository.address, self._root)
            return place
