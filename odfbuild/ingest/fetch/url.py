"""Data at a URL: `file:`, `http:` and `https:`.

What a server says about its data (ETag, else Last-Modified) becomes the state with which the next
request asks for changes only. Source: specification, `FetchStep::Url`; reference behaviour.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from odfbuild.errors import IngestError
from odfbuild.ingest.fetch.files_glob import display_name, modified
from odfbuild.ingest.fetch.result import Fetched, last_modified
from odfbuild.odf.model import (
    EventTimeSource,
    EventTimeSourceFromPath,
    EventTimeSourceFromSystemTime,
    FetchStepUrl,
    SourceState,
)

if TYPE_CHECKING:
    from odfbuild.odf.timestamp import Timestamp


def fetch_url(
    step: FetchStepUrl, state: SourceState | None, root: Path, scratch: Path, now: Timestamp
) -> Iterator[Fetched]:
    """Yield the data if it changed since `state`. Raises `IngestError`."""
    if isinstance(step.event_time, EventTimeSourceFromPath):
        raise IngestError(
            "event time from the path is for `kind: FilesGlob`; a URL has no file names",
            code="E0403",
            help="use `eventTime: {kind: FromMetadata}` or `{kind: FromSystemTime}`",
        )
    from odfbuild.ingest.fetch.template import resolve

    url = resolve(step.url, os.environ)
    scheme = urlsplit(url.text).scheme.lower()
    if scheme == "file":
        fetched = _fetch_file(step, url.text, state, root, now)
    elif scheme in ("http", "https"):
        from odfbuild.ingest.fetch.http import fetch_http

        fetched = fetch_http(step, url, state, scratch, now)
    else:
        raise IngestError(
            f"URLs of scheme '{scheme}:' are not supported by this version of odfbuild",
            code="E0407",
            notes=(f"the URL is {step.url}",),
            help="use http:, https: or file:",
        )
    if fetched is not None:
        yield fetched


def local_path(url: str, root: Path) -> str:
    """The file that a `file:` URL names; `file:data/x.csv` starts at the project's folder."""
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise IngestError(
            f"'{url}' names the host '{parts.netloc}', but files are read from this machine",
            code="E0407",
            help=f"write file:///{parts.netloc}{parts.path} for an absolute path, or "
            f"file:{parts.netloc}{parts.path} for one that starts at the project's folder",
        )
    path = unquote(parts.path)
    return path if path.startswith("/") else f"{root}/{path}"


def _fetch_file(
    step: FetchStepUrl, url: str, state: SourceState | None, root: Path, now: Timestamp
) -> Fetched | None:
    path = local_path(url, root)
    name = display_name(path, str(root)) if url == step.url else step.url
    if not Path(path).is_file():
        raise IngestError(
            f"there is no file {name}",
            code="E0404",
            help="put the file there, or correct `fetch.url` in the definition",
        )
    moment = modified(path)
    new = last_modified(moment)
    if new == state:
        return None
    return Fetched(Path(path), new, _event_time(step.event_time, moment, now), name)


def _event_time(
    source: EventTimeSource | None, metadata: Timestamp | None, now: Timestamp
) -> Timestamp:
    if isinstance(source, EventTimeSourceFromSystemTime) or metadata is None:
        return now
    return metadata
