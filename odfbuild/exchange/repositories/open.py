"""Open datasets elsewhere, each by the protocol that its repository speaks.

Folders and object stores are read and written by the Simple protocol. Web servers are asked once
whether they speak the Smart one; plain ones are read by the Simple one. Clients are made once for
each repository, and serve all datasets of a command.
"""

from __future__ import annotations

import threading
from base64 import b64encode
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from odfbuild.errors import RepositoryError
from odfbuild.exchange.repositories.addresses import (
    DatasetAddress,
    Repository,
    find_dataset,
    find_repository,
)
from odfbuild.exchange.repositories.contract import RemoteDataset, WritableDataset
from odfbuild.exchange.repositories.simple import SimpleDataset
from odfbuild.project.settings.sharing import RepositorySettings
from odfbuild.store.place import Place, ReadablePlace
from odfbuild.store.storage import open_place

if TYPE_CHECKING:
    from odfbuild.exchange.repositories.listing import ListedDataset
    from odfbuild.exchange.repositories.smart.client import SmartDataset


class Remotes:
    """What is elsewhere, for a project at `root` that knows these repositories by name.

    Connections are kept until the context ends. May be used from several threads at once.
    """

    def __init__(self, root: Path, known: Mapping[str, RepositorySettings]) -> None:
        self.known = known
        self._root = root
        self._places: dict[Repository, ReadablePlace] = {}
        self._smart: dict[Repository, bool] = {}
        self._accounts: dict[Repository, str | None] = {}
        self._mutex = threading.Lock()
        self._opened = ExitStack()

    def __enter__(self) -> Remotes:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def branch(self, address: DatasetAddress, branch: str, *, write: bool) -> SimpleDataset:
        """A dataset in a branch, whether or not it is there.

        `RepositoryError` E1142 where a protocol has no branches, E1014 where nothing is written.
        """
        if self._is_smart(address):
            raise RepositoryError(
                f"{address.address} cannot hold branches: the Smart Transfer Protocol has heads "
                "only",
                code="E1142",
                help="use a folder or an object store as repository for branches, or share them "
                "with Git: `odfbuild git commit --push`",
            )
        return self._simple(self._checked(address) if write else address, branch)

    def dataset(self, reference: str | DatasetAddress) -> RemoteDataset:
        """The dataset that a reference or address means, whether or not there is one."""
        address = self.address(reference)
        return self._smart_one(address) if self._is_smart(address) else self._simple(address)

    def writable(self, reference: str | DatasetAddress) -> WritableDataset:
        """The same, to be pushed to; `RepositoryError` E1014 where that cannot be done."""
        address = self.address(reference)
        if self._is_smart(address):
            return self._smart_one(address)
        return self._simple(self._checked(address))

    def _checked(self, address: DatasetAddress) -> DatasetAddress:
        """The same; `RepositoryError` E1014 for what only shows files."""
        if _is_web(address.repository):
            raise RepositoryError(
                f"{address.address} can be read only: plain web servers take no datasets",
                code="E1014",
                help="push to the folder or store that the server shows; if it is `odfbuild "
                f"serve` or a node, write odf+{address.address}",
            )
        return address

    def datasets(self, repository: str) -> list[ListedDataset]:
        """The datasets of a repository, by its name or address; `RepositoryError` E1015: unknown.

        Folders and object stores tell what they have, and so does `odfbuild serve`.
        """
        from odfbuild.exchange.repositories.listing import list_place, list_server

        found = find_repository(repository, self.known)
        if _is_web(found):
            listed = list_server(found.address, _token(found))
            if listed is not None:
                return listed
            raise RepositoryError(
                f"{found.address} cannot be listed: plain web servers do not tell what they have",
                code="E1015",
                help="ask its owner for the names of datasets, and pull them by name, such as "
                f"{repository.rstrip('/')}/org.example.prices",
            )
        return list_place(cast(Place, self.place(found)))

    def address(self, reference: str | DatasetAddress) -> DatasetAddress:
        """Where the dataset is that a reference means; where only its identity is given, by name.

        `RepositoryError` E1019 when the repository has no dataset of that identity.
        """
        found = find_dataset(reference, self.known) if isinstance(reference, str) else reference
        if found.id is None:
            return found
        name = self._name_of(found)
        if name is None:
            raise RepositoryError(
                f"{found.repository} has no dataset {found.id}",
                code="E1019",
                notes=("plain web servers find datasets by name only",)
                if _is_web(found.repository)
                else (),
                help=f"give its name, such as {found.repository}/org.example.prices",
            )
        return DatasetAddress(found.repository, name)

    def place(self, repository: Repository) -> ReadablePlace:
        """Where the datasets of a repository are, as files; in folders and stores a `Place`."""
        with self._mutex:
            place = self._places.get(repository)
            if place is None:
                place = self._places[repository] = self._open(repository)
            return place

    def _open(self, repository: Repository) -> ReadablePlace:
        if _is_web(repository):
            from odfbuild.exchange.repositories.http import WebFolder

            web = WebFolder.at(repository.address, _authorization(repository))
            self._opened.callback(web.close)
            return web
        if not repository.scheme:
            return open_place(str(Path(repository.address).expanduser()), self._root)
        return open_place(repository.address, self._root)

    def _simple(self, address: DatasetAddress, branch: str | None = None) -> SimpleDataset:
        place = self.place(address.repository)
        return SimpleDataset(
            place.below(address.path) if address.path else place,
            address.path or address.name,
            branch=branch,
        )

    def _name_of(self, address: DatasetAddress) -> str | None:
        """The name of the dataset with the identity in `address`."""
        repository, id = address.repository, address.id
        if id is None:
            return address.path
        if self._is_smart(address):
            from odfbuild.exchange.repositories.smart.client import name_of

            return name_of(repository.address, str(id), _token(repository))
        if _is_web(repository):
            return None
        from odfbuild.exchange.repositories.listing import find_by_id

        return find_by_id(cast(Place, self.place(repository)), id)

    # --- The Smart protocol ---

    def _is_smart(self, address: DatasetAddress) -> bool:
        """Whether the server of a dataset speaks the Smart protocol; asked once."""
        repository = address.repository
        if not _is_web(repository) or repository.scheme.startswith("odf+"):
            return _is_web(repository)
        with self._mutex:
            known = self._smart.get(repository)
            if known is None:
                from odfbuild.exchange.repositories.smart.client import is_smart

                known = is_smart(repository.address, _token(repository))
                self._smart[repository] = known
            return known

    def _smart_one(self, address: DatasetAddress) -> SmartDataset:
        from odfbuild.exchange.repositories.smart.client import SmartDataset

        repository, path = address.repository, address.path
        if path and "/" not in path and (account := self._account(repository)) is not None:
            path = f"{account}/{path}"
        return SmartDataset(
            replace(address, path=path).address,
            _token(repository),
            visibility="Public" if repository.visibility == "public" else "Private",
        )

    def _account(self, repository: Repository) -> str | None:
        """The account that names without one belong to; asked once."""
        from odfbuild.exchange.repositories.smart.client import account_of

        with self._mutex:
            if repository not in self._accounts:
                self._accounts[repository] = account_of(repository.address, _token(repository))
            return self._accounts[repository]


def _is_web(repository: Repository) -> bool:
    return "http" in repository.scheme


def _token(repository: Repository) -> str | None:
    from odfbuild.ingest.secrets import resolve

    return None if repository.token is None else resolve(repository.token)


def _authorization(repository: Repository) -> str | None:
    """The header that shows who asks."""
    from urllib.parse import unquote

    from odfbuild.ingest.secrets import remember

    token = _token(repository)
    if token is not None:
        return f"Bearer {token}"
    if repository.user is None:
        return None
    user, _, password = repository.user.partition(":")
    remember(unquote(password))
    return f"Basic {b64encode(f'{unquote(user)}:{unquote(password)}'.encode()).decode()}"
