"""Datasets on web servers: a plain one is enough to pull from, and a bad one does no harm."""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from odfbuild.errors import OdfbuildError, RepositoryError
from odfbuild.exchange.repositories.contract import ObjectFile
from odfbuild.exchange.repositories.http import Patience, WebFolder
from odfbuild.exchange.repositories.open import Remotes
from odfbuild.exchange.repositories.simple import SimpleDataset
from odfbuild.odf.flatbuffers.form import encode_block
from odfbuild.odf.multihash import Multihash
from odfbuild.project.settings.sharing import RepositorySettings
from odfbuild.store.dataset import DatasetStore
from tests.exchange.repositories.publishing import objects_of, publication, tree
from tests.servers.faulty import Answer, Faulty, faulty_server, response
from tests.servers.web import Server, nginx
from tests.store.chains import add_slice, create, info, workspace

NAME = "org.example.prices"
HEAD = Multihash.sha3_256(b"head")
HASTY = Patience(connect=1, idle=0.5, grace=0.5, slowest=1 << 20, attempts=2, pause=0.01)
TOKEN = "token-of-acme-1234567"


@pytest.fixture
def store(tmp_path: Path) -> DatasetStore:
    """A dataset of five blocks and two objects."""
    made = create(workspace(tmp_path / "project"), NAME, info("prices"))
    add_slice(made, tmp_path / "one", 0, 10)
    add_slice(made, tmp_path / "two", 10, 5)
    return made


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with nginx(tmp_path_factory.mktemp("web")) as server:
        yield server


def refused(
    server: Faulty, code: str, said: str, authorization: str | None = None
) -> RepositoryError:
    """Reading the head fails, and says why and what to do."""
    place = WebFolder.at(f"http://127.0.0.1:{server.port}/x", authorization, HASTY)
    with contextlib.closing(place), pytest.raises(RepositoryError, match=said) as caught:
        SimpleDataset(place).head()
    assert caught.value.code == code
    assert caught.value.help
    assert TOKEN not in f"{caught.value}{caught.value.notes}{caught.value.help}"
    return caught.value


# --- A plain web server is enough ---


def test_what_was_pushed_to_the_folder_of_a_web_server_is_pulled_from_it(
    web: Server, store: DatasetStore, tmp_path: Path
) -> None:
    with Remotes(tmp_path, {"acme": RepositorySettings(url=web.url("repo/"))}) as remotes:
        remotes.writable(f"{web.www}/repo/{NAME}").publish(publication(store))
        dataset = remotes.dataset(f"acme/{NAME}")
        assert dataset.head() == store.head()
        assert dataset.info("alias") == NAME.encode()
        with dataset.offer(store.head(), None) as offer:
            blocks = {f"blocks/{each.hash}": each.data for each in offer.blocks}
            objects = objects_of(block for _, block in store.walk(offer.head))
            offer.download(objects, tmp_path / "back")
    mine = {n: d for n, d in tree(store.path).items() if n.split("/")[0] in ("blocks", "data")}
    assert {**blocks, **tree(tmp_path / "back")} == mine


def test_a_dataset_that_is_not_there_has_no_head(web: Server, tmp_path: Path) -> None:
    with Remotes(tmp_path, {}) as remotes:
        assert remotes.dataset(web.url(f"nowhere/{NAME}")).head() is None


def test_plain_web_servers_take_no_pushes_and_the_way_out_is_named(
    web: Server, tmp_path: Path
) -> None:
    with Remotes(tmp_path, {}) as remotes, pytest.raises(RepositoryError) as caught:
        remotes.writable(web.url(NAME))
    assert caught.value.code == "E1014"
    assert "odf+http://127.0.0.1" in caught.value.help


def test_an_object_that_the_web_server_lacks_is_named(
    web: Server, store: DatasetStore, tmp_path: Path
) -> None:
    lost = ObjectFile("data", Multihash.sha3_256(b"lost"), 10)
    with Remotes(tmp_path, {}) as remotes:
        remotes.writable(f"{web.www}/lost/{NAME}").publish(publication(store))
        with (
            remotes.dataset(web.url(f"lost/{NAME}")).offer(store.head(), None) as offer,
            pytest.raises(RepositoryError, match=f"data/{lost.hash} is missing") as caught,
        ):
            offer.download([lost], tmp_path / "back")
    assert caught.value.code == "E1007"
    assert tree(tmp_path / "back") == {}


# --- Credentials ---


