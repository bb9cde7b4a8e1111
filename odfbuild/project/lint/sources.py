"""Rules about sources, and about the definition as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from odfbuild.engine.contract import vocabulary_of
from odfbuild.odf.model import (
    AddPushSource,
    DatasetSnapshot,
    FetchStepContainer,
    FetchStepMqtt,
    FetchStepUrl,
    MergeStrategyAppend,
    SetInfo,
    SetPollingSource,
    SetVocab,
)
from odfbuild.odf.schema.ddl import read_ddl
from odfbuild.project.lint.rules import Flaw, Path
from odfbuild.wording import did_you_mean

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SECRET_NAME = re.compile(
    r"authorization|cookie|(?:.*[-_])?(?:token|password|passwd|secret|api[-_]?key|access[-_]?key)",
    re.IGNORECASE,
)
_DIGEST = re.compile(r"@sha256:[0-9a-f]{64}$")
_FROM_ENVIRONMENT = "${{"
_TLS = {"http": "https", "ftp": "ftps"}


def flaws_of_definition(snapshot: DatasetSnapshot) -> Iterator[Flaw]:
    """What is unwise in a definition, its queries apart."""
    vocabs = [event for event in snapshot.metadata if isinstance(event, SetVocab)]
    vocabulary = vocabulary_of(vocabs[-1] if vocabs else None)
    for index, event in enumerate(snapshot.metadata):
        path: Path = ("metadata", index)
        if isinstance(event, SetPollingSource):
            yield from _fetch(event, (*path, "fetch"))
        if isinstance(event, SetPollingSource | AddPushSource) and event.preprocess is None:
            yield from _columns(event, path, vocabulary.event_time)
    described = any(isinstance(e, SetInfo) and e.description for e in snapshot.metadata)
    if not described:
        yield Flaw(
            "no-description",
            f"nothing says what '{snapshot.name}' is",
            "add `- kind: SetInfo` with a `description`",
            ("name",),
        )


def _fetch(event: SetPollingSource, path: Path) -> Iterator[Flaw]:
    match event.fetch:
        case FetchStepUrl(url=url, headers=headers):
            yield from _address(url, (*path, "url"))
            for number, header in enumerate(headers or ()):
                if _SECRET_NAME.fullmatch(header.name) and _FROM_ENVIRONMENT not in header.value:
                    yield _secret(f"the header {header.name}", (*path, "headers", number, "value"))
        case FetchStepContainer(image=image, env=env):
            if not _DIGEST.search(image) and _FROM_ENVIRONMENT not in image:
                yield Flaw(
                    "unpinned-image",
                    f"the image '{image}' may be another one tomorrow",
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


def _address(url: str, path: Path) -> Iterator[Flaw]:
    try:
        parts = urlsplit(url)
        host, password = parts.hostname, parts.password
    except ValueError:
        return
    if password and _FROM_ENVIRONMENT not in password:
        yield _secret("a password in the address", path)
    if parts.scheme in _TLS and host not in _LOOPBACK and _FROM_ENVIRONMENT not in (host or ""):
        yield Flaw(
            "open-transport",
            f"what comes over {parts.scheme}: can be read and changed on its way",
            f"use {_TLS[parts.scheme]}: if the server speaks it",
            path,
            length=len(url),
        )


def _secret(what: str, path: Path) -> Flaw:
    return Flaw(
        "written-secret",
        f"{what} is written into the definition, and with it into the chain, for ever",
        "write ${{ env.NAME }}, give the value in the environment, and change the secret",
        path,
    )


def _columns(
    event: SetPollingSource | AddPushSource, path: Path, event_time: str
) -> Iterator[Flaw]:
    merge = event.merge
    ddl = event.read.ddl_schema
    if isinstance(merge, MergeStrategyAppend) or not ddl:
        return
    # The event time may come from elsewhere; names of system columns get an underscore.
    declared = read_ddl(ddl).names
    known = [*declared, event_time, *(f"_{name}" for name in declared)]
    yield from _unknown(merge.primary_key, known, (*path, "merge", "primaryKey"))
    compared: Sequence[str] = getattr(merge, "compare_columns", None) or ()
    yield from _unknown(compared, known, (*path, "merge", "compareColumns"))


def _unknown(names: Sequence[str], known: Sequence[str], path: Path) -> Iterator[Flaw]:
    for number, name in enumerate(names):
        if name not in known:
            yield Flaw(
                "no-such-column",
                f"the source has no column '{name}'",
                did_you_mean(name, known, "name a column of `read.schema`"),
                (*path, number),
                length=len(name),
            )
