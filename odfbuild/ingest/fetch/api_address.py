"""The address of an HTTP API, such as `https://host/orders?limit=100#api?records=data&next=next`.

What stands behind `#` is for whoever reads, and is not sent (RFC 3986, 3.5): how pages follow each
other, where the records are, and how to log in. Reads nothing.
"""

from __future__ import annotations

import re
from typing import Literal
from urllib.parse import parse_qsl, urlsplit

from odfbuild.errors import InDefinition, IngestError
from odfbuild.odf.model import (
    MergeStrategy,
)
from odfbuild.values import Value
from odfbuild.wording import did_you_mean

_MARK = "api?"
_PATH = re.compile(r"[^.]+(?:\.[^.]+)*")
LINK = "@link"
"""As the path of the next address: the header `Link` has it (RFC 8288)."""

PARAMETERS = (
    "records",
    "next",
    "token",
    "token_parameter",
    "offset_parameter",
    "page_parameter",
    "first_page",
    "max_pages",
    "cursor",
    "cursor_parameter",
    "method",
    "body",
    "token_url",
    "client_id",
    "client_secret",
    "scope",
)
_OF_THE_RECORDS = frozenset(PARAMETERS) - {
    "max_pages", "token_url", "client_id", "client_secret", "scope"
}  # fmt: skip
_MOST_PAGES = 10_000

Path = tuple[str, ...]


class Login(Value):
    """How to get a token by client credentials (RFC 6749, 4.4)."""

    url: str
    client_id: str
    client_secret: str
    scope: str | None = None


class ApiWanted(Value):
    """What an address asks for. Paths are names of members, from the outermost on.

    At most one of `next`, `token` and `counter` says how pages follow each other: the address of
    the next one, a token for `parameter`, or a number of it that counts records or pages.
    """

    url: str
    records: Path = ()
    next: Path = ()
    token: Path = ()
    counter: Literal["offset", "page"] | None = None
    parameter: str = ""
    first_page: int = 1
    max_pages: int = _MOST_PAGES
    cursor: Path = ()
    cursor_parameter: str = ""
    body: str | None = None
    is_post: bool = False
    login: Login | None = None


def is_api(url: str) -> bool:
    """Whether an address is one of an API, as far as its text tells."""
    return url.partition("#")[2].startswith(_MARK)


def api_named(url: str) -> str:
    """An address as messages name it: without what stands behind `#`."""
    return url.partition("#")[0]


def api_place(url: str) -> str:
    """What tells a source from others: its address without login and bounds."""
    address, _, rest = url.partition("#")
    kept = [e for e in parse_qsl(rest.removeprefix(_MARK), True) if e[0] in _OF_THE_RECORDS]
    return f"{address}#{sorted(kept)}"


def api_wanted(url: str, shown: str) -> ApiWanted:
    """What `url` asks for, which messages may show as `shown`. Raises `IngestError` E0482."""
    address, _, rest = url.partition("#")
    given = _parameters(rest.removeprefix(_MARK), shown)
    if urlsplit(address).scheme.lower() not in ("http", "https"):
        raise _wrong(shown, "it is none of a web server", "write https://…#api?…")
    ways = [
        each for each in ("next", "token", "offset_parameter", "page_parameter") if each in given
    ]
    if len(ways) > 1:
        raise _wrong(shown, f"it has `{ways[0]}` and `{ways[1]}`", "name one way to the next page")
    for one, other in (("token", "token_parameter"), ("cursor", "cursor_parameter")):
        if (one in given) != (other in given):
            raise _wrong(shown, f"`{one}` and `{other}` belong together", "give both or none")
    if "first_page" in given and "page_parameter" not in given:
        raise _wrong(shown, "`first_page` is for `page_parameter`", "leave it out")
    method = given.get("method", "POST" if "body" in given else "GET").upper()
    if method not in ("GET", "POST") or (method == "GET" and "body" in given):
        raise _wrong(shown, f"`method` is {method}", "write POST, or GET without a `body`")
    return ApiWanted(
        url=address,
        records=_path(given, "records", shown),
        next=_path(given, "next", shown),
        token=_path(given, "token", shown),
        counter="offset" if "offset_parameter" in given else "page" if "page_parameter" in given
        else None,
        parameter=next((given[e] for e in given if e in _NUMBERED), ""),
        first_page=_number(given, "first_page", 1, 0, shown),
        max_pages=_number(given, "max_pages", _MOST_PAGES, 1, shown),
        cursor=_path(given, "cursor", shown),
        cursor_parameter=given.get("cursor_parameter", ""),
        body=_body(given.get("body"), shown),
        is_post=method == "POST",
        login=_login(given, shown),
    )  # fmt: skip


