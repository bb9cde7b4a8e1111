"""Web servers, networks and downloads that break, and what is said and done then."""

import contextlib
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odfbuild.errors import IngestError
from odfbuild.ingest.fetch import http as http_step
from odfbuild.odf.model import FetchStepUrl, RequestHeader
from tests.ingest.contexts import Poller
from tests.servers import nginx
from tests.servers.faulty import faulty_server, response, silent

BODY = bytes(range(256)) * 20
HALF = len(BODY) // 2
STRONG = 'ETag: "v1"'


@pytest.fixture(autouse=True, scope="module")
def _impatient():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http_step, "_FIRST_WAIT", 0.01)
        yield


def source_of(server, tmp_path, **settings):
    settings = {"attempts": 2, **settings}
    return Poller(tmp_path, FetchStepUrl(url=server.url), **settings)


def half(*headers):
    """All is promised, and half of it comes."""
    return response(BODY[:HALF], *headers, length=len(BODY))


def rest(*headers, first=HALF):
    span = f"Content-Range: bytes {first}-{len(BODY) - 1}/{len(BODY)}"
    return response(BODY[first:], span, *headers, status="206 Partial Content")


def fails(source, said):
    """The run fails, says so with a way out, and commits nothing."""
    with pytest.raises(IngestError, match=said) as caught:
        source.poll()
    assert caught.value.help
    assert str(caught.value.location) == "fetch"
    assert source.committed == []
    return caught.value


def test_a_download_that_breaks_off_goes_on_where_it_stopped(tmp_path):
    with faulty_server(half(STRONG), rest(STRONG), response(b"", status="304 ")) as server:
        source = source_of(server, tmp_path)
        assert source.poll() == [BODY]
        assert f"range: bytes={HALF}-" in server.requests[1].lower()
        assert 'if-range: "v1"' in server.requests[1].lower()
        assert source.poll() == []


def test_it_goes_on_in_the_next_run_too(tmp_path):
    error = response(b"", status="500 Internal Server Error")
    with faulty_server(half(STRONG), error, rest(STRONG)) as server:
        source = source_of(server, tmp_path)
        error = fails(source, "500 Internal Server Error")
        assert "2,560 bytes have arrived and are kept" in "".join(error.notes)
        assert source.poll() == [BODY]
        assert f"bytes={HALF}-" in server.requests[2]


_KILLED = """
import sys
from pathlib import Path
from odfbuild.odf.model import FetchStepUrl
from tests.ingest.contexts import Poller
Poller(Path(sys.argv[1]), FetchStepUrl(url=sys.argv[2])).poll()
"""


def test_it_goes_on_when_the_process_was_killed_in_the_middle(tmp_path):
    body = BODY * 40
    span = f"Content-Range: bytes 100000-{len(body) - 1}/{len(body)}"
    sent = threading.Event()

    def stuck(connection: socket.socket, request: str) -> None:
        connection.sendall(response(body[:110_000], STRONG, length=len(body)))
        sent.wait(120)

    with faulty_server(stuck) as server:
        process = subprocess.Popen([sys.executable, "-c", _KILLED, str(tmp_path), server.url])
        part = None
        while part is None or part.stat().st_size < 100_000:
            time.sleep(0.02)
            part = next(tmp_path.rglob("part"), None)
        process.kill()
        process.wait()
        sent.set()
        os.truncate(part, 100_000)  # what is on disk when a machine stops is any beginning
        server.answers[1:] = [response(body[100_000:], span, STRONG, status="206 Partial Content")]
        source = Poller(tmp_path, FetchStepUrl(url=server.url))
        assert source.poll() == [body]
        assert "range: bytes=100000-" in server.requests[1].lower()


def test_it_begins_anew_when_the_data_changed_meanwhile(tmp_path):
    new = response(b"all new", 'ETag: "v2"')
    with faulty_server(half(STRONG), new) as server:
        source = source_of(server, tmp_path)
        assert source.poll() == [b"all new"]
        assert source.state.value == '"v2"'


@settings(deadline=None, max_examples=40)
@given(
    steps=st.lists(st.tuples(st.integers(0, 3000), st.booleans()), max_size=6),
    weak=st.booleans(),
)
def test_whatever_breaks_off_and_changes_the_data_is_one_whole_version(steps, weak):
    bodies = [bytes([version]) * (1000 + 300 * version) for version in range(8)]
    version = 0
    asked = 0

    def answer(connection: socket.socket, request: str) -> None:
        nonlocal version, asked
        cut, changes = steps[asked] if asked < len(steps) else (None, False)
        asked += 1
        version += changes
        body, tag = bodies[version], f'{"W/" if weak else ""}"v{version}"'
        fields = dict(line.split(": ", 1) for line in request.lower().splitlines()[1:] if line)
        start = 0
        if "range" in fields and fields["if-range"] == tag.lower():
            start = int(fields["range"].removeprefix("bytes=").rstrip("-"))
        status, headers = "200 OK", [f"ETag: {tag}"]
        if start:
            status = "206 Partial Content"
            headers.append(f"Content-Range: bytes {start}-{len(body) - 1}/{len(body)}")
        connection.sendall(
            response(body[start:][:cut], *headers, status=status, length=len(body) - start)
        )

    with tempfile.TemporaryDirectory() as folder, faulty_server(answer) as server:
        source = Poller(Path(folder), FetchStepUrl(url=server.url), attempts=1)
        while not source.committed:
            with contextlib.suppress(IngestError):
                source.poll()
        number = int(source.state.value.strip('W/"v'))
        assert source.committed == [bodies[number]]
        assert asked <= len(steps) + 1


