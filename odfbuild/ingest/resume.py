"""Decide from definition and chain whether a source has to be checked.

Pure. Source: specification, `SourceCaching`; reference behaviour, ingest iteration.
"""

from __future__ import annotations

from odfbuild.ingest.fetch.api_address import api_place, is_api
from odfbuild.ingest.fetch.database.address import place_of
from odfbuild.ingest.fetch.kafka.address import is_kafka, topic_of
from odfbuild.ingest.fetch.result import ETAG, LAST_MODIFIED, SOURCE_NAME
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import (
    FetchStep,
    FetchStepFilesGlob,
    FetchStepMqtt,
    FetchStepUrl,
    SourceState,
)


def polling_state(projection: Projection | None) -> SourceState | None:
    """Where the polling source of a dataset stands; `None` if the last block does not tell."""
    state = projection.source_state if projection is not None else None
    if state is None or state.source_name != SOURCE_NAME:
        return None
    return state if state.kind in (ETAG, LAST_MODIFIED) else None


def has_moved(step: FetchStep, projection: Projection | None) -> bool:
    """Whether `step` reads from another place than what was committed was read from."""
    source = projection.polling_source if projection is not None else None
    if source is None:
        return True
    if isinstance(step, FetchStepUrl) and isinstance(source.fetch, FetchStepUrl):
        return _place(step.url) != _place(source.fetch.url)
    return type(step) is not type(source.fetch)


def _place(url: str) -> str:
    if is_kafka(url):
        return topic_of(url)
    return api_place(url) if is_api(url) else place_of(url)


def reason_to_rest(
    step: FetchStep, projection: Projection | None, fetch_uncacheable: bool
) -> str | None:
    """Why `step` is not asked again, as a sentence without full stop; `None`: it is asked.

    Data without a state cannot be compared with the source, and reading it again would repeat it
    ("uncacheable"); `fetch_uncacheable` asks for that. Messages of a broker come only once.
    """
    if projection is None or projection.last_offset is None:
        return None
    forever = isinstance(step, FetchStepUrl) and step.cache is not None
    asked = polling_state(projection) is not None or fetch_uncacheable
    if not forever and (asked or isinstance(step, FetchStepMqtt)):
        return None
    if has_moved(step, projection):
        return None
    if forever:
        return "it was read, and `cache: Forever` says that it never changes"
    if isinstance(step, FetchStepFilesGlob):
        return "the chain does not say up to which file it was read; --fetch-uncacheable reads all"
    return (
        "the source gives nothing to compare with, so it was read once; --fetch-uncacheable reads "
        "it again"
    )
