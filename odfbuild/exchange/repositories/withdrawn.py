"""Statements about records that are no longer there travel with chains: `info/statements`.

A push adds what is said here to what is said there, and a pull the other way round. Objects that
were withdrawn are neither sent nor asked for, and a push removes them where they were published.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from odfbuild.errors import PersonalDataError
from odfbuild.exchange.repositories.accept import Link, objects_of
from odfbuild.exchange.repositories.contract import ObjectFile, RemoteDataset
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.stewardship import FILE, Signed, encode_statements, in_order
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.stewardship import THERE, checked_statements, withdrawn_objects


def statements_at(remote: RemoteDataset, dataset_id: DatasetId, name: str) -> tuple[Signed, ...]:
    """What is said there; `PersonalDataError` E1624 or E1625 where its owner did not say that."""
    data = remote.info(FILE)
    if data is None:
        return ()
    return checked_statements(data, dataset_id, name, remote.address, THERE)


def statements_to_send(
    store: DatasetStore, remote: RemoteDataset, dataset_id: DatasetId
) -> dict[str, bytes]:
    """The file to publish; nothing where all that is said here is said there already."""
    here = store.statements()
    if not here:
        return {}
    try:
        there = statements_at(remote, dataset_id, store.name)
    except PersonalDataError:
        there = ()  # whatever it is, its owner did not say it
    both = in_order((*here, *there))
    return {} if both == there else {FILE: encode_statements(both)}


def left_of(
    links: Sequence[Link], statements: Collection[Signed]
) -> tuple[tuple[ObjectFile, ...], tuple[ObjectFile, ...]]:
    """The objects of blocks, oldest first: those that are there, and those that were withdrawn."""
    withdrawn = withdrawn_objects(reversed(links), statements)
    return _parted(objects_of(links), withdrawn)


def _parted(
    objects: Iterable[ObjectFile], withdrawn: Collection[tuple[object, object]]
) -> tuple[tuple[ObjectFile, ...], tuple[ObjectFile, ...]]:
    found: tuple[list[ObjectFile], list[ObjectFile]] = ([], [])
    for each in objects:
        found[(each.kind, each.hash) in withdrawn].append(each)
    return tuple(found[0]), tuple(found[1])


def withdrawn_from(store: DatasetStore) -> tuple[ObjectFile, ...]:
    """All objects of a dataset that its owner withdrew, as blocks name them."""
    withdrawn = store.withdrawn()
    head = store.head() if withdrawn else None
    links = list(store.walk(head))[::-1] if head is not None else []
    return _parted(objects_of(links), withdrawn)[1]
