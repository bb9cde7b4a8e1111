"""References beyond the local workspace: repositories and URLs.

Source: Open Data Fabric, "Dataset References" (grammar).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from odfbuild.odf.identity import DatasetAlias, DatasetId, is_name
from odfbuild.values import Value

_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")


class Url(Value):
    """A dataset or repository by its URL."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class RemoteAlias:
    """A dataset in a named repository. Case does not count in comparisons."""

    repo: str
    alias: DatasetAlias

    @classmethod
    def parse(cls, text: str) -> RemoteAlias:
        """Read `repo/name` or `repo/account/name`; `ValueError` otherwise."""
        repo, _, rest = text.partition("/")
        if not rest or not is_name(repo):
            raise ValueError(f"not the name of a dataset in a repository: {text!r}")
        return cls(repo, DatasetAlias.parse(rest))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemoteAlias) and str(self).lower() == str(other).lower()

    def __hash__(self) -> int:
        return hash(str(self).lower())

    def __str__(self) -> str:
        return f"{self.repo}/{self.alias}"


class RemoteId(Value):
    """A dataset by its identity, in a named repository or wherever it is found."""

    repo: str | None
    id: DatasetId

    def __str__(self) -> str:
        return f"{self.repo}/{self.id}" if self.repo else str(self.id)


class AmbiguousAlias(Value):
    """`prefix/name`: the prefix is an account here, or a repository."""

    prefix: str
    name: str

    def resolve(self, repositories: frozenset[str]) -> DatasetAlias | RemoteAlias:
        """What it means where these repositories are known."""
        if self.prefix.lower() in {name.lower() for name in repositories}:
            return RemoteAlias(self.prefix, DatasetAlias(self.name))
        return DatasetAlias(self.name, self.prefix)


RemoteRef = RemoteId | Url | RemoteAlias
AnyRef = RemoteId | Url | RemoteAlias | AmbiguousAlias | DatasetAlias


def parse_url(text: str) -> Url:
    """Read a URL: scheme and host in small letters, an empty path as `/` where there are paths.

    `ValueError` when it is none.
    """
    if _URL.match(text) is None:
        raise ValueError(f"not a URL: {text!r}")
    parts = urlsplit(text)
    if not parts.netloc and parts.scheme != "file":
        raise ValueError(f"the URL names no host: {text!r}")
    if parts.scheme not in ("http", "https", "ftp", "ws", "wss"):
        return Url(parts.scheme + text[len(parts.scheme) :])  # names of others may tell case apart
    user, at, host = parts.netloc.rpartition("@")
    return Url(parts._replace(netloc=user + at + host.lower(), path=parts.path or "/").geturl())


def parse_remote_ref(text: str) -> RemoteRef:
    """Read a reference to a dataset elsewhere; `ValueError` otherwise."""
    found = _id_or_url(text)
    return found if found is not None else RemoteAlias.parse(text)


def parse_any_ref(text: str) -> AnyRef:
    """Read any reference; `a/b` stays ambiguous until repositories are known."""
    found = _id_or_url(text)
    if found is not None:
        return found
    parts = text.split("/")
    if len(parts) > 3 or not all(is_name(part) for part in parts):
        raise ValueError(f"not a reference to a dataset: {text!r}")
    if len(parts) == 1:
        return DatasetAlias(parts[0])
    if len(parts) == 2:
        return AmbiguousAlias(parts[0], parts[1])
    return RemoteAlias.parse(text)


def _id_or_url(text: str) -> RemoteId | Url | None:
    if text.startswith("did:"):
        return RemoteId(None, DatasetId.parse(text))
    if _URL.match(text):
        return parse_url(text)
    repo, slash, rest = text.partition("/")
    if slash and rest.startswith("did:"):
        if not is_name(repo):
            raise ValueError(f"not the name of a repository: {repo!r}")
        return RemoteId(repo, DatasetId.parse(rest))
    return None
