"""Data at a URL: a file, a server of web, FTP or SFTP, an object store, a table, a topic.

A module for each.

What the source says about its data (ETag, else time of modification) becomes the state with which
the next request asks for changes only; of a file it is a hash of its bytes.
Source: specification, `FetchStep::Url`; reference behaviour, fetch steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from odfbuild.errors import IngestError
from odfbuild.ingest.content import content_of
from odfbuild.ingest.fetch.api_address import api_wanted, is_api
from odfbuild.ingest.fetch.context import FetchContext
from odfbuild.ingest.fetch.database.address import SCHEMES, is_database
from odfbuild.ingest.fetch.event_time import event_time_of
from odfbuild.ingest.fetch.files_glob import display_name, modified
from odfbuild.ingest.fetch.kafka.address import is_kafka
from odfbuild.ingest.fetch.local_paths import local_path
from odfbuild.ingest.fetch.result import Fetched, etag, last_modified
from odfbuild.ingest.fetch.sftp_address import sftp_place
from odfbuild.odf.model import (
    EventTimeSource,
    EventTimeSourceFromPath,
    FetchStepUrl,
    SourceState,
)
from odfbuild.store.remote import EXTRAS

_TABLE = "kartothek+"
_PLACES = ("file", *EXTRAS)
_SCHEMES = (
    "file",
    "http",
    "https",
    "ftp",
    "ftps",
    "sftp",
    *EXTRAS,
    *(f"{_TABLE}{each}" for each in _PLACES),
    *SCHEMES,
    "kafka",
)


def fetch_url(
    step: FetchStepUrl, state: SourceState | None, context: FetchContext
) -> Iterator[Fetched]:
    """Yield the data if it changed since `state`. Raises `IngestError`."""
    from odfbuild.ingest.secrets import remember_password, resolve_address

    refuse_path_time(step.event_time)
    url = resolve_address(step.url)
    remember_password(url)
    if is_kafka(url):  # It may name several brokers.
        from odfbuild.ingest.fetch.kafka.fetch import fetch_kafka

        yield from fetch_kafka(step, url, state, context)
        return
    scheme = _scheme(url, step.url)
    if scheme == "file":
        yield from _fetch_file(step, url, state, context)
    elif scheme in ("http", "https") and is_api(step.url):
        from odfbuild.ingest.fetch.api import fetch_api

        yield from fetch_api(step, url, state, context)
    elif scheme in ("http", "https"):
        from odfbuild.ingest.fetch.http import fetch_http

        yield from fetch_http(step, url, state, context)
    elif scheme in ("ftp", "ftps"):
        from odfbuild.ingest.fetch.ftp import fetch_ftp

        yield from fetch_ftp(step, url, state, context)
    elif scheme == "sftp":
        from odfbuild.ingest.fetch.sftp import fetch_sftp

        yield from fetch_sftp(step, url, state, context)
    elif scheme.startswith(_TABLE):
        from odfbuild.ingest.fetch.kartothek import fetch_kartothek

        yield from fetch_kartothek(step, url, state, context)
    elif is_database(url):
        from odfbuild.ingest.fetch.database.fetch import fetch_database

        yield from fetch_database(step, url, state, context)
    else:
        from odfbuild.ingest.fetch.object_store import fetch_object

        yield from fetch_object(step, url, state, context)


def refuse_path_time(source: EventTimeSource | None) -> None:
    """Raise `IngestError` for one that addresses cannot have."""
    if isinstance(source, EventTimeSourceFromPath):
        raise IngestError(
            "event time from the path is for `kind: FilesGlob`; a URL has no file names",
            code="E0403",
            help="use `eventTime: {kind: FromMetadata}` or `{kind: FromSystemTime}`",
        )


def check_url(url: str) -> None:
    """Raise `IngestError` when `url` is none, or of a scheme that is not known.

    One with a template in it can only be told at fetch time.
    """
    if is_kafka(url):
        from odfbuild.ingest.fetch.kafka import address as topic

        topic.wanted(url, url)
        return
    if is_database(url):  # A password is a template, and all else can be told.
        from odfbuild.ingest.fetch.database import address

        address.wanted(url, url)
        return
    if is_api(url):
        api_wanted(url, url)
        return
    if "${{" in url:
        return
    scheme = _scheme(url, url)
    if scheme == "file":
        local_path(url, Path())
    elif scheme == "sftp":
        sftp_place(url, url)
    elif scheme.startswith(_TABLE):
        from odfbuild.ingest.fetch.kartothek_address import wanted

        wanted(url, url)


def _scheme(url: str, shown: str) -> str:
    from odfbuild.ingest.secrets import library_words

    try:
        parts = urlsplit(url)
        _ = parts.port  # raises when it is none
    except ValueError as error:
        raise IngestError(
            f"'{shown}' is not a URL: {library_words(error, shown)}",
            code="E0407",
            help="correct `fetch.url` in the definition",
        ) from None
    scheme = parts.scheme.lower()
    if scheme not in _SCHEMES:
        # Of an address that was filled in, it may be the beginning of a secret.
        named = f"scheme '{scheme}:'" if shown.lower().startswith(scheme) else "its scheme"
        raise IngestError(
            f"URLs of {named} are not supported" if scheme else "the URL has no scheme",
            code="E0407",
            notes=(f"the URL is {shown}",),
            help=f"use one of {', '.join(f'{each}:' for each in _SCHEMES)}",
        )
    return scheme


def _fetch_file(
    step: FetchStepUrl, url: str, state: SourceState | None, context: FetchContext
) -> Iterator[Fetched]:
    path = local_path(url, context.root, step.url)
    name = display_name(path, str(context.root)) if url == step.url else step.url
    if not Path(path).is_file():
        raise IngestError(
            f"there is no file {name}",
            code="E0404",
            help="put the file there, or correct `fetch.url` in the definition",
        )
    moment = modified(path)
    new = etag(content_of(path))
    # Earlier releases and other tools record the time of modification.
    if state not in (new, last_modified(moment)):
        event_time = event_time_of(
            step.event_time, modified=moment, default=moment, now=context.now, name=name
        )
        yield Fetched(Path(path), new, event_time, name)