def test_a_token_goes_to_the_repository_and_a_password_in_its_address_does_not_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_TOKEN", TOKEN)
    with faulty_server(response(str(HEAD).encode())) as server:
        url = f"http://127.0.0.1:{server.port}"
        known = {"acme": RepositorySettings(url=url, token="${{ env.ACME_TOKEN }}")}
        with Remotes(tmp_path, known) as remotes:
            assert remotes.dataset(f"acme/{NAME}").head() == HEAD
            with_password = remotes.dataset(f"http://me:secret@127.0.0.1:{server.port}/{NAME}")
            assert with_password.head() == HEAD
            assert with_password.address == f"{url}/{NAME}"
        asked = [each for each in server.requests if "refs/head" in each]
        assert f"Authorization: Bearer {TOKEN}" in asked[0]
        assert "Authorization: Basic bWU6c2VjcmV0" in asked[1]


def test_a_redirect_to_another_host_is_followed_without_credentials() -> None:
    with faulty_server(response(str(HEAD).encode())) as other:
        away = response(b"", f"Location: {other.url}", status="302 Found")
        with (
            faulty_server(away) as server,
            contextlib.closing(
                WebFolder.at(f"http://127.0.0.1:{server.port}/x", f"Bearer {TOKEN}", HASTY)
            ) as place,
        ):
            assert SimpleDataset(place).head() == HEAD
        assert TOKEN in server.requests[0]
        assert TOKEN not in other.requests[0]
        assert "authorization" not in other.requests[0].lower()


def test_a_host_that_lacks_the_credentials_is_named_when_it_refuses() -> None:
    with faulty_server(response(b"", status="401 Unauthorized")) as other:
        away = response(b"", f"Location: {other.url}", status="302 Found")
        with faulty_server(away) as server:
            error = refused(server, "E1005", "may not be read", authorization=f"Bearer {TOKEN}")
    assert "redirects to 127.0.0.1, which is not told the credentials" in " ".join(error.notes)


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("ftp://127.0.0.1/head", "redirects to a ftp: address"),
        ("file:///etc/passwd", "redirects to a file: address"),
        ("/x/refs/head", "redirects more than 5 times"),
    ],
)
def test_a_redirect_that_leads_nowhere_is_refused(location: str, said: str) -> None:
    with faulty_server(response(b"", f"Location: {location}", status="302 Found")) as server:
        refused(server, "E1013", said)


def test_a_redirect_from_https_to_http_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with faulty_server(response(str(HEAD).encode())) as plain:
        away = response(b"", f"Location: {plain.url}", status="302 Found")
        with faulty_server(away) as server:
            server.wrap = lambda connection: context.wrap_socket(connection, server_side=True)
            url = f"https://127.0.0.1:{server.port}/x"
            with contextlib.closing(WebFolder.at(url, patience=HASTY)) as stranger:
                with pytest.raises(RepositoryError) as caught:
                    SimpleDataset(stranger).head()
                assert caught.value.code == "E1001"
                assert "SSL_CERT_FILE" in caught.value.help
            monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
            with (
                contextlib.closing(WebFolder.at(url, patience=HASTY)) as place,
                pytest.raises(RepositoryError, match="from https to http") as caught,
            ):
                SimpleDataset(place).head()
        assert caught.value.code == "E1013"
        assert plain.requests == []


# --- What the answer says ---


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        ("401 Unauthorized", "E1005", "may not be read without credentials"),
        ("403 Forbidden", "E1005", "may not be read without credentials"),
        ("500 Internal Server Error", "E1012", "500 Internal Server Error"),
        ("503 Service Unavailable", "E1012", "503 Service Unavailable"),
        ("418 I'm a teapot", "E1012", "418 I'm a teapot"),
        ("204 No Content", "E1012", "204 No Content"),
    ],
)
def test_each_status_is_told_as_what_it_is(status: str, code: str, said: str) -> None:
    with faulty_server(response(b"", status=status)) as server:
        refused(server, code, said)


def test_a_server_that_fails_once_is_asked_again() -> None:
    failed = response(b"", status="503 Service Unavailable")
    with (
        faulty_server(failed, response(str(HEAD).encode())) as server,
        contextlib.closing(
            WebFolder.at(f"http://127.0.0.1:{server.port}/x", patience=HASTY)
        ) as place,
    ):
        assert SimpleDataset(place).head() == HEAD