@pytest.mark.parametrize("header", ['ETag: W/"v1"', "X-Nothing: 1"], ids=["weak", "none"])
def test_it_begins_anew_without_something_that_tells_versions_apart(tmp_path, header):
    with faulty_server(half(header), response(BODY, header)) as server:
        assert source_of(server, tmp_path).poll() == [BODY]
        assert "range" not in server.requests[1].lower()


def test_parts_that_do_not_fit_are_not_glued_together(tmp_path):
    answers = [half(STRONG), rest(STRONG, first=7), response(BODY, STRONG)]
    with faulty_server(*answers) as server:
        assert source_of(server, tmp_path, attempts=3).poll() == [BODY]
    refused = response(b"", status="416 Range Not Satisfiable")
    with faulty_server(half(STRONG), refused, response(BODY, STRONG)) as server:
        assert source_of(server, tmp_path, attempts=3).poll() == [BODY]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (half(), "without sending complete message body"),
        (response(b"x" * 10, "Transfer-Encoding: chunked"), "cannot fetch"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
            "incomplete chunked read",
        ),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "cannot fetch"),
        (b"", "disconnected"),
        (response(b"", status="502 Bad Gateway"), "502 Bad Gateway"),
        (response(b"", "Location: file:///etc/passwd", status="302 Found"), "file: address"),
        (response(b"", "Location: ftp://x/", status="302 Found"), "ftp: address"),
        (response(b"", status="304 Not Modified"), "304 where no version was known"),
        (rest(first=0), "206, a part"),
        (rest(), "206, a part"),
        (response(b"", status="204 No Content"), "204 No Content"),
        (response(b"", status="401 Unauthorized"), "401 Unauthorized"),
        (response(b"", status="410 Gone"), "410 Gone"),
        (silent(b""), "timed out|Timeout"),
        (silent(half()), "timed out|Timeout"),
        (silent(b"HTTP/1.1 200"), "timed out|Timeout"),
    ],
    ids=["short", "no chunks", "cut chunks", "not http", "hung up", "502", "to a file", "to ftp",
         "304", "206 from the beginning", "206", "204", "401", "410",
         "silent", "silent half way", "silent in headers"],
)  # fmt: skip
def test_what_a_server_should_not_do_is_explained_and_the_next_run_is_clean(tmp_path, answer, said):
    with faulty_server(answer) as server:
        patience = {"idle_seconds": 0.5} if callable(answer) else {}
        source = source_of(server, tmp_path, **patience)
        assert server.url in fails(source, said).message
        source.settings.pop("idle_seconds", None)
        server.answers[:] = [response(BODY, STRONG)]
        assert source.poll() == [BODY]


def test_a_server_may_say_how_long_to_wait(tmp_path):
    busy = response(b"", "Retry-After: 0", status="503 Service Unavailable")
    with faulty_server(busy, busy, response(BODY)) as server:
        assert source_of(server, tmp_path, attempts=3).poll() == [BODY]
    busy = response(b"", "Retry-After: 86400", status="429 Too Many Requests")
    with faulty_server(busy) as server:
        began = time.monotonic()
        error = fails(source_of(server, tmp_path, attempts=9), "429 Too Many Requests")
        assert time.monotonic() - began < 60
        assert len(server.requests) == 1
        assert "asks to wait 86400 seconds" in "".join(error.notes)


def test_downloads_have_a_largest_size_with_or_without_a_length(tmp_path):
    endless = b"HTTP/1.1 200 OK\r\n\r\n" + BODY * 30
    for answer in (response(BODY), endless):
        with faulty_server(answer) as server:
            fails(source_of(server, tmp_path, max_bytes=5000), "more than 5,000 bytes")


