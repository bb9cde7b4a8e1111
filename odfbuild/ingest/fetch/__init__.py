"""Fetch steps: from a definition to local files with new data, one module for each kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.ingest.fetch.result import Fetched
from odfbuild.odf.model import FetchStep, FetchStepFilesGlob, FetchStepUrl, SourceState

if TYPE_CHECKING:
    from odfbuild.odf.timestamp import Timestamp

__all__ = ["Fetched", "fetch"]


def fetch(
    step: FetchStep, state: SourceState | None, root: Path, scratch: Path, now: Timestamp
) -> Iterator[Fetched]:
    """Yield what is new since `state`, to be committed one after the other; nothing: unchanged.

    `root` is the project's folder, to which relative paths refer; downloads go to `scratch`; `now`
    is the system time. Raises `IngestError`.
    """
    if isinstance(step, FetchStepFilesGlob):
        from odfbuild.ingest.fetch.files_glob import fetch_files

        yield from fetch_files(step, state, root, now)
    elif isinstance(step, FetchStepUrl):
        from odfbuild.ingest.fetch.url import fetch_url

        yield from fetch_url(step, state, root, scratch, now)
    else:
        from odfbuild.ingest.supported import unsupported

        raise unsupported("fetch", step.KIND)
