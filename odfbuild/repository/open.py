"""Open datasets elsewhere, each by the protocol that its repository speaks.

Folders and object stores are read and written by the Simple protocol, plain web servers are read by
it. Clients are made once for each repository, and serve all datasets of a command.
"""

from __future__ import annotations

import threading
from base64 import b64encode
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from odfbuild.errors import RepositoryError
from odfbuild.project.settings.sharing import RepositorySettings
from odfbuild.repository.addresses import DatasetAddress, Repository, find_dataset
from odfbuild.repository.contract import RemoteDataset, WritableDataset
from odfbuild.repository.simple import SimpleDataset
from odfbuild.store.place import ReadablePlace
from odfbuild.store.storage import open_place

if TYPE_CHECKING:
    pass


class Remotes:
    """What is elsewhere, for a project at `root` that knows these repositories by name.

    Connections are kept until the context ends. May be used from several threads at once.
    """

    def __init__(self, root: Path, known: Mapping[str, RepositorySettings]) -> None:
        self.known = known
        self._root = root
        self._places: dict[Repository, ReadablePlace] = {}
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
        address = self.address(reference)
        return self._simple(address)

    def writable(self, reference: str | DatasetAddress) -> WritableDataset:
        """The same, to be pushed to; `RepositoryError` E1014 where that cannot be done."""
        address = self.address(reference)
        if address.repository.scheme in ("http", "https"):
            raise RepositoryError(
                f"{address.address} can be read only: plain web servers take no datasets",
                code="E1014",
                help="push to the folder or store that the server shows, or to `odfbuild serve`, "
                f"as odf+{address.repository.address}",
            )
        return self._simple(address)

    def address(self, reference: str | DatasetAddress) -> DatasetAddress:
        """Where the dataset is that a reference means."""
        if isinstance(reference, DatasetAddress):
            return reference
        return find_dataset(reference, self.known)

    def _simple(self, address: DatasetAddress) -> SimpleDataset:
        place = self.place(address.repository)
        return SimpleDataset(place.below(address.path) if address.path else place, address.name)

    def place(self, repository: Repository) -> ReadablePlace:
        """Where the datasets of a repository are, as files; in folders and stores a `Place`."""
        with self._mutex:
            place = self._places.get(repository)
            if place is None:
                place = self._places[repository] = self._open(repository)
            return place

    def _open(self, repository: Repository) -> ReadablePlace:
        if repository.scheme in ("http", "https"):
            from odfbuild.repository.http import WebFolder

            opened = WebFolder.at(repository.address, _authorization(repository))
            self._opened.callback(opened.close)
            return opened
        if not repository.scheme:
            return open_place(str(Path(repository.address).expanduser()), self._root)
        return open_place(repository.address, self._root)


def _authorization(repository: Repository) -> str | None:
    """The header that shows who asks."""
    from urllib.parse import unquote

    from odfbuild.ingest.secrets import remember, resolve

    if repository.token is not None:
        return f"Bearer {resolve(repository.token)}"
    if repository.user is None:
        return None
    user, _, password = repository.user.partition(":")
    remember(unquote(password))
    return f"Basic {b64encode(f'{unquote(user)}:{unquote(password)}'.encode()).decode()}"
