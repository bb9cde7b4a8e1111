"""Rules about sources, and about the definition as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import parse_qsl, urlsplit

from odfbuild.errors import IngestError
from odfbuild.ingest.fetch.api_address import is_api
from odfbuild.ingest.fetch.database.address import is_database, wanted
from odfbuild.ingest.fetch.kafka.address import is_kafka
from odfbuild.ingest.fetch.kafka.address import wanted as topic
from odfbuild.ingest.fetch.sftp_address import is_sftp
from odfbuild.odf.model import (
    DatasetSnapshot,
    FetchStepContainer,
    FetchStepFilesGlob,
    FetchStepMqtt,
    FetchStepUrl,
    MergeStrategyLedger,
    SetInfo,
    SetPollingSource,
)
from odfbuild.project.lint.finding import Flaw, Path

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SECRET_NAME = re.compile(
    r"authorization|cookie|(?:.*[-_])?(?:token|password|passwd|secret|api[-_]?key|access[-_]?key)",
    re.IGNORECASE,
)
_DIGEST = re.compile(r"@sha256:[0-9a-f]{64}$")
_FROM_ENVIRONMENT = "${{"
_TLS = {"http": "https", "ftp": "ftps"}
_POSTGRESQL = (
    re.compile(r"(?:^|&)sslmode=(?:require|verify-ca|verify-full)(?:&|$)"),
    "sslmode=verify-full",
)
_MYSQL = (
    re.compile(r"(?:^|&)ssl-mode=(?:required|verify_ca|verify_identity)(?:&|$)", re.I),
    "ssl-mode=VERIFY_IDENTITY",
)
_TLS_OF_DATABASES = {
    "postgres": _POSTGRESQL,
    "postgresql": _POSTGRESQL,
    "mysql": _MYSQL,
    "mariadb": _MYSQL,
}
"""By scheme, parameters that mean TLS, and what to write."""


def flaws_of_definition(snapshot: DatasetSnapshot) -> Iterator[Flaw]:
    """Findings in a definition, without its queries."""
    for index, event in enumerate(snapshot.metadata):
        path: Path = ("metadata", index)
        if isinstance(event, SetPollingSource):
            yield from _fetch(event, (*path, "fetch"))
            yield from _cursor(event, (*path, "fetch", "url"))
    described = any(isinstance(e, SetInfo) and e.description for e in snapshot.metadata)
    if not described:
        yield Flaw(
            "no-description",
            f"'{snapshot.name}' has no description",
            "add `- kind: SetInfo` with a `description`",
            ("name",),
        )


def _fetch(event: SetPollingSource, path: Path) -> Iterator[Flaw]:
    match event.fetch:
        case FetchStepUrl(url=url, headers=headers):
            yield from (_topic if is_kafka(url) else _address)(url, (*path, "url"))
            for number, header in enumerate(headers or ()):
                if _SECRET_NAME.fullmatch(header.name) and _FROM_ENVIRONMENT not in header.value:
                    yield _secret(f"the header {header.name}", (*path, "headers", number, "value"))
        case FetchStepFilesGlob(path=pattern) if is_sftp(pattern):
            yield from _address(pattern, (*path, "path"))
        case FetchStepContainer(image=image, env=env):
            if not _DIGEST.search(image) and _FROM_ENVIRONMENT not in image:
                yield Flaw(
                    "unpinned-image",
                    f"the image '{image}' can change without notice",
                    "pin it by its digest: NAME@sha256:…",
                    (*path, "image"),
                    length=len(image),
                )
            for number, each in enumerate(env or ()):
                value = each.value or _FROM_ENVIRONMENT
                if _SECRET_NAME.fullmatch(each.name) and _FROM_ENVIRONMENT not in value:
                    yield _secret(f"the variable {each.name}", (*path, "env", number, "value"))
        case FetchStepMqtt(password=password):
            if password and _FROM_ENVIRONMENT not in password:
                yield _secret("the password", (*path, "password"))


def _cursor(event: SetPollingSource, path: Path) -> Iterator[Flaw]:
    """What a cursor cannot see, by what the merge makes of rows that come."""
    if not isinstance(event.fetch, FetchStepUrl) or not is_database(event.fetch.url):
        return
    try:
        asked = wanted(event.fetch.url, event.fetch.url)
    except IngestError:
        return  # `validate` tells it
    if asked.cursor is None:
        return
    missed = ["deleted rows", f"updates that leave '{asked.cursor}' as it is"]
    if isinstance(event.merge, MergeStrategyLedger):
        missed = ["deleted rows", "updates of rows that were read"]
    if asked.overlap is not None and asked.overlap.is_none:
        missed.append("rows that are committed after others with larger values")
    yield Flaw(
        "cursor-misses",
        f"with the cursor '{asked.cursor}' this source does not see {_listed(missed)}",
        "if that happens in this table, leave `cursor` out and use `merge: {kind: Snapshot}`, "
        "which compares all rows; otherwise set `lint: {cursor-misses: off}` in odfbuild.yaml",
        path,
    )


def _listed(things: list[str]) -> str:
    *first, last = things
    return f"{', '.join(first)} and {last}"


def _topic(url: str, path: Path) -> Iterator[Flaw]:
    try:
        asked = topic(url, url)
    except IngestError:
        return  # `validate` tells it
    if asked.password and _FROM_ENVIRONMENT not in asked.password:
        yield _secret("a password in the address", path)
    hosts = [each.rpartition(":")[0] or each for each in asked.brokers.split(",")]
    if not asked.tls and any(h not in _LOOPBACK and _FROM_ENVIRONMENT not in h for h in hosts):
        yield Flaw(
            "open-transport",
            "what comes over kafka: can be read and changed in transit",
            "add `tls=on` to the parameters of the address",
            path,
            length=len(url),
        )


def _address(url: str, path: Path) -> Iterator[Flaw]:
    try:
        parts = urlsplit(url)
        host, password = parts.hostname, parts.password
    except ValueError:
        return
    if password and _FROM_ENVIRONMENT not in password:
        yield _secret("a password in the address", path)
    if is_api(url):
        for name, value in parse_qsl(parts.fragment.partition("?")[2]):
            if name == "client_secret" and _FROM_ENVIRONMENT not in value:
                yield _secret("`client_secret` in the address", path)
            if name == "token_url" and value.startswith("http:"):
                yield from _address(value, path)
    wanted = _TLS_OF_DATABASES.get(parts.scheme)
    if (
        wanted is not None
        and host not in (None, *_LOOPBACK)
        and _FROM_ENVIRONMENT not in host
        and not wanted[0].search(parts.query)
    ):
        yield Flaw(
            "open-transport",
            f"what comes over {parts.scheme}: can be read and changed in transit",
            f"add `{wanted[1]}` to the parameters of the address",
            path,
            length=len(url),
        )
    if parts.scheme in _TLS and host not in _LOOPBACK and _FROM_ENVIRONMENT not in (host or ""):
        yield Flaw(
            "open-transport",
            f"what comes over {parts.scheme}: can be read and changed in transit",
            f"use {_TLS[parts.scheme]}: if the server speaks it",
            path,
            length=len(url),
        )


def _secret(what: str, path: Path) -> Flaw:
    return Flaw(
        "written-secret",
        f"{what} is written into the definition, and with it into the chain, permanently",
        "write ${{ env.NAME }}, give the value in the environment, and change the secret",
        path,
    )
