"""Places in a folder and in each kind of object store, beside real endpoints."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from odfbuild.store.bucket import Bucket
from odfbuild.store.place import Place, TooLarge, Unconditional
from odfbuild.store.storage import open_place
from tests.servers.objects import BUCKET, az_endpoint, gs_conditions, gs_endpoint, s3_endpoint

KINDS = ("folder", "s3", "gs", "az")


@pytest.fixture(scope="module")
def endpoints(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    azure = az_endpoint(tmp_path_factory.mktemp("azure"))
    with s3_endpoint(), gs_endpoint(), gs_conditions(), azure:
        yield


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path, endpoints: None) -> Place:
    """An empty place of the kind that the test asks for."""
    kind = request.param
    address = f"{tmp_path}/there" if kind == "folder" else f"{kind}://{BUCKET}/{tmp_path.name}/x"
    return open_place(address, tmp_path)


everywhere = pytest.mark.parametrize("place", KINDS, indirect=True)


@everywhere
def test_what_was_written_is_read_measured_and_downloaded(place: Place, tmp_path: Path) -> None:
    place.write("refs/head", b"f1620")
    (tmp_path / "file").write_bytes(b"data" * 1000)
    told: list[int] = []
    place.upload(tmp_path / "file", "data/f16", told.append)
    assert place.read("refs/head", 5) == b"f1620"
    assert (place.size("refs/head"), place.size("data/f16")) == (5, 4000)
    assert place.download("data/f16", tmp_path / "back", 4000, told.append)
    assert (tmp_path / "back").read_bytes() == b"data" * 1000
    assert sum(told) in (8000, 4000)  # not every client tells of uploads


@everywhere
def test_what_is_not_there_is_told_without_an_error(place: Place, tmp_path: Path) -> None:
    assert place.read("refs/head", 10) is None
    assert place.size("refs/head") is None
    assert not place.download("refs/head", tmp_path / "back", 10)
    assert place.list() == []
    assert place.list("refs") == []


@everywhere
def test_an_empty_file_is_read(place: Place) -> None:
    place.write("refs/head", b"")
    assert place.read("refs/head", 10) == b""


@everywhere
def test_files_that_are_too_large_are_given_up(place: Place, tmp_path: Path) -> None:
    place.write("data/f16", bytes(100_000))
    with pytest.raises(TooLarge, match="99,999"):
        place.read("data/f16", 99_999)
    with pytest.raises(TooLarge, match="99,999"):
        place.download("data/f16", tmp_path / "back", 99_999)
    assert place.download("data/f16", tmp_path / "back", 100_000)


@everywhere
def test_names_are_listed_one_level_at_a_time(place: Place) -> None:
    for name in ("a/refs/head", "a/blocks/f1", "b/c/refs/head", "top"):
        place.write(name, b"x")
    assert place.list() == ["a/", "b/", "top"]
    assert place.list("a") == ["blocks/", "refs/"]
    assert place.below("b").list() == ["c/"]
    assert place.below("b").below("c").read("refs/head", 1) == b"x"
    assert place.below("b").address.endswith("/b")


@everywhere
def test_files_are_listed_at_any_depth_with_sizes_and_times_and_removed(place: Place) -> None:
    begin = time.time()
    for name in ("a/refs/head", "a/blocks/f1", "top"):
        place.write(name, b"xy")
    found = {each.name: each for each in place.files()}
    assert found.keys() == {"a/refs/head", "a/blocks/f1", "top"}
    assert {each.bytes for each in found.values()} == {2}
    assert all(begin - 5 < each.written < time.time() + 5 for each in found.values())
    assert {each.name for each in place.files("a")} == {"a/refs/head", "a/blocks/f1"}
    assert list(place.files("b")) == []
    place.remove("a/refs/head")
    place.remove("a/refs/head")
    assert {each.name for each in place.files()} == {"a/blocks/f1", "top"}


@everywhere
def test_a_file_is_swapped_only_where_it_is_what_was_expected(place: Place) -> None:
    assert not place.swap("refs/head", b"old", b"new")
    assert place.swap("refs/head", None, b"one")
    assert not place.swap("refs/head", None, b"two")
    assert not place.swap("refs/head", b"two", b"three")
    assert not place.swap("refs/head", b"on", b"three")
    assert place.read("refs/head", 10) == b"one"
    assert place.swap("refs/head", b"one", b"two")
    assert place.read("refs/head", 10) == b"two"


@everywhere
@pytest.mark.parametrize("expected", [None, b"start"])
def test_of_many_writers_at_once_one_wins(place: Place, expected: bytes | None) -> None:
    if expected is not None:
        place.write("refs/head", expected)
    won: list[bytes] = []
    begin = threading.Barrier(8)

    def write(number: int) -> None:
        begin.wait()
        new = b"writer %d" % number
        if place.swap("refs/head", expected, new):
            won.append(new)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [place.read("refs/head", 20)] == won


@pytest.mark.parametrize("place", ["s3"], indirect=True)
@pytest.mark.parametrize("said", ["501", "parameter"])
def test_a_store_without_conditional_writes_is_told(
    place: Place, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        if said == "parameter":
            raise ParamValidationError("Unknown parameter in input: IfNoneMatch")
        error = OSError("A header you provided implies functionality that is not implemented")
        error.__cause__ = _Answered()
        raise error

    assert isinstance(place, Bucket)
    monkeypatch.setattr(place._client, "call_s3", refuse)
    with pytest.raises(Unconditional):
        place.swap("refs/head", None, b"one")


class ParamValidationError(Exception):
    """What a client says that is older than conditional writes."""


class _Answered(Exception):
    response = {"ResponseMetadata": {"HTTPStatusCode": 501}}
