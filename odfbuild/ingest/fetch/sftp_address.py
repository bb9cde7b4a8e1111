"""Addresses of SFTP servers: `sftp://user@host:22/in/prices.csv`, also patterns. Reads nothing.

Paths are absolute; `sftp://host/~/prices.csv` begins where the login leads, as in curl.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from odfbuild.errors import IngestError
from odfbuild.store.remote import scheme_of
from odfbuild.values import Value

_SCHEME = "sftp://"
_ADDRESS = re.compile(
    r"sftp://(?:(?P<user>[^@/:]*)(?::(?P<password>[^@/]*))?@)?"
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\[\]@/:]+)(?::(?P<port>[0-9]{1,5}))?(?P<path>/[^\0]+)",
    re.IGNORECASE,
)


class SftpPlace(Value):
    """A file or a pattern on a server; `None`: what the configuration of SSH says."""

    host: str
    path: str
    port: int | None = None
    user: str | None = None
    password: str | None = None


def is_sftp(address: str) -> bool:
    """Whether an address or a pattern is one of an SFTP server."""
    return address[: len(_SCHEME)].lower() == _SCHEME


def is_elsewhere(pattern: str) -> bool:
    """Whether the files of a pattern are on another machine: in a store, or on a server."""
    return scheme_of(pattern) is not None or is_sftp(pattern)


def sftp_place(address: str, shown: str, *, is_pattern: bool = False) -> SftpPlace:
    """What `address` names, which messages may show as `shown`. Raises `IngestError` E0407.

    Patterns are taken as they are; in other paths `%20` is a blank.
    """
    found = _ADDRESS.fullmatch(address)
    port = int(found["port"]) if found is not None and found["port"] else None
    if found is None or (port is not None and not 0 < port < 65_536):
        raise IngestError(
            f"'{shown}' is not the address of a file on an SFTP server",
            code="E0407",
            help="write sftp://USER@HOST/folder/file.csv, or /~/file.csv below the folder of the "
            "login; percent-encode / and @ in a password",
        )
    path = found["path"] if is_pattern else unquote(found["path"])
    return SftpPlace(
        host=found["host"].strip("[]"),
        path=path.removeprefix("/~/"),
        port=port,
        user=unquote(found["user"]) if found["user"] else None,
        password=unquote(found["password"]) if found["password"] else None,
    )
