"""Data that is only in a repository: fetched when a step needs it.

A chain says what its data is, and settings or its pull where it comes from. So a clone plans at
once, and downloads what it computes with. Imports nothing before something is missing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odfbuild.odf.multihash import Multihash
    from odfbuild.project.model import Config
    from odfbuild.store.dataset import DatasetStore
    from odfbuild.store.storage import ObjectKind
    from odfbuild.store.workspace import Workspace


def workspace_of(config: Config) -> Workspace:
    """The datasets of a project, with the data that repositories have of them."""
    return config.workspace(Repositories(config))


class Repositories:
    """`store.dataset.Elsewhere`: the repositories that datasets of a project came from or went to.

    May be used from several threads at once; each object is fetched by one of them.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._fetching: defaultdict[str, Lock] = defaultdict(Lock)

    def owner(self, store: DatasetStore) -> str | None:
        """See `Elsewhere`. What has a definition here is this project's own, wherever it was."""
        from odfbuild.exchange.repositories.external import origin
        from odfbuild.project.load import read_project

        found = origin(store, self._config)
        if found is None:
            return None
        definitions = read_project(self._config.root, self._config.given).definitions
        own = store.name.lower() in {each.folded for each in definitions}
        return None if own else found

    def has(self, store: DatasetStore) -> bool:
        """See `Elsewhere`."""
        from odfbuild.exchange.repositories.external import published_at

        return published_at(store, self._config) is not None

    def fetch(self, store: DatasetStore, kind: ObjectKind, hashes: Sequence[Multihash]) -> None:
        """See `Elsewhere`; each object is checked by its hash, several come at once."""
        from odfbuild.exchange.repositories.accept import objects_of
        from odfbuild.exchange.repositories.external import published_at
        from odfbuild.exchange.repositories.open import Remotes

        place, head = published_at(store, self._config), store.head()
        if place is None or head is None:
            raise AssertionError("only a published dataset has objects elsewhere")
        with self._fetching[store.folder]:
            wanted = {each for each in hashes if not store.has_object(kind, each)}
            if not wanted:
                return  # another thread was faster
            found = objects_of(list(store.walk(head))[::-1])
            objects = [each for each in found if each.kind == kind and each.hash in wanted]
            with Remotes(self._config.root, self._config.repositories) as remotes:
                remote = remotes.dataset(place)
                with remote.offer(head, head) as offer:
                    offer.download(objects, store.path)