_NUMBERED = ("token_parameter", "offset_parameter", "page_parameter")


def check_api_merge(asked: ApiWanted, merge: MergeStrategy, shown: str) -> None:
    """Raise `IngestError` E0487 where a merge would take a part of the records for all."""
    if not asked.cursor:
        return
    if merge.IS_WHOLE:
        why, help = (
            "takes records that do not come for deleted ones, and a cursor asks for new ones only",
            "leave `cursor` out, or use `merge: {kind: UpsertStream}`",
        )
    elif merge.REPEATS:
        why, help = (
            "adds each record again that comes again, and the last ones come again",
            "use `merge: {kind: Ledger}` or `{kind: UpsertStream}` with a key",
        )
    else:
        return
    raise IngestError(
        f"the cursor of {api_named(shown)} does not fit its merge strategy",
        code="E0487",
        location=InDefinition.of("fetch", "url"),
        notes=(f"`merge: {{kind: {merge.KIND}}}` {why}",),
        help=help,
    )


def _parameters(text: str, shown: str) -> dict[str, str]:
    given: dict[str, str] = {}
    for key, value in parse_qsl(text, keep_blank_values=True):
        if key not in PARAMETERS:
            help = did_you_mean(key, PARAMETERS, f"use {', '.join(PARAMETERS)}")
            raise _wrong(shown, f"'{key}' is no parameter of such an address", help)
        if key in given or not value:
            what = f"it has '{key}' twice" if key in given else f"its '{key}' is empty"
            raise _wrong(shown, what, "write it once, with a value, or leave it out")
        given[key] = value
    return given


def _path(given: dict[str, str], key: str, shown: str) -> Path:
    text = given.get(key)
    if text is None:
        return ()
    if not _PATH.fullmatch(text):
        raise _wrong(shown, f"`{key}` is '{text}'", "write names with dots between: data.items")
    return tuple(text.split("."))


def _number(given: dict[str, str], key: str, default: int, least: int, shown: str) -> int:
    text = given.get(key, str(default))
    if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) < least:
        raise _wrong(shown, f"`{key}` is '{text}'", f"write a whole number from {least} on")
    return int(text)


def _body(text: str | None, shown: str) -> str | None:
    import json

    if text is not None:
        try:
            is_object = isinstance(json.loads(text), dict)
        except (ValueError, RecursionError):
            is_object = False
        if not is_object and "${{" not in text:
            raise _wrong(shown, "its `body` is no JSON object", "write {…}, percent-encoded")
    return text


def _login(given: dict[str, str], shown: str) -> Login | None:
    needed = ("token_url", "client_id", "client_secret")
    missing = [each for each in needed if each not in given]
    if len(missing) == len(needed) and "scope" not in given:
        return None
    if missing:
        raise _wrong(
            shown,
            f"its login lacks `{missing[0]}`",
            "write token_url=https://…&client_id=…&client_secret=${{ env.NAME }}",
        )
    if urlsplit(given["token_url"]).scheme.lower() not in ("http", "https"):
        raise _wrong(shown, "`token_url` is no address of a web server", "write https://…")
    return Login(given["token_url"], given["client_id"], given["client_secret"], given.get("scope"))


def _wrong(shown: str, what: str, help: str) -> IngestError:
    return IngestError(
        f"'{api_named(shown)}' cannot be read as an API: {what}",
        code="E0482",
        location=InDefinition.of("fetch", "url"),
        help=help,
    )
