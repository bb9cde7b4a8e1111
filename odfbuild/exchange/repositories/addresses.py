"""From a reference to an address: which repository, and where in it the dataset is.

A repository is known by its name in odfbuild.yaml or by a bare address. Pure: nothing is opened.
Sources: Open Data Fabric, "Dataset References"; reference behaviour, resolution of remote aliases.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

from odfbuild.errors import RepositoryError
from odfbuild.odf.identity import DatasetId, is_alias, is_name
from odfbuild.odf.references import RemoteAlias, RemoteId, parse_remote_ref
from odfbuild.project.settings.sharing import RepositorySettings
from odfbuild.values import Value
from odfbuild.wording import did_you_mean

SCHEMES = ("s3", "gs", "az", "abfs", "file", "http", "https", "odf+http", "odf+https")

_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):")
_FOLDER = re.compile(r"(\.{0,2}/|\.{1,2}$|~)")
"""What paths begin with, so that none of them is taken for a name."""

_EXAMPLES = "such as s3://bucket/prefix, https://data.example.org/ or ../published"


class Repository(Value):
    """Where datasets are: `address` has no `/` at its end, and no password.

    `user` is `name:password` of such an address, `token` the template of an access token.
    """

    address: str
    name: str | None = None
    token: str | None = None
    user: str | None = None
    signatures: Literal["required", "accepted"] = "accepted"
    visibility: Literal["private", "public"] = "private"
    passports: bool = False

    @property
    def scheme(self) -> str:
        """Of the address; empty for a path."""
        return urlsplit(self.address).scheme

    def __str__(self) -> str:
        return self.name or self.address


class DatasetAddress(Value):
    """A dataset at `<address of repository>/<path>`; without a path, the address is its own.

    `id` instead of a path where only its identity is known.
    """

    repository: Repository
    path: str = ""
    id: DatasetId | None = None

    @property
    def name(self) -> str | None:
        """What the dataset is called there, such as `prices`; `None` when nothing tells it."""
        last = f"{self.repository.address}/{self.path}".rstrip("/").rpartition("/")[2]
        return last if self.id is None and is_name(last) else None

    @property
    def address(self) -> str:
        """Where it is, for messages."""
        return f"{self.repository.address}/{self.id or self.path}".rstrip("/")


def is_address(text: str) -> bool:
    """Whether `text` is a URL or a path, and no name."""
    return not text.startswith("did:") and bool(_SCHEME.match(text) or _FOLDER.match(text))


def find_repository(text: str, known: Mapping[str, RepositorySettings]) -> Repository:
    """The repository that a name or a bare address means.

    `RepositoryError` E1002 for an address that is none, E1003 for a name that nobody gave.
    """
    if is_address(text):
        return _bare(text, known).repository
    return _named(text, known)


def find_dataset(text: str, known: Mapping[str, RepositorySettings]) -> DatasetAddress:
    """The address of a dataset elsewhere: `repo/name`, `repo/account/name`, `repo/did:…`, address.

    `RepositoryError` E1004 for any other text, and as `find_repository`.
    """
    if is_address(text):
        return _bare(text, known)
    try:
        reference = parse_remote_ref(text)
    except ValueError:
        reference = None
    if isinstance(reference, RemoteAlias):
        return DatasetAddress(_named(reference.repo, known), str(reference.alias))
    if isinstance(reference, RemoteId) and reference.repo is not None:
        return DatasetAddress(_named(reference.repo, known), id=reference.id)
    raise RepositoryError(
        f"'{text}' is not the reference of a dataset elsewhere",
        code="E1004",
        help="write repository/name, repository/account/name, repository/did:odf:… or an address, "
        + _EXAMPLES,
    )


def within(repository: Repository, alias: str) -> DatasetAddress:
    """The dataset with that alias in a repository; `RepositoryError` E1004 for no alias."""
    if not is_alias(alias):
        raise RepositoryError(
            f"'{alias}' is not the name of a dataset",
            code="E1004",
            help="names are letters and digits, with single '-' and '.' between them, and an "
            "account in front, such as acme/prices",
        )
    return DatasetAddress(repository, alias)


def _named(name: str, known: Mapping[str, RepositorySettings]) -> Repository:
    found = next((each for each in known if each.lower() == name.lower()), None)
    if found is None:
        raise RepositoryError(
            f"there is no repository '{name}'",
            code="E1003",
            notes=(f"known: {', '.join(sorted(known))}" if known else "odfbuild.yaml has none",),
            help=did_you_mean(
                name,
                known,
                f"name it under `repositories` in odfbuild.yaml, `{name}: {{url: …}}`; for a "
                f"folder of that name write ./{name}",
            ),
        )
    settings = known[found]
    address, user = _checked(settings.url)
    return Repository(
        address,
        found,
        settings.token,
        user,
        settings.signatures,
        settings.visibility,
        settings.passports,
    )


def _bare(text: str, known: Mapping[str, RepositorySettings]) -> DatasetAddress:
    """An address; one that is below a named repository's is in that repository."""
    address, user = _checked(text)
    around = [each for each in (_named(name, known) for name in known) if _is_in(address, each)]
    if around and user is None:
        nearest = max(around, key=lambda each: len(each.address))
        return DatasetAddress(nearest, address[len(nearest.address) :].strip("/"))
    return DatasetAddress(Repository(address, user=user))


def _is_in(address: str, repository: Repository) -> bool:
    return f"{address}/".startswith(f"{repository.address}/")


def _checked(address: str) -> tuple[str, str | None]:
    """The normal form of an address, and the user and password in it."""
    try:
        scheme = _SCHEME.match(address)
        if scheme is None:
            return (address.rstrip("/") or "/"), None
        parts = urlsplit(address)
        _ = parts.port  # raises when it is none
    except ValueError as error:
        raise _malformed(address, str(error)) from None
    if parts.scheme not in SCHEMES:
        raise _malformed(address, f"its scheme is '{scheme[1]}:'")
    if parts.query or parts.fragment:
        raise _malformed(address, "files are found below it, so it has no '?' and no '#'")
    if not address[len(scheme[0]) :].startswith("//"):
        raise _malformed(address, "// is missing behind its scheme")
    if (parts.scheme == "file") == bool(parts.netloc):
        problem = "names a host" if parts.netloc else "names no bucket or host"
        raise _malformed(address, f"it {problem}")
    user, _, host = parts.netloc.rpartition("@")
    if "http" in parts.scheme:
        host = host.lower()
    plain = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
    return plain, user or None


def _malformed(address: str, problem: str) -> RepositoryError:
    # It may hold a password, or be one that stands at the wrong place.
    shown = re.sub(r"//[^/]*@", "//***@", address).split("?", 1)[0]
    return RepositoryError(
        f"'{shown}' is not the address of a repository: {problem}",
        code="E1002",
        help=f"use a folder, or one of {', '.join(f'{each}://' for each in SCHEMES)}, {_EXAMPLES}",
    )
