"""Pages of an HTTP API: the records of a response, and which request comes next. Pure.

Records stay the bytes that the server sent, so that no digit of a number is lost.
Source: RFC 8259 (JSON), RFC 8288 (`Link`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime

import msgspec

from odfbuild.errors import IngestError
from odfbuild.ingest.fetch.api_address import LINK, ApiWanted, Path
from odfbuild.ingest.secrets import scrub
from odfbuild.values import Value

_LINK = re.compile(r'<([^<>]*)>((?:\s*;\s*[^;,"]+(?:"[^"]*")?)*)')
_NEXT = re.compile(r';\s*rel\s*=\s*"?(?:[^";]*\s)?next(?:\s[^";]*)?"?\s*(?:;|$)', re.IGNORECASE)
_SHOWN = 80

CursorValue = int | date | datetime


class Position(Value):
    """Up to which value of a cursor was read, as the server spells it, and a digest of its records.

    The records with that value come again with the next request.
    """

    text: str
    digest: str = ""


class Turn(Value):
    """The next request: another address, or the value of a parameter."""

    url: str | None = None
    value: str | int | None = None


def records_of(body: bytes, asked: ApiWanted, shown: str) -> list[bytes]:
    """The records of a response, each one a line of JSON. Raises `IngestError` E0483."""
    found = _at(body, asked.records, shown)
    if found is None:
        raise _unfit(shown, f"there is no `{'.'.join(asked.records)}` in it", body)
    if found == b"null":
        return []
    try:
        records = (
            msgspec.json.decode(found, type=list[msgspec.Raw])
            if found[:1] == b"["
            else [msgspec.Raw(found)]
        )
        lines = [bytes(msgspec.json.format(bytes(each), indent=-1)) for each in records]
    except (ValueError, RecursionError) as error:
        raise _unfit(shown, f"it is not JSON: {error}", body) from None
    if any(line[:1] != b"{" for line in lines):
        raise _unfit(shown, "its records are no objects", body)
    return lines


def turn_of(
    body: bytes,
    headers: Mapping[str, str],
    asked: ApiWanted,
    pages: int,
    records: int,
    in_page: int,
    shown: str,
) -> Turn | None:
    """The request behind the page number `pages`; `None`: it was the last.

    `records` counts those of all pages, `in_page` those of the last one.
    """
    if asked.next == (LINK,):
        link = next_link(headers.get("link", ""))
        return None if link is None else Turn(url=link)
    if asked.next or asked.token:
        value = _scalar(body, asked.next or asked.token, shown)
        if value in (None, "", False):
            return None
        return Turn(url=str(value)) if asked.next else Turn(value=str(value))
    if asked.counter is None or not in_page:
        return None
    return Turn(value=records if asked.counter == "offset" else asked.first_page + pages)


def next_link(header: str) -> str | None:
    """The address that a header `Link` calls the next one."""
    return next((url for url, rest in _LINK.findall(header) if _NEXT.search(rest)), None)


def newest(
    records: Sequence[bytes], asked: ApiWanted, shown: str
) -> tuple[str, list[bytes]] | None:
    """The largest value of the cursor, as it is spelled, and the records that have it.

    Raises `IngestError` E0487 where a record has none, or values cannot be compared.
    """
    best: CursorValue | None = None
    text, having = "", list[bytes]()
    for record in records:
        spelled = _scalar(record, asked.cursor, shown)
        value = _cursor_value(spelled)
        if value is None or (best is not None and type(value) is not type(best)):
            raise _no_cursor(asked, spelled, record, shown)
        if best is None or value > best:  # type: ignore[operator]  # both are of one type
            best, text, having = value, str(spelled), []
        if value == best:
            having.append(record)
    return (text, having) if having else None


def is_later(one: str, other: str) -> bool:
    """Whether a value of a cursor is larger than another one; values of another kind are."""
    values = [_cursor_value(int(each) if _WHOLE.fullmatch(each) else each) for each in (one, other)]
    if None in values or type(values[0]) is not type(values[1]):
        return True
    return values[0] > values[1]  # type: ignore[operator]  # as above


_WHOLE = re.compile(r"-?[0-9]{1,30}")


def _cursor_value(value: object) -> CursorValue | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if not isinstance(value, str) or " " in value:
        return None
    try:
        if len(value) == 10:
            return date.fromisoformat(value)
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


def _at(body: bytes, path: Path, shown: str) -> bytes | None:
    """The bytes of a member; `None`: it is not there."""
    found = body.strip()
    try:
        if not path:
            return found
        for name in path:
            if found[:1] != b"{":
                return None
            members = msgspec.json.decode(found, type=dict[str, msgspec.Raw])
            if name not in members:
                return None
            found = bytes(members[name])
    except (ValueError, RecursionError) as error:
        raise _unfit(shown, f"it is not JSON: {error}", body) from None
    return found.strip()


def _scalar(body: bytes, path: Path, shown: str) -> str | int | float | bool | None:
    found = _at(body, path, shown)
    try:
        value = None if found is None else msgspec.json.decode(found)
    except (ValueError, RecursionError) as error:
        raise _unfit(shown, f"it is not JSON: {error}", body) from None
    return value if isinstance(value, str | int | float) else None


def _unfit(shown: str, why: str, body: bytes) -> IngestError:
    begin = scrub(body[:_SHOWN].decode("utf-8", "replace"))
    return IngestError(
        f"the response of {shown} cannot be read: {why}",
        code="E0483",
        notes=(f"it begins with: {' '.join(begin.split())}",),
        help="correct the address, or `records` behind `#api?` in it: names with dots between",
    )


def _no_cursor(asked: ApiWanted, value: object, record: bytes, shown: str) -> IngestError:
    begin = scrub(record[:_SHOWN].decode("utf-8", "replace"))
    what = "it is missing" if value is None else f"its value is '{scrub(str(value))}'"
    return IngestError(
        f"'{'.'.join(asked.cursor)}' of {shown} cannot be the cursor: in one record {what}",
        code="E0487",
        notes=(f"the record begins with: {begin}",),
        help="use a member that all records have and that grows with each change: a whole number, "
        "a date, or a time with its zone; or leave `cursor` out",
    )
