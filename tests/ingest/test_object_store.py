import sys
from datetime import UTC, datetime, timedelta

import pytest
from fsspec.registry import _registry as loaded

from odfbuild.errors import EnvironmentProblem, IngestError
from odfbuild.ingest.fetch import object_store
from odfbuild.ingest.fetch.download_cache import KeptDownload
from odfbuild.odf.model import EventTimeSourceFromMetadata, FetchStepUrl
from tests.ingest.contexts import NOW, Poller
from tests.servers.objects import BUCKET, az_endpoint, gs_endpoint, s3_endpoint

BIG = bytes(range(256)) * 40_000


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with s3_endpoint() as running:
        yield running


def source_of(store, tmp_path, key, body, **more):
    store.put(key, body)
    return Poller(tmp_path, FetchStepUrl(url=f"s3://{BUCKET}/{key}", **more))


def test_an_object_is_fetched_once_for_each_etag(store, tmp_path):
    source = source_of(store, tmp_path, "a/once.csv", b"one")
    assert source.poll() == [b"one"]
    assert (source.state.kind, source.found[0].event_time) == ("odf/etag", NOW)
    assert source.poll() == []
    store.put("a/once.csv", b"two")
    assert source.poll() == [b"two"]


def test_event_time_may_be_that_of_the_object(store, tmp_path):
    step = {"event_time": EventTimeSourceFromMetadata()}
    source = source_of(store, tmp_path, "timed.csv", b"x", **step)
    source.poll()
    stored = store.client.head_object(Bucket=BUCKET, Key="timed.csv")["LastModified"]
    assert source.found[0].event_time.to_datetime() == stored


def test_a_download_that_broke_off_goes_on(store, tmp_path, monkeypatch):
    source = source_of(store, tmp_path, "big.bin", BIG)
    monkeypatch.setattr(object_store, "_CHUNK", 1 << 20)
    whole, seen = KeptDownload.write, []

    def cut(self, chunks, shown):
        def some():
            for number, chunk in enumerate(chunks):
                if number == 3:
                    raise OSError("the network went away")
                yield chunk

        whole(self, some(), shown)

    monkeypatch.setattr(KeptDownload, "write", cut)
    with pytest.raises(IngestError, match="the network went away"):
        source.poll()

    def count(self, chunks, shown):
        seen.append(self.size)
        whole(self, chunks, shown)

    monkeypatch.setattr(KeptDownload, "write", count)
    assert source.poll() == [BIG]
    assert seen == [3 << 20]


def test_what_was_fetched_and_not_committed_is_kept(store, tmp_path, monkeypatch):
    source = source_of(store, tmp_path, "kept.csv", b"kept")
    assert source.poll(crash="before") == []
    monkeypatch.setattr(KeptDownload, "write", None)
    assert source.poll(crash="after") == [b"kept"]
    assert source.poll() == []


def test_an_object_that_is_replaced_while_it_is_read_is_read_again(store, tmp_path, monkeypatch):
    source = source_of(store, tmp_path, "moving.csv", b"version one")
    whole = KeptDownload.write

    def replaced(self, chunks, shown):
        whole(self, chunks, shown)
        store.put("moving.csv", b"version two")

    with monkeypatch.context() as patch:
        patch.setattr(KeptDownload, "write", replaced)
        with pytest.raises(IngestError, match="replaced while it was read"):
            source.poll()
    assert source.poll() == [b"version two"]


@pytest.mark.parametrize("scheme", ["gs", "az"])
def test_other_stores_go_the_same_way(scheme, tmp_path, monkeypatch):
    with gs_endpoint() if scheme == "gs" else az_endpoint(tmp_path / "az") as put:
        put("a/once.csv", b"one")
        metadata = EventTimeSourceFromMetadata()
        url = f"{scheme}://{BUCKET}/a/once.csv"
        source = Poller(tmp_path, FetchStepUrl(url=url, event_time=metadata))
        before = datetime.now(UTC) - timedelta(minutes=1)
        assert source.poll() == [b"one"]
        assert source.state.kind == "odf/etag"
        assert before < source.found[0].event_time.to_datetime() < datetime.now(UTC)
        assert source.poll() == []
        put("a/once.csv", b"another one")
        assert source.poll() == [b"another one"]

        # One that breaks off goes on.
        put("big.bin", BIG)
        big = Poller(tmp_path / "big", FetchStepUrl(url=f"{scheme}://{BUCKET}/big.bin"))
        whole, seen = KeptDownload.write, []

        def cut(self, chunks, shown):
            whole(self, [next(chunks)], shown)
            raise OSError("the network went away")

        def count(self, chunks, shown):
            seen.append(self.size)
            whole(self, chunks, shown)

        monkeypatch.setattr(object_store, "_CHUNK", 1 << 20)
        monkeypatch.setattr(KeptDownload, "write", cut)
        with pytest.raises(IngestError, match="the network went away"):
            big.poll()
        monkeypatch.setattr(KeptDownload, "write", count)
        assert big.poll() == [BIG]
        assert seen == [1 << 20]

        for missing in (f"{scheme}://{BUCKET}/nothing", f"{scheme}://no-such-place/x"):
            with pytest.raises(IngestError, match="no such object") as caught:
                Poller(tmp_path, FetchStepUrl(url=missing), attempts=1).poll()
            assert caught.value.code == "E0405"


def test_a_store_whose_library_is_not_installed_is_explained(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "adlfs", None)
    # Another test may have used it already.
    monkeypatch.delitem(loaded, "az", raising=False)
    with pytest.raises(EnvironmentProblem, match="az: addresses need") as caught:
        Poller(tmp_path, FetchStepUrl(url="az://box/x")).poll()
    assert "odfbuild[azure]" in str(caught.value.help)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (f"s3://{BUCKET}/nothing", "no such object"),
        ("s3://no-such-bucket/x", "no such object|NoSuchBucket|does not exist"),
        (f"s3://{BUCKET}/a", "folder|no such object"),
    ],
)
def test_what_is_not_there_is_explained(store, tmp_path, url, said):
    store.put("a/b", b"x")
    with pytest.raises(IngestError, match=said) as caught:
        Poller(tmp_path, FetchStepUrl(url=url)).poll()
    assert url in caught.value.message


def test_an_endpoint_that_is_not_there_is_explained(store, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(IngestError, match="cannot fetch s3://lake/x"):
        Poller(tmp_path, FetchStepUrl(url="s3://lake/x"), attempts=1).poll()