def test_a_download_that_breaks_is_made_again_and_counted_once(tmp_path: Path) -> None:
    data = b"slice" * 1000
    wanted = ObjectFile("data", Multihash.sha3_256(data), len(data))
    told: list[int] = []
    with faulty_server(response(data[:99], length=len(data)), response(data)) as server:
        place = WebFolder.at(f"http://127.0.0.1:{server.port}/x", patience=HASTY)
        with contextlib.closing(place):
            SimpleDataset(place).fetch(wanted, tmp_path, told.append)
    assert sum(told) == len(data)
    assert tree(tmp_path) == {f"data/{wanted.hash}": data}


def test_a_server_that_is_gone_is_named() -> None:
    with faulty_server(b"") as server:
        pass
    refused(server, "E1001", "cannot be used")


def test_a_page_instead_of_a_head_is_told_as_what_it_is(tmp_path: Path) -> None:
    with faulty_server(response(b"<!doctype html><title>Welcome</title>")) as server:
        url = f"http://127.0.0.1:{server.port}/x"
        with Remotes(tmp_path, {}) as remotes, pytest.raises(OdfbuildError) as caught:
            remotes.dataset(url).head()
    assert caught.value.code == "E1009"
    assert "doctype" in " ".join(caught.value.notes)


def test_64_an_old_block_that_a_server_encodes_anew_is_told_as_such(store: DatasetStore) -> None:
    block = store.read_block(store.head())
    hash = Multihash.sha3_256(encode_block(block, 2))
    with faulty_server(response(encode_block(block, 3))) as server:
        place = WebFolder.at(f"http://127.0.0.1:{server.port}/x", patience=HASTY)
        with contextlib.closing(place), pytest.raises(OdfbuildError) as caught:
            SimpleDataset(place).block(hash)
    assert caught.value.code == "E1006"
    assert f"try odf+http://127.0.0.1:{server.port}/x" in " ".join(caught.value.notes)


# --- Slow, endless and packed answers ---


def dribble(first: bytes, each: bytes, pause: float = 0.0) -> Answer:
    """Send `first`, and then `each` until nobody listens."""

    def answer(connection: socket.socket, request: str) -> None:
        connection.sendall(first)
        with contextlib.suppress(OSError):
            while True:
                connection.sendall(each)
                time.sleep(pause)

    return answer


_CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def test_a_server_that_stops_in_an_answer_is_given_up() -> None:
    answer = dribble(_CHUNKED + b"1\r\nf\r\n", b"", 5)
    with faulty_server(answer) as server:
        refused(server, "E1018", r"it stopped for 0\.5 seconds")


def test_a_server_that_sends_a_byte_now_and_then_is_given_up() -> None:
    begin = time.monotonic()
    with faulty_server(dribble(_CHUNKED, b"1\r\nf\r\n", 0.05)) as server:
        refused(server, "E1018", r"refs/head brought \d+ bytes in \d second")
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize(
    "first", [_CHUNKED, b"HTTP/1.1 200 OK\r\n\r\n", response(b"", length=1 << 40)]
)
def test_an_endless_answer_is_given_up(first: bytes, tmp_path: Path) -> None:
    piece = b"10000\r\n" + bytes(1 << 16) + b"\r\n"
    with faulty_server(dribble(first, piece)) as server:
        refused(server, "E1011", "refs/head has more than the 1,024 bytes")
        place = WebFolder.at(f"http://127.0.0.1:{server.port}/x", patience=HASTY)
        wanted = ObjectFile("data", HEAD, 1000)
        with contextlib.closing(place), pytest.raises(RepositoryError) as caught:
            SimpleDataset(place).fetch(wanted, tmp_path, None)
    assert caught.value.code == "E1011"
    assert tree(tmp_path) == {}


def test_an_answer_that_unpacks_to_much_is_never_unpacked(tmp_path: Path) -> None:
    import gzip

    packed = gzip.compress(bytes(10 << 20))
    wanted = ObjectFile("data", HEAD, 10 << 20)
    with faulty_server(response(packed, "Content-Encoding: gzip")) as server:
        place = WebFolder.at(f"http://127.0.0.1:{server.port}/x", patience=HASTY)
        told: list[int] = []
        with contextlib.closing(place), pytest.raises(OdfbuildError) as caught:
            SimpleDataset(place).fetch(wanted, tmp_path, told.append)
    assert caught.value.code == "E1008"
    assert sum(told) == len(packed)
    assert [*(tmp_path / "data").iterdir()] == []
