"""Small requests to a server beside the dialogue: the head, look-ups by name, files of `info`.

The token goes to the server's own address only, and no redirect is followed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from odfbuild.exchange.repositories.smart.connection import AGENT, foreign, refusal, unreachable

if TYPE_CHECKING:
    import httpx

SECONDS = 60.0
"""Without a byte from the server."""

MAX_SMALL = 64 << 10
"""Bytes of a small answer."""


@cache
def client() -> httpx.Client:
    """The client of this process, which stays where it is sent.

    One for all datasets: to read the certificates of authorities takes 20 ms.
    """
    import httpx

    timeout = httpx.Timeout(SECONDS, connect=30.0, pool=None)
    headers = {"User-Agent": AGENT, "Accept-Encoding": "identity"}
    return httpx.Client(timeout=timeout, headers=headers, follow_redirects=False)


def bearer(token: str | None) -> dict[str, str]:
    """The header that shows a token."""
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def get_small(
    url: str,
    token: str | None,
    address: str,
    absent: tuple[int, ...] = (404,),
    limit: int = MAX_SMALL,
) -> bytes | None:
    """The body of a small file; `None` when the server answers with a status in `absent`."""
    import httpx

    try:
        with client().stream("GET", url, headers=bearer(token)) as response:
            body = bytearray()
            for part in response.iter_raw():
                body += part
                if len(body) > limit:
                    raise foreign(address, f"{urlsplit(url).path} has more than {limit >> 10} KiB")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise unreachable(address, str(error) or type(error).__name__) from None
    if response.status_code in absent:
        return None
    if response.status_code != 200:
        raise refusal(address, response.status_code, body[:300].decode("utf-8", "replace").strip())
    return bytes(body)


def get_json(
    url: str, token: str | None, address: str, limit: int = MAX_SMALL
) -> Mapping[str, Any] | None:
    """A JSON object; `None` when the server has none for us (4xx)."""
    body = get_small(url, token, address, tuple(range(400, 500)), limit)
    if body is None:
        return None
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise foreign(address, f"{urlsplit(url).path} is no JSON object")
    return found
