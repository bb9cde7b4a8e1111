"""What an HTTP API answers, for whoever writes or checks a definition of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import msgspec

from odfbuild.errors import OdfbuildError
from odfbuild.ingest.fetch.api import first_page
from odfbuild.ingest.fetch.api_address import LINK, ApiWanted, api_named, api_wanted, is_api
from odfbuild.ingest.fetch.api_pages import next_link, records_of
from odfbuild.ingest.secrets import remember_password, resolve_address
from odfbuild.ingest.settings import IngestSettings
from odfbuild.odf.model import FetchStepUrl
from odfbuild.values import Value

_DEPTH = 3
_NEXT = re.compile(r"next(?:_?(?:page|url|link|href|page_?url))*|@odata\.nextLink", re.IGNORECASE)
_TOKEN = re.compile(r"next_?(?:page_?)?(?:cursor|token)|(?:end_?)?cursor", re.IGNORECASE)
_ADDRESS = re.compile(r"(?:https?://|/|\?)\S*")


class LookedAtApi(Value):
    """`address` says where the records are, and how pages follow each other as far as that shows.

    `records` are those of the first page, as JSON.
    """

    address: str
    records: tuple[bytes, ...]


def look_at_api(step: FetchStepUrl, settings: IngestSettings) -> LookedAtApi:
    """Ask for the first page of an address, in which `${{ env.X }}` is filled in.

    Raises `OdfbuildError`, without a place, because there may be no definition.
    """
    try:
        return _look(step, settings)
    except OdfbuildError as error:
        raise error.changed(location=None) from None


def _look(step: FetchStepUrl, settings: IngestSettings) -> LookedAtApi:
    template = step.url if is_api(step.url) else f"{api_named(step.url)}#api?"
    url = resolve_address(template)
    remember_password(url)
    shown, asked = api_named(template), api_wanted(url, template)
    body, headers = first_page(step, asked, shown, settings)
    added = _proposed(body, headers, asked)
    records = tuple(added["records"].split(".")) if "records" in added else asked.records
    if added:
        template += ("" if template.endswith("?") else "&") + urlencode(added, safe="@.")
    found = records_of(body, replace(asked, records=records), shown)
    return LookedAtApi(template, tuple(found))


def _proposed(body: bytes, headers: Mapping[str, str], asked: ApiWanted) -> dict[str, str]:
    """Parameters that are not given, as a response shows them."""
    try:
        found: Any = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return {}
    added = {}
    members = list(_members(found, ()))
    if not asked.records and isinstance(found, dict):
        lists = [(len(each), path) for path, each in members if _is_records(each)]
        if lists:
            added["records"] = ".".join(max(lists, key=lambda each: each[0])[1])
    if asked.next or asked.token or asked.counter:
        return added
    if next_link(headers.get("link", "")) is not None:
        return added | {"next": LINK}
    for path, value in members:
        if not isinstance(value, str) or not value or any("." in each for each in path):
            continue
        if _NEXT.fullmatch(path[-1]) and _ADDRESS.fullmatch(value):
            return added | {"next": ".".join(path)}
        if _TOKEN.fullmatch(path[-1]):
            name = re.sub(r"^(?:next|end)_?", "", path[-1], flags=re.IGNORECASE)
            name = name[:1].lower() + name[1:]
            return added | {"token": ".".join(path), "token_parameter": name}
    return added


def _members(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict) and len(path) < _DEPTH:
        for name, each in value.items():
            yield (*path, name), each
            yield from _members(each, (*path, name))


def _is_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(e, dict) for e in value)