def test_downloads_have_a_longest_time(tmp_path):
    def trickle(connection: socket.socket, request: str) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
        for _ in range(100):
            connection.sendall(b"x")
            time.sleep(0.05)

    with faulty_server(trickle) as server:
        fails(source_of(server, tmp_path, total_seconds=0.3), "more than 0.3 seconds")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://no-such-host.invalid/x", "cannot fetch http://no-such-host.invalid/x"),
        ("http://127.0.0.1:1/x", "refused"),
        ("http://127.0.0.1:99999999/x", "Port out of range"),
        ("http://", "cannot fetch"),
        ("http://[::1/x", "not a URL"),
        ("gopher://x/y", "scheme 'gopher:'"),
        ("no scheme", "no scheme"),
    ],
)
def test_an_address_that_leads_nowhere_is_explained(tmp_path, url, said):
    source = Poller(tmp_path, FetchStepUrl(url=url), attempts=1)
    fails(source, said)


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path, monkeypatch):
    import trustme

    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)

    with faulty_server(response(BODY)) as server:
        inner = server.answers[0]
        assert isinstance(inner, bytes)
        url = server.url.replace("http:", "https:").replace("127.0.0.1", "localhost")
        server.wrap = lambda connection: context.wrap_socket(connection, server_side=True)
        source = Poller(tmp_path, FetchStepUrl(url=url), attempts=2)
        error = fails(source, "certificate is not trusted")
        assert "SSL_CERT_FILE" in error.help
        trusted = tmp_path / "ca.pem"
        authority.cert_pem.write_to_path(trusted)
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        assert source.poll() == [inner.partition(b"\r\n\r\n")[2]]


@pytest.mark.parametrize(
    ("name", "value", "sent"),
    [
        ("X-Token", "geheim-1111\n", b"geheim-1111"),
        ("X-Token", "geheim-ü", "geheim-ü".encode()),
        ("X-Token", "geheim-2222\r\nX-Other: 1", None),
        ("X-Token", "geheim-\x00-3333", None),
        ("X Token", "geheim-4444", None),
        ("X-Token:", "geheim-4444", None),
    ],
)
def test_headers_are_sent_whole_or_not_at_all(tmp_path, monkeypatch, name, value, sent):
    monkeypatch.setattr(os, "environ", {**os.environ, "ODFBUILD_TEST_H": value})
    headers = (RequestHeader(name=name, value="${{ env.ODFBUILD_TEST_H }}"),)
    with faulty_server(response(b"x")) as server:
        source = Poller(tmp_path, FetchStepUrl(url=server.url, headers=headers))
        if sent is None:
            error = fails(source, "cannot be sent")
            assert "geheim" not in error.message
            assert server.requests == []
        else:
            assert source.poll() == [b"x"]
            assert sent in server.requests[0].encode()


# --- a server that behaves ---


@pytest.fixture(scope="module")
def web(tmp_path_factory):
    with nginx(tmp_path_factory.mktemp("web")) as running:
        yield running


def transfers(web, name):
    return [line.split()[0] for line in web.requests() if f"/{name} " in line]


def test_each_version_of_a_page_is_fetched_once_whatever_happens_to_the_run(web, tmp_path):
    page = web.www / "versions.csv"
    page.write_text("one")
    source = Poller(tmp_path, FetchStepUrl(url=web.url("versions.csv")))
    assert source.poll(crash="before") == []
    assert source.poll(crash="after") == [b"one"]
    assert source.poll() == []
    assert transfers(web, "versions.csv") == ["200", "304", "304"]
    page.write_text("two, longer")
    assert source.poll(crash="before") == []
    page.write_text("three, even longer")
    assert source.poll() == [b"three, even longer"]
    assert source.poll() == []
    assert transfers(web, "versions.csv")[3:] == ["200", "200", "304"]


def test_a_page_that_came_back_to_what_was_committed_is_no_news(web, tmp_path):
    page = web.www / "back.csv"
    page.write_text("one")
    os.utime(page, (10**9, 10**9))
    source = Poller(tmp_path, FetchStepUrl(url=web.url("back.csv")))
    source.poll()
    page.write_text("other")
    assert source.poll(crash="before") == []
    page.write_text("one")
    os.utime(page, (10**9, 10**9))
    assert source.poll() == []


@pytest.mark.parametrize(("path", "said"), [("forbidden", "403"), ("nothing", "404")])
def test_what_may_not_be_had_is_asked_for_once(web, tmp_path, path, said):
    source = Poller(tmp_path, FetchStepUrl(url=web.url(path)))
    fails(source, said)
    assert transfers(web, path) == [said]


def test_a_secret_in_what_becomes_the_state_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("ODFBUILD_TEST_KEY", "geheim-9999")
    with faulty_server(response(b"x", 'ETag: "for geheim-9999"')) as server:
        step = FetchStepUrl(url=server.url + "?key=${{ env.ODFBUILD_TEST_KEY }}")
        with pytest.raises(IngestError, match="holds the value") as caught:
            Poller(tmp_path, step).poll()
        assert caught.value.code == "E0413"
        assert "key=geheim-9999" in server.requests[0]
    kept = b"".join(f.read_bytes() for f in (tmp_path / ".odfbuild").rglob("*.*"))
    assert kept
    assert b"key=" not in kept
