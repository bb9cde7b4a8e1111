"""Objects of a store that match a pattern: each once, in order, against a real S3 endpoint."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odfbuild.errors import IngestError
from odfbuild.ingest.fetch.download_cache import KeptDownload
from odfbuild.ingest.probe import probe
from odfbuild.ingest.watch import NOTHING_TO_WATCH, look
from odfbuild.odf.model import (
    EventTimeSourceFromMetadata,
    EventTimeSourceFromPath,
    FetchStepFilesGlob,
    MergeStrategyAppend,
    ReadStepCsv,
    SetPollingSource,
    SourceOrdering,
)
from tests.ingest.contexts import NOW, Poller
from tests.servers.objects import BUCKET, Objects, s3_endpoint


@pytest.fixture(scope="module")
def store() -> Iterator[Objects]:
    with s3_endpoint() as running:
        yield running


def pattern(folder: Path, tail: str = "*.csv") -> str:
    """A pattern in a prefix of the test's own."""
    return f"s3://{BUCKET}/{folder.name}/{tail}"


def put(store: Objects, folder: Path, **objects: bytes) -> None:
    for name, body in objects.items():
        store.put(f"{folder.name}/{name.replace('__', '/')}.csv", body)


def test_each_object_is_ingested_once_in_order_of_names(store: Objects, tmp_path: Path) -> None:
    source = Poller(tmp_path, FetchStepFilesGlob(path=pattern(tmp_path)))
    put(store, tmp_path, b=b"two", a=b"one", deeper__c=b"not here")
    store.put(f"{tmp_path.name}/notes.txt", b"no")
    assert source.poll() == [b"one", b"two"]
    assert source.state is not None
    assert (source.state.kind, source.state.value) == ("odf/etag", "b.csv")
    assert [each.display_name for each in source.found][1] == pattern(tmp_path, "b.csv")
    assert source.poll() == []
    put(store, tmp_path, c=b"three", aa=b"late, and before what was read")
    assert source.poll() == [b"three"]


def test_a_pattern_may_go_through_folders(store: Objects, tmp_path: Path) -> None:
    put(store, tmp_path, y2025__d1=b"1", y2026__d2=b"2", other__d0=b"0", y2026__deep__d3=b"3")
    assert Poller(tmp_path, FetchStepFilesGlob(path=pattern(tmp_path, "y*/*.csv"))).poll() == [
        b"1",
        b"2",
    ]
    everything = Poller(tmp_path, FetchStepFilesGlob(path=pattern(tmp_path, "**/d[1-3].csv")))
    assert everything.poll() == [b"1", b"2", b"3"]


def test_event_times_come_from_names_or_from_the_store(store: Objects, tmp_path: Path) -> None:
    put(store, tmp_path, **{"x-2026-02-01": b"b", "x-2026-01-01": b"a"})
    by_name = EventTimeSourceFromPath(pattern=r"x-(\d+-\d+-\d+)", timestamp_format="%Y-%m-%d")
    step = FetchStepFilesGlob(
        path=pattern(tmp_path), event_time=by_name, order=SourceOrdering.ByEventTime
    )
    source = Poller(tmp_path, step)
    assert source.poll() == [b"a", b"b"]
    assert [str(each.event_time) for each in source.found] == [
        "2026-01-01T00:00:00Z",
        "2026-02-01T00:00:00Z",
    ]
    told = EventTimeSourceFromMetadata()
    source = Poller(tmp_path, FetchStepFilesGlob(path=pattern(tmp_path), event_time=told))
    source.poll()
    key = f"{tmp_path.name}/x-2026-01-01.csv"
    stored = store.client.head_object(Bucket=BUCKET, Key=key)["LastModified"]
    assert source.found[0].event_time is not None
    assert source.found[0].event_time.to_datetime() == stored
    plain = Poller(tmp_path, FetchStepFilesGlob(path=pattern(tmp_path)))
    plain.poll()
    assert plain.found[0].event_time == NOW


def test_an_object_that_was_committed_is_not_fetched_again_after_a_failure(
    store: Objects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, tmp_path, a=b"one", b=b"two", c=b"three")
    source = Poller(tmp_path, FetchStepFilesGlob(path=pattern(tmp_path)))
    assert source.poll(crash="after") == [b"one"]
    asked: list[str] = []
    whole = KeptDownload.begin

    def begin(self: KeptDownload, about: Any) -> None:
        asked.append(about.etag)
        whole(self, about)

    monkeypatch.setattr(KeptDownload, "begin", begin)
    assert source.poll(crash="before") == []
    assert source.poll() == [b"two", b"three"]
    assert len(asked) == 2  # what was read and not committed was kept


def test_a_pattern_that_never_matched_and_a_missing_bucket_are_errors(
    store: Objects, tmp_path: Path
) -> None:
    with pytest.raises(IngestError, match="no object matches 's3://lake/") as error:
        Poller(tmp_path, FetchStepFilesGlob(path=pattern(tmp_path))).poll()
    assert error.value.code == "E0401"
    with pytest.raises(IngestError, match="s3://no-such/"):
        Poller(tmp_path, FetchStepFilesGlob(path="s3://no-such/*.csv")).poll()


def test_folders_may_repeat_base_names(store: Objects, tmp_path: Path) -> None:
    put(store, tmp_path, **{"day=1__part": b"1", "day=2__part": b"2"})
    source = Poller(tmp_path, FetchStepFilesGlob(path=pattern(tmp_path, "*/*.csv")))
    assert source.poll() == [b"1", b"2"]
    assert source.state is not None
    assert source.state.value == "day=2/part.csv"
    put(store, tmp_path, **{"day=3__part": b"3"})
    assert source.poll() == [b"3"]


def test_a_plan_does_not_ask_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    source = SetPollingSource(
        fetch=FetchStepFilesGlob(path="s3://lake/raw/*.csv"),
        read=ReadStepCsv(),
        merge=MergeStrategyAppend(),
    )
    facts = probe(source, None, tmp_path)
    assert facts.status == "unknown"
    assert facts.message == "the object store is checked for new objects at apply"
    assert look(source, str(tmp_path)) == NOTHING_TO_WATCH
