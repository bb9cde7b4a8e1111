"""Headers that a definition adds to requests. Source: RFC 9110, 5."""

from __future__ import annotations

import re

from odfbuild.errors import IngestError
from odfbuild.ingest.secrets import resolve
from odfbuild.odf.model import RequestHeader

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def resolved_header(header: RequestHeader) -> tuple[bytes, bytes]:
    """Name and value as they are sent; a value that cannot be is refused without showing it."""
    # Blanks around a value do not belong to it (RFC 9110, 5.5).
    value = resolve(header.value).strip()
    check_header_name(header.name)
    if _CONTROL.search(value):
        raise IngestError(
            f"the header '{header.name}' cannot be sent: its value has characters that headers "
            "must not have",
            code="E0405",
            help="correct `fetch.headers`, or the environment variable in it",
        )
    return header.name.encode(), value.encode()


def check_header_name(name: str) -> None:
    """Raise `IngestError` when no header may be called `name` (RFC 9110, 5.1)."""
    if not _TOKEN.fullmatch(name):
        raise IngestError(
            f"the header '{name}' cannot be sent: its name has characters that headers must not "
            "have",
            code="E0405",
            help="correct `fetch.headers` in the definition",
        )
