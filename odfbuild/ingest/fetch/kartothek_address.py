"""The address of a kartothek table as a source, such as `kartothek+s3://bucket/lake?table=t#uuid`.

Its query says what of the dataset: `table`, `columns` (separated by commas), and `where`:
predicates in disjunctive normal form as JSON. Reads nothing.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from odfbuild.errors import IngestError
from odfbuild.values import Value
from odfbuild.wording import did_you_mean

_PREFIX = "kartothek+"
_PARTS = ("table", "columns", "where")


class Wanted(Value):
    """What an address asks for. `place` is the address without the rest."""

    place: str
    uuid: str
    table: str | None = None
    columns: tuple[str, ...] | None = None
    where: list[list[tuple[str, str, Any]]] | None = None


def wanted(url: str, shown: str) -> Wanted:
    """What `url` asks for, which messages may show as `shown`. Raises `IngestError`."""
    parts = urlsplit(url)
    if not parts.fragment:
        raise _wrong(shown, "it does not name the dataset", "write its name behind `#`")
    given: dict[str, str] = {}
    for key, value in parse_qsl(parts.query, keep_blank_values=True):
        if key not in _PARTS:
            help = did_you_mean(key, _PARTS, f"use {', '.join(_PARTS)}")
            raise _wrong(shown, f"'{key}' is no part of such an address", help)
        if key in given:
            raise _wrong(shown, f"it has '{key}' twice", "write it once")
        given[key] = value
    columns = given.get("columns")
    return Wanted(
        place=parts._replace(query="", fragment="").geturl().removeprefix(_PREFIX),
        uuid=unquote(parts.fragment),
        table=given.get("table"),
        columns=None if columns is None else tuple(columns.split(",")),
        where=None if "where" not in given else _predicates(given["where"], shown),
    )


def _predicates(text: str, shown: str) -> list[list[tuple[str, str, Any]]]:
    form = 'write [[["column", "==", value], …and], …or]'
    try:
        given = json.loads(text)
    except ValueError as error:
        raise _wrong(shown, f"`where` is not JSON: {error}", form) from None
    is_right = isinstance(given, list) and all(
        isinstance(every, list) and all(isinstance(each, list) and len(each) == 3 for each in every)
        for every in given
    )
    if not is_right:
        raise _wrong(shown, "`where` is no list of lists of comparisons", form)
    return [[(column, operator, value) for column, operator, value in every] for every in given]


def _wrong(shown: str, what: str, help: str) -> IngestError:
    return IngestError(
        f"'{shown}' cannot be the address of a kartothek table: {what}", code="E0407", help=help
    )
