"""Fetch steps: from a definition to local files with new data, one module for each kind."""

from __future__ import annotations

from collections.abc import Iterator

from odfbuild.errors import InDefinition, IngestError, OdfbuildError
from odfbuild.ingest.fetch.context import FetchContext
from odfbuild.ingest.fetch.result import Fetched
from odfbuild.ingest.fetch.sftp_address import is_sftp
from odfbuild.odf.model import (
    FetchStep,
    FetchStepContainer,
    FetchStepEthereumLogs,
    FetchStepFilesGlob,
    FetchStepMqtt,
    FetchStepUrl,
    SourceState,
)
from odfbuild.store.remote import scheme_of

__all__ = ["FetchContext", "Fetched", "fetch"]


def fetch(step: FetchStep, state: SourceState | None, context: FetchContext) -> Iterator[Fetched]:
    """Yield what is new since `state`, to be committed one after the other; nothing: unchanged.

    Whoever takes the next one says by that that the last one is committed: only then is what was
    kept for another attempt let go. Raises `IngestError`; where it is about the definition, its
    location is a path in the source (`fetch`).
    """
    try:
        for fetched in _steps(step, state, context):
            _refuse_secret_state(fetched)
            yield fetched
    except OdfbuildError as error:
        raise error.or_at(InDefinition.of("fetch")) from None
    except OSError as error:
        raise _failed_locally(error) from None


def _steps(step: FetchStep, state: SourceState | None, context: FetchContext) -> Iterator[Fetched]:
    # Each kind may need a library that the others do not.
    if isinstance(step, FetchStepFilesGlob) and is_sftp(step.path):
        from odfbuild.ingest.fetch.sftp import fetch_sftp_files

        return fetch_sftp_files(step, state, context)
    if isinstance(step, FetchStepFilesGlob) and scheme_of(step.path) is not None:
        from odfbuild.ingest.fetch.object_glob import fetch_objects

        return fetch_objects(step, state, context)
    if isinstance(step, FetchStepFilesGlob):
        from odfbuild.ingest.fetch.files_glob import fetch_files

        return fetch_files(step, state, context)
    if isinstance(step, FetchStepUrl):
        from odfbuild.ingest.fetch.url import fetch_url

        return fetch_url(step, state, context)
    if isinstance(step, FetchStepContainer):
        from odfbuild.ingest.fetch.container import fetch_container

        return fetch_container(step, state, context)
    if isinstance(step, FetchStepMqtt):
        from odfbuild.ingest.fetch.mqtt import fetch_messages

        return fetch_messages(step, state, context)
    if isinstance(step, FetchStepEthereumLogs):
        from odfbuild.ingest.fetch.ethereum import fetch_logs

        return fetch_logs(step, state, context)
    raise AssertionError(f"a fetch step that the specification does not have: {step}")


def _refuse_secret_state(fetched: Fetched) -> None:
    from odfbuild.ingest.secrets import holds_secret

    if fetched.state is not None and holds_secret(fetched.state.value):
        raise IngestError(
            "what the source gave as its state holds the value of an environment variable",
            code="E0413",
            notes=("the state is part of the chain, which everybody may read",),
            help="have the source give another ETag, or do not use that variable in `fetch`",
        )


def _failed_locally(error: OSError) -> IngestError:
    from odfbuild.ingest.secrets import scrub

    place = f" {scrub(str(error.filename))}" if error.filename else ""
    return IngestError(
        f"cannot read or write{place}: {error.strerror or error}",
        code="E0400",
        location=InDefinition.of("fetch"),
        help="correct the permissions, or make room, then run `odfbuild apply` again",
    )
