"""An object of a store, through fsspec: `s3://bucket/key`.

Credentials, region and endpoint come from where the store's own tools take them: the variables
`AWS_…`, profiles. The ETag is the state. Needs the extra `s3`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from odfbuild.errors import IngestError
from odfbuild.ingest.extras import missing_extra
from odfbuild.ingest.fetch.context import FetchContext
from odfbuild.ingest.fetch.event_time import event_time_of
from odfbuild.ingest.fetch.kept import About, KeptDownload
from odfbuild.ingest.fetch.result import Fetched, etag
from odfbuild.ingest.secrets import scrub
from odfbuild.odf.model import FetchStepUrl, SourceState
from odfbuild.odf.timestamp import Timestamp

_CHUNK = 4 << 20


def fetch_object(
    step: FetchStepUrl, url: str, state: SourceState | None, context: FetchContext
) -> Iterator[Fetched]:
    """Yield the object if its ETag is not that of `state`. Raises `IngestError`."""
    parts = urlsplit(url)
    path = f"{parts.netloc}{parts.path}"
    kept = KeptDownload(context, url)
    try:
        store = _store(context)
        about, moment = _about(store, path)
        if about.etag is not None and etag(about.etag) == state:
            kept.forget()
            return
        _download(store, path, about, kept, step.url)
    except (OSError, EOFError) as error:
        raise _failed(step.url, error) from None
    except Exception as error:
        # s3fs lets some errors of its client through; all of them come from one module.
        if not type(error).__module__.startswith(("botocore", "aiobotocore", "aiohttp")):
            raise
        raise _failed(step.url, error) from None
    # Like a web server that gives an ETag.
    event_time = event_time_of(
        step.event_time, modified=moment, default=None, now=context.now, name=step.url
    )
    new = None if about.etag is None else etag(about.etag)
    yield Fetched(kept.data, new, event_time, step.url)
    # Only reached once what was yielded is committed.
    kept.forget()


def _store(context: FetchContext) -> Any:
    try:
        import s3fs
    except ImportError:
        raise missing_extra("s3", "s3: addresses") from None
    settings = context.settings
    return s3fs.S3FileSystem(
        skip_instance_cache=True,
        use_listings_cache=False,
        config_kwargs={
            "connect_timeout": settings.connect_seconds,
            "read_timeout": settings.idle_seconds,
            "retries": {"max_attempts": settings.attempts - 1, "mode": "standard"},
        },
    )


def _about(store: Any, path: str) -> tuple[About, Timestamp]:
    info = store.info(path)
    if info.get("type") == "directory":
        raise IsADirectoryError("it is a folder of objects, not one object")
    about = About(etag=info.get("ETag"), total=info.get("size"), resumable=True)
    return about, Timestamp.from_datetime(info["LastModified"])


def _download(store: Any, path: str, about: About, kept: KeptDownload, shown: str) -> None:
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
    kept.finish()


def _failed(shown: str, error: Exception) -> IngestError:
    missing = isinstance(error, FileNotFoundError)
    reason = "there is no such object" if missing else str(error) or type(error).__name__
    return IngestError(
        scrub(f"cannot fetch {shown}: {reason}"),
        code="E0405" if isinstance(error, FileNotFoundError | PermissionError) else "E0406",
        help="check the address, and AWS_PROFILE or AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and "
        "AWS_ENDPOINT_URL in the environment",
    )
