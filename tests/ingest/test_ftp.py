import os
import ssl

import pytest

from odfbuild.errors import IngestError
from odfbuild.ingest.fetch import ftp as ftp_step
from odfbuild.ingest.fetch.url import fetch_url
from odfbuild.odf.model import FetchStepUrl
from odfbuild.odf.timestamp import Timestamp
from tests.ingest.contexts import Poller, at
from tests.servers.files import ftp_server

MODIFIED = Timestamp.parse("2020-01-01T00:00:00Z")
BIG = bytes(range(256)) * 8000


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with ftp_server(tmp_path_factory.mktemp("ftp")) as running:
        yield running


@pytest.fixture(autouse=True)
def _impatient(monkeypatch, server):
    monkeypatch.setattr(ftp_step, "_FIRST_WAIT", 0.01)
    server.commands.clear()
    server.break_after = None


def put(server, name, content, moment=MODIFIED):
    file = server.folder / name
    file.write_bytes(content)
    os.utime(file, (moment.millis / 1000, moment.millis / 1000))
    return FetchStepUrl(url=server.url(name))


def transfers(server):
    return [line for line in server.commands if line.startswith("RETR")]


def test_a_file_is_fetched_once_for_each_modification(server, tmp_path):
    source = Poller(tmp_path, put(server, "once.csv", b"one"))
    assert source.poll() == [b"one"]
    assert source.state.value == str(MODIFIED)
    assert source.found[0].event_time == MODIFIED
    assert source.poll() == []
    assert len(transfers(server)) == 1
    put(server, "once.csv", b"two", Timestamp(MODIFIED.ns + 10**9))
    assert source.poll() == [b"two"]


def test_a_download_that_broke_off_goes_on_in_the_next_run(server, tmp_path):
    source = Poller(tmp_path, put(server, "big.bin", BIG), attempts=1, idle_seconds=3)
    server.break_after = 100_000
    with pytest.raises(IngestError, match="cannot fetch"):
        source.poll()
    server.break_after = None
    source.settings.pop("idle_seconds")
    assert source.poll() == [BIG]
    (rest,) = [line for line in server.commands if line.startswith("REST")]
    assert int(rest.split()[1]) >= 100_000


def test_what_was_fetched_and_not_committed_is_not_fetched_again(server, tmp_path):
    source = Poller(tmp_path, put(server, "kept.csv", b"kept"))
    assert source.poll(crash="before") == []
    assert source.poll(crash="after") == [b"kept"]
    assert source.poll() == []
    assert len(transfers(server)) == 1


def test_a_path_begins_where_the_login_leads_unless_it_says_otherwise(server, tmp_path):
    put(server, "here.csv", b"here")
    anonymous = f"ftp://localhost:{server.port}"
    assert Poller(tmp_path, FetchStepUrl(url=f"{anonymous}/here.csv")).poll() == [b"here"]
    assert Poller(tmp_path, FetchStepUrl(url=f"{anonymous}/%2Fhere.csv")).poll() == [b"here"]
    assert transfers(server) == ["RETR here.csv", "RETR /here.csv"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda url: url.replace("s3cret-pass", "wrong-pass"), "530"),
        (lambda url: url + ".not", "550"),
        (lambda url: url.replace("localhost", "no-such-host.invalid"), "cannot fetch"),
        (lambda url: url.replace(":", "::", 1), "not"),
        (lambda url: url + "%0d%0aDELE%20x", "not an FTP address"),
    ],
    ids=["password", "missing", "host", "address", "line break"],
)
def test_what_cannot_be_fetched_is_explained_without_the_password(server, tmp_path, change, said):
    put(server, "there.csv", b"x")
    step = FetchStepUrl(url=change(server.url("there.csv")))
    with pytest.raises(IngestError, match=said) as caught:
        list(fetch_url(step, None, at(tmp_path, attempts=2)))
    assert caught.value.help
    assert "-pass" not in caught.value.message + "".join(caught.value.notes)


def test_tls_is_used_and_its_certificate_is_checked(tmp_path, monkeypatch):
    import trustme

    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    pem = tmp_path / "server.pem"
    certificate.private_key_and_cert_chain_pem.write_to_path(pem)
    with ftp_server(tmp_path / "tls", pem) as server:
        step = put(server, "a.csv", b"safe")
        step = FetchStepUrl(url=server.url("a.csv", "ftps"))
        with pytest.raises(IngestError, match="certificate is not trusted"):
            Poller(tmp_path, step).poll()
        trusted = tmp_path / "ca.pem"
        authority.cert_pem.write_to_path(trusted)
        monkeypatch.setenv(ssl.get_default_verify_paths().openssl_cafile_env, str(trusted))
        assert Poller(tmp_path, step).poll() == [b"safe"]
        assert "PROT P" in server.commands
