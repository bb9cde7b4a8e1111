"""Which objects of datasets are in their folders and which in the storage; copies between the two.

`apply` does this for what it commits and reads. The rest is for a project that gets a storage after
its first apply, and for a machine that works offline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from odfbuild.errors import Errors, IntegrityError, OdfbuildError, PlanError, RepositoryError
from odfbuild.odf.multihash import Multihash
from odfbuild.store.garbage import reachable
from odfbuild.store.storage import ObjectKind, Storage, damaged_object
from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.store.dataset import DatasetStore
    from odfbuild.store.workspace import Workspace

_AT_ONCE = 8


class StoredObject(Value):
    """An object that the history of `dataset` refers to, and where it is.

    `here`: bytes of the file in the dataset's folder, `stored`: bytes of the object in the storage;
    `None` where it is missing.
    """

    dataset: str
    kind: ObjectKind
    hash: Multihash
    here: int | None
    stored: int | None

    @property
    def is_lost(self) -> bool:
        """Whether it is in neither place."""
        return self.here is None and self.stored is None


def survey(workspace: Workspace, aliases: Iterable[str]) -> tuple[StoredObject, ...]:
    """All objects of datasets, by dataset; asks the storage for each of them.

    `PlanError` E0373 when the project has no storage, `IntegrityError` for a damaged chain.
    """
    storage = storage_of(workspace)
    wanted = [
        (store, kind, hash)
        for store in map(workspace.dataset, aliases)
        for kind, hash in _referred(store)
    ]
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="storage") as pool:
        sizes = pool.map(lambda each: storage.size(each[1], each[2]), wanted)
        return tuple(
            StoredObject(store.name, kind, hash, _size(store, kind, hash), size)
            for (store, kind, hash), size in zip(wanted, sizes, strict=True)
        )


def pushable(found: Iterable[StoredObject]) -> tuple[StoredObject, ...]:
    """What only the folders have."""
    return tuple(each for each in found if each.here is not None and each.stored is None)


def pullable(found: Iterable[StoredObject]) -> tuple[StoredObject, ...]:
    """What only the storage has."""
    return tuple(each for each in found if each.here is None and each.stored is not None)


def push(workspace: Workspace, wanted: Iterable[StoredObject]) -> None:
    """Copy these objects to the storage.

    A file whose bytes are not what was committed stays where it is: `Errors` with an
    `IntegrityError` E0813 for each, after all others were copied.
    """
    storage = storage_of(workspace)

    def copy(each: StoredObject) -> None:
        file = workspace.dataset(each.dataset).bring(each.kind, each.hash)
        actual = Multihash.of_contents(file)
        if actual != each.hash:
            raise damaged_object(each.hash, file, actual, each.dataset)
        storage.put(each.kind, each.hash, file)

    _each(wanted, copy)


def pull(workspace: Workspace, wanted: Iterable[StoredObject]) -> None:
    """Copy these objects to the folders of their datasets. Errors as `push`."""
    _each(wanted, lambda each: workspace.dataset(each.dataset).bring(each.kind, each.hash))


def _each(wanted: Iterable[StoredObject], copy: Callable[[StoredObject], object]) -> None:
    """Copy several at once, and all that can be copied."""

    def attempt(each: StoredObject) -> OdfbuildError | None:
        try:
            copy(each)
        except (IntegrityError, RepositoryError) as error:
            return error
        return None

    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="storage") as pool:
        outcomes = list(pool.map(attempt, wanted))
    errors = [error for error in outcomes if error is not None]
    if errors:
        raise Errors(errors)


def _referred(store: DatasetStore) -> Iterator[tuple[ObjectKind, Multihash]]:
    head = store.head()
    if head is None:
        return
    found = reachable(store, head)
    linked = store.stored("data") if found.linked else ()
    withdrawn = {hash for _, hash in store.withdrawn()}
    data, checkpoints = {*found.data, *linked} - withdrawn, found.checkpoints - withdrawn
    yield from (("data", hash) for hash in sorted(data, key=str))
    yield from (("checkpoints", hash) for hash in sorted(checkpoints, key=str))


def _size(store: DatasetStore, kind: ObjectKind, hash: Multihash) -> int | None:
    try:
        return store.object_path(kind, hash).stat().st_size
    except FileNotFoundError:
        return None


def storage_of(workspace: Workspace) -> Storage:
    """The storage of a project; `PlanError` E0373 when it has none."""
    if workspace.storage is None:
        raise PlanError(
            "this project has no storage",
            code="E0373",
            help="name one under `content` of odfbuild.yaml: `storage: s3://bucket/prefix`, "
            "`gs:`, `az:`, or a folder that all clones can reach",
        )
    return workspace.storage
