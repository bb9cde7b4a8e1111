"""The Simple Transfer Protocol over folders and object stores: what is pushed can be pulled."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from odfbuild.errors import IntegrityError, RepositoryError, StaleHeadError
from odfbuild.exchange.repositories.contract import WritableDataset
from odfbuild.exchange.repositories.open import Remotes
from odfbuild.odf.multihash import Multihash
from odfbuild.store.dataset import DatasetStore
from tests.exchange.repositories.publishing import objects_of, publication, tree
from tests.servers.objects import BUCKET, Objects, gs_conditions, gs_endpoint, s3_endpoint
from tests.store.chains import add_slice, create, info, workspace

NAME = "org.example.prices"


@pytest.fixture(scope="module")
def bucket() -> Iterator[Objects]:
    with s3_endpoint() as started:
        yield started


@pytest.fixture
def store(tmp_path: Path) -> DatasetStore:
    """A dataset of five blocks and two objects."""
    made = create(workspace(tmp_path / "project"), NAME, info("prices"))
    add_slice(made, tmp_path / "one", 0, 10)
    add_slice(made, tmp_path / "two", 10, 5)
    return made


@pytest.fixture(params=["folder", "file:", "s3:"])
def there(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WritableDataset]:
    """Where nobody has pushed to yet."""
    address = {
        "folder": "./sh re/published",
        "file:": (tmp_path / "sh re" / "published").as_uri(),
        "s3:": f"s3://{BUCKET}/{tmp_path.name}",
    }[request.param]
    if request.param == "s3:":
        request.getfixturevalue("bucket")
    with Remotes(tmp_path, {}) as remotes:
        yield remotes.writable(f"{address}/{NAME}")


def pulled(dataset: WritableDataset, folder: Path, after: Multihash | None = None) -> list[str]:
    """Bring what is behind `after` to `folder`, as a puller does; hashes of the blocks."""
    head = dataset.head()
    with dataset.offer(head, after) as offer:
        (folder / "blocks").mkdir(parents=True, exist_ok=True)
        for each in offer.blocks:
            (folder / "blocks" / str(each.hash)).write_bytes(each.data)
        store = DatasetStore(folder)
        objects = objects_of(block for _, block in store.walk(offer.head, after))
        offer.download(objects, folder)
    return [str(each.hash) for each in offer.blocks]


def test_a_dataset_that_nobody_published_has_no_head(there: WritableDataset) -> None:
    assert there.head() is None
    assert there.info("alias") is None


def test_what_was_pushed_comes_back_byte_for_byte(
    there: WritableDataset, store: DatasetStore, tmp_path: Path
) -> None:
    there.publish(publication(store))
    assert there.head() == store.head()
    assert there.info("alias") == NAME.encode()
    hashes = pulled(there, tmp_path / "back")
    assert hashes == [str(hash) for hash, _ in store.walk(store.head())][::-1]
    assert tree(tmp_path / "back") == {
        name: data
        for name, data in tree(store.path).items()
        if name.split("/")[0] in ("blocks", "data", "checkpoints")
    }


def test_only_what_is_behind_the_known_block_comes(
    there: WritableDataset, store: DatasetStore, tmp_path: Path
) -> None:
    there.publish(publication(store))
    known = store.head()
    add_slice(store, tmp_path / "three", 15, 5)
    there.publish(publication(store, known))
    assert pulled(there, tmp_path / "new", known) == [str(store.head())]
    assert len(tree(tmp_path / "new" / "data")) == 1
    with there.offer(store.head(), store.head()) as offer:
        assert list(offer.blocks) == []


def test_a_known_block_of_another_history_brings_all_blocks(
    there: WritableDataset, store: DatasetStore
) -> None:
    there.publish(publication(store))
    with there.offer(store.head(), Multihash.sha3_256(b"another")) as offer:
        assert len(offer.blocks) == 5


def test_a_dataset_of_the_seed_alone_can_be_published(
    there: WritableDataset, tmp_path: Path
) -> None:
    seed = create(workspace(tmp_path / "other"), NAME)
    there.publish(publication(seed))
    with there.offer(there.head(), None) as offer:
        assert [each.hash for each in offer.blocks] == [seed.head()]


def test_of_two_pushes_at_once_one_wins_and_the_other_is_told(
    there: WritableDataset, store: DatasetStore, tmp_path: Path
) -> None:
    there.publish(publication(store))
    known = store.head()
    shutil.copytree(store.path, tmp_path / "second")
    second = DatasetStore(tmp_path / "second", NAME)
    add_slice(store, tmp_path / "mine", 15, 5)
    add_slice(second, tmp_path / "theirs", 15, 6)
    there.publish(publication(second, known))
    before = there.info("alias")
    with pytest.raises(StaleHeadError, match="changed by another writer") as error:
        there.publish(publication(store, known))
    assert error.value.code == "E1016"
    assert there.head() == second.head()
    assert there.info("alias") == before


def test_a_history_is_replaced_where_that_is_asked_for(
    there: WritableDataset, store: DatasetStore, tmp_path: Path
) -> None:
    there.publish(publication(store))
    shutil.copytree(store.path, tmp_path / "second")
    old = store.head()
    seed = store.seed(old)
    store.append(old, (info("again"),), store.read_block(old).system_time, onto=seed)
    there.publish(publication(store, old, force=True))
    assert there.head() == store.head()


def test_a_first_push_meets_a_dataset_that_is_there_already(
    there: WritableDataset, store: DatasetStore
) -> None:
    there.publish(publication(store))
    with pytest.raises(StaleHeadError) as error:
        there.publish(publication(store))
    assert f"actual head:   {store.head()}" in error.value.notes


def test_what_is_there_is_not_fetched_again(
    there: WritableDataset, store: DatasetStore, tmp_path: Path
) -> None:
    there.publish(publication(store))
    objects = publication(store).objects
    told: list[int] = []
    with there.offer(store.head(), None) as offer:
        offer.download(objects[:1], tmp_path / "back", told.append)
        offer.download([*objects, *objects], tmp_path / "back", told.append)
        assert sum(told) == sum(each.size for each in objects)
        offer.download(objects, tmp_path / "back", told.append)
    assert sum(told) == sum(each.size for each in objects)


def test_files_beside_the_chain_are_published_with_it(
    there: WritableDataset, store: DatasetStore
) -> None:
    there.publish(replace(publication(store), info={"signature": b"signed"}))
    assert there.info("signature") == b"signed"
    there.publish(replace(publication(store, store.head()), blocks=[], info={"signature": b"2"}))
    assert there.info("signature") == b"2"
    assert there.head() == store.head()


def test_a_file_that_is_not_what_was_committed_is_not_pushed(
    there: WritableDataset, store: DatasetStore
) -> None:
    made = publication(store)
    file = made.files[made.objects[0].hash]
    file.chmod(0o644)
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    with pytest.raises(IntegrityError) as error:
        there.publish(made)
    assert error.value.code == "E0813"
    assert there.head() is None


def test_a_store_that_ignores_conditions_is_not_pushed_to(
    store: DatasetStore, tmp_path: Path
) -> None:
    with gs_endpoint(), Remotes(tmp_path, {}) as remotes:
        there = remotes.writable(f"gs://{BUCKET}/{NAME}")
        with pytest.raises(RepositoryError, match="two writers at once") as error:
            there.publish(publication(store))
        assert error.value.code == "E1017"
        assert there.head() is None
        with gs_conditions():
            there.publish(publication(store))
            assert there.head() == store.head()
            with pytest.raises(StaleHeadError):
                there.publish(publication(store))
