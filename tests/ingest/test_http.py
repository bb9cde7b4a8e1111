import os
from pathlib import Path

import pytest

from odfbuild.errors import IngestError
from odfbuild.ingest.fetch import fetch
from odfbuild.ingest.fetch import http as http_step
from odfbuild.odf.model import (
    EventTimeSourceFromMetadata,
    EventTimeSourceFromSystemTime,
    FetchStepUrl,
    RequestHeader,
)
from odfbuild.odf.timestamp import Timestamp
from tests.ingest.contexts import at, copied
from tests.servers import nginx
from tests.servers.faulty import faulty_server, response

NOW = Timestamp.parse("2026-01-02T03:04:05Z")
MODIFIED = Timestamp.parse("2020-01-01T00:00:00Z")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with nginx(tmp_path_factory.mktemp("nginx")) as running:
        data = running.www / "data.csv"
        data.write_text("a,b\n1,2\n")
        os.utime(data, (MODIFIED.millis / 1000, MODIFIED.millis / 1000))
        yield running


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(http_step, "_FIRST_WAIT", 0.01)


def get(url, folder: Path, state=None, **more):
    return [
        copied(each, folder) for each in fetch(FetchStepUrl(url=url, **more), state, at(folder))
    ]


def test_a_download_has_the_bytes_and_the_etag_of_the_server(server, tmp_path):
    (found,) = get(server.url("data.csv"), tmp_path)
    assert found.file.read_text() == "a,b\n1,2\n"
    assert found.state.kind == "odf/etag"
    assert found.state.value.startswith('"')
    assert found.event_time == NOW
    assert not list(tmp_path.glob("*.part"))


def test_the_second_request_is_conditional_and_brings_nothing(server, tmp_path):
    (found,) = get(server.url("data.csv"), tmp_path)
    assert get(server.url("data.csv"), tmp_path, found.state) == []
    status, *_ = server.requests()[-1].split()
    assert status == "304"
    assert found.state.value.strip('"') in server.requests()[-1]


def test_without_an_etag_the_time_of_modification_is_the_state(server, tmp_path):
    (found,) = get(server.url("plain/data.csv"), tmp_path)
    assert (found.state.kind, found.state.value) == ("odf/last-modified", str(MODIFIED))
    assert found.event_time == MODIFIED
    assert get(server.url("plain/data.csv"), tmp_path, found.state) == []
    assert '"Wed, 01 Jan 2020 00:00:00 GMT"' in server.requests()[-1]


def test_a_redirect_is_followed(server, tmp_path):
    (found,) = get(server.url("moved"), tmp_path)
    assert found.file.read_text() == "a,b\n1,2\n"


def test_endless_redirects_end_after_ten(server, tmp_path):
    before = len(server.requests())
    with pytest.raises(IngestError, match="more than 10 times"):
        get(server.url("loop"), tmp_path)
    assert len(server.requests()) - before == 11


def test_an_unavailable_server_is_asked_four_times(server, tmp_path):
    before = len(server.requests())
    with pytest.raises(IngestError, match="503"):
        get(server.url("broken"), tmp_path)
    assert len(server.requests()) - before == 4


def test_what_is_not_there_is_asked_for_once(server, tmp_path):
    before = len(server.requests())
    with pytest.raises(IngestError, match="404") as caught:
        get(server.url("nothing.csv"), tmp_path)
    assert caught.value.help
    assert len(server.requests()) - before == 1


def test_nobody_listening_is_a_clear_error(tmp_path):
    with pytest.raises(IngestError, match=r"cannot fetch http://127\.0\.0\.1:9/x"):
        get("http://127.0.0.1:9/x", tmp_path)


def test_a_secret_goes_to_its_server_only_and_into_no_message(server, tmp_path, monkeypatch):
    monkeypatch.setenv("ODFBUILD_TEST_TOKEN", "geheim-1234")
    headers = (RequestHeader(name="X-Token", value="${{ env.ODFBUILD_TEST_TOKEN }}"),)
    get(server.url("data.csv"), tmp_path, headers=headers)
    assert "geheim-1234" in server.requests()[-1]
    get(server.url("away"), tmp_path, headers=headers)
    assert "geheim-1234" not in server.requests()[-1]
    with pytest.raises(IngestError) as caught:
        get(server.url("nothing/${{ env.ODFBUILD_TEST_TOKEN }}"), tmp_path)
    assert "geheim" not in caught.value.message + str(caught.value.notes)
    assert "env.ODFBUILD_TEST_TOKEN" in caught.value.message


def test_event_time_may_be_that_of_the_modification_also_beside_an_etag(server, tmp_path):
    (found,) = get(server.url("data.csv"), tmp_path, event_time=EventTimeSourceFromMetadata())
    assert found.event_time == MODIFIED
    assert found.state.kind == "odf/etag"
    (found,) = get(
        server.url("plain/data.csv"), tmp_path, event_time=EventTimeSourceFromSystemTime()
    )
    assert found.event_time == NOW
    with (
        faulty_server(response(b"x")) as silent,
        pytest.raises(IngestError, match="does not tell when") as caught,
    ):
        get(silent.url, tmp_path, event_time=EventTimeSourceFromMetadata())
    assert caught.value.code == "E0403"
