"""Which datasets a repository has, where it can be listed: folders, stores, `odfbuild serve`.

Datasets are one or two names deep: `prices`, `acme/prices`. A workspace of the reference names its
folders by identity, and tells the alias beside the chain. What is no dataset is passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from odfbuild.errors import OdfbuildError
from odfbuild.exchange.repositories.simple import AT_ONCE, SimpleDataset, ask
from odfbuild.odf.flatbuffers.reader import decode_block
from odfbuild.odf.identity import DatasetId, is_alias, is_name
from odfbuild.odf.model import Seed
from odfbuild.odf.multihash import Multihash
from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.odf.timestamp import Timestamp
    from odfbuild.store.place import Place, ReadablePlace

_T = TypeVar("_T")
_U = TypeVar("_U")


class ListedDataset(Value, kw_only=True):
    """A dataset of a repository: what to write behind `repository/`, and its newest block.

    `alias` is what its owner calls it, where `name` is its identity. `problem` says why nothing
    else is known.
    """

    name: str
    alias: str | None = None
    head: Multihash | None = None
    blocks: int | None = None
    updated: Timestamp | None = None
    problem: OdfbuildError | None = None


def list_server(address: str, token: str | None) -> list[ListedDataset] | None:
    """All datasets that a server lists for us, by name; `None` where it lists none."""
    from odfbuild.exchange.repositories.smart.client import list_datasets

    found = list_datasets(address, token)
    return None if found is None else sorted(filter(None, map(_as_listed, found)), key=_by_name)


def _as_listed(said: Mapping[str, Any]) -> ListedDataset | None:
    """A dataset as a server tells it; `None` for anything else."""
    from odfbuild.odf.timestamp import Timestamp

    try:
        if not is_alias(said["alias"]):
            return None
        return ListedDataset(
            name=said["alias"],
            head=Multihash.parse(said["head"]),
            blocks=int(said["blocks"]),
            updated=Timestamp.parse(said["updated"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _by_name(listed: ListedDataset) -> str:
    return listed.name


def list_place(place: Place) -> list[ListedDataset]:
    """All datasets at a place, by name."""
    return list_named(place, names_at(place))


def list_named(place: ReadablePlace, names: Iterable[str]) -> list[ListedDataset]:
    """Those of the datasets with these names that are there."""
    found = _at_once(lambda name: _listed(SimpleDataset(place.below(name)), name), names)
    return sorted((each for each in found if each is not None), key=lambda each: each.name)


def find_by_id(place: Place, id: DatasetId) -> str | None:
    """The name of the dataset with that identity; reads the history of each until it is found."""
    if SimpleDataset(place.below(id.multibase)).head() is not None:
        return id.multibase

    def has_id(name: str) -> str | None:
        dataset = SimpleDataset(place.below(name))
        try:
            head = dataset.head()
            if head is None:
                return None
            with dataset.offer(head, None) as offer:
                seed = decode_block(offer.blocks[0].data).event
        except OdfbuildError:
            return None
        return name if isinstance(seed, Seed) and seed.dataset_id == id else None

    return next((each for each in _at_once(has_id, names_at(place)) if each is not None), None)


def names_at(place: Place) -> list[str]:
    """Names of folders that may hold a dataset."""

    def folders(name: str) -> list[str]:
        found = ask(place.address, name, lambda: place.list(name))
        return [each[:-1] for each in found if each.endswith("/") and is_name(each[:-1])]

    def within(name: str) -> list[str]:
        below = folders(name)
        return [name] if "refs" in below else [f"{name}/{each}" for each in below]

    return [each for found in _at_once(within, folders("")) for each in found]


def _listed(dataset: SimpleDataset, name: str) -> ListedDataset | None:
    """What its newest block says; `None` where there is no dataset."""
    id = _identity(name)
    alias = None
    try:
        head = dataset.head()
        if head is None:
            return None
        if id is not None:
            alias = _alias(dataset)
        _, block = dataset.block(head)
    except OdfbuildError as error:
        return ListedDataset(name=id or name, alias=alias, problem=error)
    return ListedDataset(
        name=id or name,
        alias=alias,
        head=head,
        blocks=block.sequence_number + 1,
        updated=block.system_time,
    )


def _alias(dataset: SimpleDataset) -> str | None:
    """What the owner of a dataset calls it."""
    text = (dataset.info("alias") or b"").decode("utf-8", "replace").strip()
    return text if is_alias(text) else None


def _identity(name: str) -> str | None:
    """The identity that a folder of the reference's workspace is called by."""
    try:
        return str(DatasetId.parse(f"did:odf:{name}"))
    except ValueError:
        return None


def _at_once(work: Callable[[_T], _U], items: Iterable[_T]) -> list[_U]:
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="listing") as pool:
        return list(pool.map(work, items))
