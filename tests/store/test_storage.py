"""The storage: a folder, or a bucket of a real S3 endpoint, that keeps objects by their hash."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from odfbuild.errors import EnvironmentProblem, IntegrityError
from odfbuild.odf.multihash import Multihash
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.storage import Storage
from tests.servers.objects import BUCKET, Objects, s3_endpoint

DATA = b"slice " * 1000
HASH = Multihash.sha3_256(DATA)


@pytest.fixture(scope="module")
def bucket() -> Iterator[Objects]:
    with s3_endpoint() as started:
        yield started


Spoil = Callable[[bytes], None]
"""Writes bytes to where the object with `HASH` is kept."""


@pytest.fixture(params=["folder", "file:", "s3:"])
def place(request: pytest.FixtureRequest, tmp_path: Path, bucket: Objects) -> tuple[Storage, Spoil]:
    """A storage of each kind, empty."""
    if request.param == "s3:":
        prefix = tmp_path.name
        return (
            Storage(f"s3://{BUCKET}/{prefix}/", tmp_path),
            lambda data: bucket.put(f"{prefix}/data/{HASH}", data),
        )
    folder = tmp_path / "sh re" / "deep"

    def spoil(data: bytes) -> None:
        (folder / "data").mkdir(parents=True, exist_ok=True)
        (folder / "data" / str(HASH)).write_bytes(data)

    address = "sh re/deep" if request.param == "folder" else folder.as_uri()
    return Storage(address, tmp_path), spoil


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "staged"
    path.write_bytes(DATA)
    return path


def test_what_was_put_comes_back(place: tuple[Storage, Spoil], file: Path, tmp_path: Path) -> None:
    storage, _ = place
    target = tmp_path / "chains" / "a" / "data" / str(HASH)
    assert storage.size("data", HASH) is None
    assert not storage.get("data", HASH, target)
    assert storage.put("data", HASH, file)
    assert storage.size("data", HASH) == len(DATA)
    assert storage.size("checkpoints", HASH) is None
    assert not storage.put("data", HASH, file)
    assert storage.get("data", HASH, target)
    assert target.read_bytes() == DATA
    assert [each.name for each in target.parent.iterdir()] == [str(HASH)]


def test_other_bytes_never_reach_a_dataset(place: tuple[Storage, Spoil], tmp_path: Path) -> None:
    storage, spoil = place
    spoil(DATA[:-1] + b"?")
    store = DatasetStore(tmp_path / "a", "a", storage)
    with pytest.raises(IntegrityError) as error:
        store.bring("data", HASH)
    assert error.value.code == "E0813"
    assert list((tmp_path / "a" / "data").iterdir()) == []


def test_an_upload_that_was_cut_off_is_made_again(
    place: tuple[Storage, Spoil], file: Path, tmp_path: Path
) -> None:
    storage, spoil = place
    spoil(DATA[:100])
    assert storage.put("data", HASH, file)
    assert storage.get("data", HASH, tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == DATA


def test_many_threads_put_and_get_the_same_object(
    place: tuple[Storage, Spoil], tmp_path: Path
) -> None:
    storage, _ = place
    errors: list[Exception] = []

    def work(number: int) -> None:
        try:
            own = tmp_path / f"staged-{number}"
            own.write_bytes(DATA)
            store = DatasetStore(tmp_path / str(number % 3), "a", storage)
            store.put_object("data", own, HASH)
            assert store.bring("data", HASH).read_bytes() == DATA
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert errors == []


def test_objects_that_only_the_storage_has_are_brought_in_order(
    place: tuple[Storage, Spoil], tmp_path: Path
) -> None:
    storage, _ = place
    hashes = []
    for number in range(20):
        staged = tmp_path / f"staged-{number}"
        staged.write_bytes(b"%d" % number)
        hashes.append(Multihash.sha3_256(b"%d" % number))
        DatasetStore(tmp_path / "a", "a", storage).put_object("data", staged, hashes[-1])
    other = DatasetStore(tmp_path / "b", "b", storage)
    files = other.bring_all("data", [*hashes, hashes[0]])
    assert [file.read_bytes() for file in files] == [*(b"%d" % n for n in range(20)), b"0"]


def test_an_object_that_nobody_has_is_named_with_the_way_out(tmp_path: Path) -> None:
    for storage, way in ((None, "name a `storage`"), (Storage("s", tmp_path), "storage push")):
        with pytest.raises(IntegrityError, match=r"data object f1620.* of 'a' is missing") as error:
            DatasetStore(tmp_path / "a", "a", storage).bring("data", HASH)
        assert error.value.code == "E0811"
        assert way in (error.value.help or "")


def test_a_storage_that_does_not_answer_is_an_error_with_its_address(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch, bucket: Objects
) -> None:
    with pytest.raises(EnvironmentProblem, match=r"s3://no-such/x cannot be used") as error:
        Storage("s3://no-such/x", tmp_path).put("data", HASH, file)
    assert error.value.code == "E0911"
    assert "AWS_ENDPOINT_URL" in (error.value.help or "")
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(EnvironmentProblem, match="the storage taken cannot be used"):
        Storage("taken", tmp_path).put("data", HASH, file)
