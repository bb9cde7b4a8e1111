"""An object of a store, through fsspec: `s3://bucket/key`, `gs://…`, `az://…`.

The ETag is the state. `odfbuild.store.remote` says where credentials come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from odfbuild.errors import Code, IngestError
from odfbuild.ingest.fetch.context import FetchContext
from odfbuild.ingest.fetch.download_cache import KeptDownload, ResponseValidators, check_size
from odfbuild.ingest.fetch.event_time import event_time_of
from odfbuild.ingest.fetch.result import Elsewhere, Fetched, etag
from odfbuild.ingest.secrets import library_words, scrub
from odfbuild.odf.model import FetchStepUrl, SourceState
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.remote import CREDENTIALS, connect, is_failure, why
from odfbuild.store.remote_object import RemoteObject

_CHUNK = 4 << 20


def fetch_object(
    step: FetchStepUrl, url: str, state: SourceState | None, context: FetchContext
) -> Iterator[Fetched]:
    """Yield the object if its ETag is not that of `state`. Raises `IngestError`."""
    parts = urlsplit(url)
    path = f"{parts.netloc}{parts.path}"
    kept = KeptDownload(context, url)
    with talking_about(step.url):
        store = open_store(parts.scheme, context)
        about, moment = look_at(store, path)
        if about.etag is not None and etag(about.etag) == state:
            kept.forget()
            return
    # Like a web server that gives an ETag.
    event_time = event_time_of(
        step.event_time, modified=moment, default=None, now=context.now, name=step.url
    )
    new = None if about.etag is None else etag(about.etag)

    def bring() -> Fetched:
        with talking_about(step.url):
            download(store, path, about, kept, step.url)
        return kept.fetched(new, event_time, step.url)

    there = Fetched(None, new, event_time, step.url)
    yield where_it_is(there, url, about, bring, context)
    # Only reached once what was yielded is committed.
    kept.forget()


def where_it_is(
    there: Fetched,
    address: str,
    about: ResponseValidators,
    bring: Callable[[], Fetched],
    context: FetchContext,
) -> Fetched:
    """What a fetch step gives for an object: `there`, if it stays in its store, or as a file."""
    if about.etag is None or about.total is None:
        return bring()
    source = RemoteObject(address, about.total, about.etag)
    if not context.stays(source):
        return bring()
    check_size(about.total, context.settings.max_bytes, there.display_name)
    return replace(there, elsewhere=Elsewhere(source, bring))


def open_store(scheme: str, context: FetchContext) -> Any:
    """A client with the limits of the project."""
    settings = context.settings
    return connect(
        scheme,
        connect_seconds=settings.connect_seconds,
        idle_seconds=settings.idle_seconds,
        attempts=settings.attempts,
    )


@contextmanager
def talking_about(shown: str) -> Iterator[None]:
    """Failures of a store, or of the way to it, as `IngestError` on `shown`."""
    try:
        yield
    except Exception as error:
        if not is_failure(error):
            raise
        raise _failed(shown, error) from None


def look_at(store: Any, path: str) -> tuple[ResponseValidators, Timestamp | None]:
    """What the store says of an object: validators and size, and when it was changed."""
    info = {key.lower().replace("_", ""): value for key, value in store.info(path).items()}
    if info.get("type") == "directory":
        raise IsADirectoryError("it is a folder of objects, not one object")
    about = ResponseValidators(
        etag=info.get("etag"), total=info.get("size"), resumable="etag" in info
    )
    moment = info.get("lastmodified") or info.get("updated") or info.get("mtime")
    if isinstance(moment, str):
        return about, Timestamp.parse(moment)
    return about, None if moment is None else Timestamp.from_datetime(moment)


def download(
    store: Any, path: str, about: ResponseValidators, kept: KeptDownload, shown: str
) -> None:
    """Bring the object that `about` describes to `kept`, going on where an earlier run stopped."""
    if kept.about == about and kept.is_complete:
        return
    if kept.about != about or not kept.size:
        kept.begin(about)
    with store.open(path, "rb", cache_type="readahead", block_size=_CHUNK) as file:
        file.seek(kept.size)
        kept.write(iter(lambda: file.read(_CHUNK), b""), shown)
    got = kept.part.stat().st_size
    if got != about.total:
        raise EOFError(f"{got:,} bytes arrived instead of {about.total:,}")
    if look_at(store, path)[0] != about:
        kept.forget()  # it may be the beginning of one version and the end of another
        raise EOFError("it was replaced while it was read")
    kept.finish()


def _words(error: Exception, shown: str) -> str:
    # What the store or the network says is an `OSError`; the rest is about what was asked.
    return why(error) if isinstance(error, OSError | EOFError) else library_words(error, shown)


def _failed(shown: str, error: Exception) -> IngestError:
    return IngestError(
        scrub(f"cannot fetch {shown}: {_words(error, shown)}"),
        code="E0405"
        if isinstance(error, FileNotFoundError | PermissionError)
        else Code.SERVER_UNREACHABLE,
        help=CREDENTIALS,
    )
