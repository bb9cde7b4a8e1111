"""Data that is only in a repository: fetched when a step needs it.

A chain says what its data is, and settings or its pull where it comes from. So a clone plans at
once, and downloads what it computes with. Imports nothing before something is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odfbuild.odf.multihash import Multihash
    from odfbuild.project.model import Config
    from odfbuild.repository.contract import ObjectFile
    from odfbuild.store.dataset import DatasetStore
    from odfbuild.store.storage import ObjectKind
    from odfbuild.store.workspace import Workspace


def workspace_of(config: Config) -> Workspace:
    """The datasets of a project, with the data that repositories have of them."""
    return config.workspace(Repositories(config))


class Repositories:
    """`store.dataset.Elsewhere`: the repositories that datasets of a project came from or went to.

    May be used from several threads at once.
    """

    def __init__(self, config: Config) -> None:
        self._config = config

    def fetch(
        self, store: DatasetStore, kind: ObjectKind, hashes: Sequence[Multihash]
    ) -> str | None:
        """See `Elsewhere`; each object is checked by its hash, several come at once."""
        from odfbuild.repository.external import place_of
        from odfbuild.repository.open import Remotes

        place, head = place_of(store, self._config), store.head()
        if place is None or head is None:
            return None
        objects = list(_objects(store, head, kind, set(hashes)))
        with Remotes(self._config.root, self._config.repositories) as remotes:
            remote = remotes.dataset(place)
            with remote.offer(head, head) as offer:
                offer.download(objects, store.path)
        return remote.address


def _objects(
    store: DatasetStore, head: Multihash, kind: ObjectKind, wanted: Set[Multihash]
) -> Iterator[ObjectFile]:
    """The wanted objects with their sizes, as the blocks say them, each once."""
    from odfbuild.odf.model import AddData, ExecuteTransform
    from odfbuild.repository.contract import ObjectFile

    told: set[Multihash] = set()
    for _, block in store.walk(head):
        event = block.event
        if not isinstance(event, AddData | ExecuteTransform):
            continue
        each = event.new_data if kind == "data" else event.new_checkpoint
        if each is not None and each.physical_hash in wanted - told:
            told.add(each.physical_hash)
            yield ObjectFile(kind, each.physical_hash, each.size)
