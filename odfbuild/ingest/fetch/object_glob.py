"""Objects of a store that match a pattern, `s3://bucket/raw/*.csv`, one transaction an object.

As `files_glob`: each is ingested once, in the order of the source. The store is asked for a list of
what lies below the part of the pattern that has no wildcards, and the state is what the last object
is called below it, such as `day=2026-01-31/part-0.csv`: lakes repeat base names in every folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from odfbuild.errors import IngestError
from odfbuild.ingest.fetch.context import FetchContext
from odfbuild.ingest.fetch.download_cache import KeptDownload, ResponseValidators
from odfbuild.ingest.fetch.event_time import event_time_of_file
from odfbuild.ingest.fetch.files_glob import last_name, new_files
from odfbuild.ingest.fetch.object_store import (
    download,
    look_at,
    open_store,
    talking_about,
    where_it_is,
)
from odfbuild.ingest.fetch.result import Fetched, etag
from odfbuild.odf.model import (
    FetchStepFilesGlob,
    SourceState,
)


def fetch_objects(
    step: FetchStepFilesGlob, state: SourceState | None, context: FetchContext
) -> Iterator[Fetched]:
    """Yield the new objects in order; raises `IngestError` when no object was ever there."""
    scheme, _, pattern = step.path.partition("://")
    with talking_about(step.path):
        store = open_store(scheme, context)
        found = store.glob(pattern, detail=True)
    matching = [
        f"{scheme}://{path}"
        for path, facts in found.items()
        if facts["type"] == "file" and not path.endswith("/")
    ]
    if not matching and last_name(state) is None:
        raise IngestError(
            f"no object matches '{step.path}'",
            code="E0401",
            help="put the objects there, or correct `fetch.path` in the definition",
        )
    start = len(_fixed(step.path))
    for url in new_files(step, matching, state, start):
        kept = KeptDownload(context, url)
        with talking_about(url):
            path = url.partition("://")[2]
            about, moment = look_at(store, path)
        name = url[start:]
        time = event_time_of_file(step.event_time, name, modified=moment, now=context.now)
        there = Fetched(None, etag(name), time, url)
        bring = partial(_brought, there, store, path, about, kept)
        yield where_it_is(there, url, about, bring, context)
        # Only reached once what was yielded is committed.
        kept.forget()


def _brought(
    there: Fetched, store: Any, path: str, about: ResponseValidators, kept: KeptDownload
) -> Fetched:
    with talking_about(there.display_name):
        download(store, path, about, kept, there.display_name)
    return replace(there, file=kept.data)


def _fixed(pattern: str) -> str:
    """The folder of a pattern that has no wildcards, with its slash."""
    return re.split(r"[*?\[]", pattern, maxsplit=1)[0].rpartition("/")[0] + "/"
