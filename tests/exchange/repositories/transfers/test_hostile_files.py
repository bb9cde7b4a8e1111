"""Files of a repository that are not what they should be: nothing of them is taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from odfbuild.errors import OdfbuildError
from odfbuild.exchange.repositories.contract import ObjectFile
from odfbuild.exchange.repositories.open import Remotes
from odfbuild.exchange.repositories.simple import Limits, SimpleDataset
from odfbuild.odf.flatbuffers.form import encode_block
from odfbuild.odf.model import AddData, Checkpoint, MetadataBlock
from odfbuild.odf.multihash import Multihash
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.place import Folder
from tests.exchange.repositories.publishing import objects_of, publication, tree
from tests.servers.web import Server, nginx
from tests.store.chains import NOW, add_slice, create, info, workspace

NAME = "org.example.prices"


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with nginx(tmp_path_factory.mktemp("web")) as server:
        yield server


@pytest.fixture
def store(tmp_path: Path) -> DatasetStore:
    """A dataset with slices and a checkpoint."""
    made = create(workspace(tmp_path / "project"), NAME, info("prices"))
    add_slice(made, tmp_path / "one", 0, 10)
    (tmp_path / "state").write_bytes(b"state" * 100)
    hash = Multihash.of_contents(tmp_path / "state")
    made.put_object("checkpoints", tmp_path / "state", hash)
    event = AddData(prev_offset=9, new_checkpoint=Checkpoint(physical_hash=hash, size=500))
    made.append(made.head(), [replace(event, new_watermark=NOW)], NOW)
    return made


@pytest.fixture(params=["folder", "http:"])
def published(
    request: pytest.FixtureRequest, tmp_path: Path, store: DatasetStore, web: Server
) -> Iterator[tuple[SimpleDataset, Path]]:
    """The dataset in a repository, and the folder that has its files."""
    folder = web.www / tmp_path.name
    with Remotes(tmp_path, {}) as remotes:
        remotes.writable(f"{folder}/{NAME}").publish(publication(store))
        at = str(folder) if request.param == "folder" else web.url(tmp_path.name)
        opened = remotes.dataset(f"{at}/{NAME}")
        assert isinstance(opened, SimpleDataset)
        yield opened, folder / NAME


def pull(dataset: SimpleDataset, store: DatasetStore, folder: Path) -> None:
    """Take over everything, blocks last."""
    with dataset.offer(dataset.head(), None) as offer:
        offer.download(objects_of(block for _, block in store.walk(store.head())), folder)
        (folder / "blocks").mkdir(parents=True)
        for each in offer.blocks:
            (folder / "blocks" / str(each.hash)).write_bytes(each.data)


def walk(dataset: SimpleDataset, head: Multihash) -> None:
    """Read all blocks."""
    with dataset.offer(head, None):
        pass


def flipped(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


CODES = {"blocks": "E1006", "data": "E1008", "checkpoints": "E1008"}


@pytest.mark.parametrize("kind", CODES)
def test_a_flipped_bit_is_found_in_each_kind_of_file(
    published: tuple[SimpleDataset, Path], store: DatasetStore, tmp_path: Path, kind: str
) -> None:
    dataset, folder = published
    for file in sorted((folder / kind).iterdir()):
        intact = file.read_bytes()
        file.write_bytes(flipped(intact))
        with pytest.raises(OdfbuildError, match=file.name) as caught:
            pull(dataset, store, tmp_path / "back")
        assert (caught.value.code, caught.value.exit_code) == (CODES[kind], 3)
        assert file.name not in str(tree(tmp_path / "back"))
        file.write_bytes(intact)
    pull(dataset, store, tmp_path / "back")


@pytest.mark.parametrize("kind", CODES)
@pytest.mark.parametrize(
    "change", [lambda data: data[:-1], lambda data: data + b"x", lambda data: b""]
)
def test_a_file_of_another_length_is_refused(
    published: tuple[SimpleDataset, Path],
    store: DatasetStore,
    tmp_path: Path,
    kind: str,
    change: Callable[[bytes], bytes],
) -> None:
    dataset, folder = published
    file = next((folder / kind).iterdir())
    file.write_bytes(change(file.read_bytes()))
    with pytest.raises(OdfbuildError) as caught:
        pull(dataset, store, tmp_path / "back")
    longer = len(file.read_bytes()) > 100 and change(b"") == b"x" and kind != "blocks"
    assert caught.value.code == ("E1011" if longer else CODES[kind])
    assert file.name not in str(tree(tmp_path / "back"))


@pytest.mark.parametrize("kind", CODES)
def test_a_file_that_is_gone_is_named(
    published: tuple[SimpleDataset, Path], store: DatasetStore, tmp_path: Path, kind: str
) -> None:
    dataset, folder = published
    file = next((folder / kind).iterdir())
    file.unlink()
    with pytest.raises(OdfbuildError, match=f"{file.name} is missing") as caught:
        pull(dataset, store, tmp_path / "back")
    assert caught.value.code == "E1007"


@pytest.mark.parametrize(
    "text", [b"", b"f1620", b"../../etc/passwd", b"f1620" + b"0" * 63, b"\xff\xfe", b"{}", b"f00"]
)
def test_a_head_that_is_no_hash_is_refused(
    published: tuple[SimpleDataset, Path], text: bytes
) -> None:
    dataset, folder = published
    (folder / "refs" / "head").write_bytes(text)
    with pytest.raises(OdfbuildError) as caught:
        dataset.head()
    assert (caught.value.code, caught.value.exit_code) == ("E1009", 3)


def test_a_head_is_read_in_any_spelling_and_moved_from_it(
    published: tuple[SimpleDataset, Path], store: DatasetStore, tmp_path: Path
) -> None:
    from multiformats import multibase

    dataset, folder = published
    head, file = store.head(), folder / "refs" / "head"
    for spelled in (
        f"{head}\n",
        f"F{str(head)[1:].upper()}",
        multibase.encode(head.binary, "base58btc"),
        multibase.encode(head.binary, "base64url"),
    ):
        file.write_text(spelled)
        assert dataset.head() == head
    store.append(head, [info("more")], NOW)
    SimpleDataset(Folder(folder)).publish(publication(store, head))
    assert file.read_bytes() == str(store.head()).encode()


def test_a_head_that_moves_while_it_is_read_gives_one_history_or_an_error(
    published: tuple[SimpleDataset, Path], store: DatasetStore, tmp_path: Path
) -> None:
    dataset, folder = published
    head = dataset.head()
    store.append(head, [info("more")], NOW)
    SimpleDataset(Folder(folder)).publish(publication(store, head))
    with dataset.offer(head, None) as offer:
        assert [offer.head, offer.blocks[-1].hash] == [head, head]
    # A new history whose owner has removed the files of the one before.
    (folder / "blocks" / str(store.seed(head))).unlink()
    with pytest.raises(OdfbuildError, match="is missing") as caught:
        walk(dataset, head)
    assert caught.value.code == "E1007"


def chained(folder: Path, blocks: list[MetadataBlock]) -> Multihash:
    """A chain of blocks that nobody checked, the last of which is returned."""
    (folder / "blocks").mkdir(parents=True, exist_ok=True)
    for block in blocks:
        data = encode_block(block)
        hash = Multihash.sha3_256(data)
        (folder / "blocks" / str(hash)).write_bytes(data)
    return hash


def test_numbers_of_blocks_have_to_go_down_to_the_seed(
    published: tuple[SimpleDataset, Path], store: DatasetStore
) -> None:
    dataset, folder = published
    block = store.read_block(store.head())
    for wrong in (
        replace(block, sequence_number=9),
        replace(block, sequence_number=0),
        replace(block, prev_block_hash=None),
    ):
        head = chained(folder, [wrong])
        with pytest.raises(OdfbuildError, match="is broken") as caught:
            walk(dataset, head)
        assert (caught.value.code, caught.value.exit_code) == ("E1010", 3)


def test_bytes_that_are_no_block_are_told(published: tuple[SimpleDataset, Path]) -> None:
    dataset, folder = published
    data = b"no block at all"
    hash = Multihash.sha3_256(data)
    (folder / "blocks" / str(hash)).write_bytes(data)
    with pytest.raises(OdfbuildError, match="cannot be read") as caught:
        walk(dataset, hash)
    assert caught.value.code == "E1010"


def test_blocks_and_chains_are_bounded(store: DatasetStore) -> None:
    place = Folder(store.path)
    for limits, said in (
        (Limits(block=100), "more than the 100 bytes"),
        (Limits(chain=1000), "new blocks are more"),
    ):
        with pytest.raises(OdfbuildError, match=said) as caught:
            walk(SimpleDataset(place, limits=limits), store.head())
        assert caught.value.code == "E1011"


def test_an_object_that_is_a_link_out_of_the_repository_is_not_taken(
    store: DatasetStore, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("secret")
    wanted = ObjectFile("data", Multihash.sha3_256(b"other"), 100)
    store.object_path("data", wanted.hash).symlink_to(tmp_path / "secret")
    with pytest.raises(OdfbuildError) as caught:
        SimpleDataset(Folder(store.path)).fetch(wanted, tmp_path / "back", None)
    assert caught.value.code == "E1008"
    assert tree(tmp_path / "back") == {}
