"""`${{ env.NAME || 'default' }}`, filled in when data is fetched, and kept out of everything else.

Values that come from the environment are secrets: `resolve` remembers them, `scrub` takes them out
of whatever is shown or stored. Definitions, plans and chains keep the text of the template.
Source: reference behaviour, template substitution.
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

from odfbuild.errors import Errors, IngestError, OdfbuildError

HIDDEN = "***"

_TEMPLATE = re.compile(r"\$\{\{([^}]*)\}\}")
_ENV = re.compile(r"env\.([A-Za-z0-9_-]+)")
_STRING = re.compile(r"'([^']*)'")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_MOST = 100
_SHORTEST = 6
"""Shorter values are no secrets, and blotting them out would make messages unreadable."""

_PLAIN_IN_URLS = "!$&'()*+,;=:/?@[]~"
"""What clients leave alone when they write an address down that was given to them."""

_known: set[str] = set()
"""Of this process: a value may turn up in any message, whichever dataset it was read for."""


def resolve(template: str, environ: Mapping[str, str] | None = None) -> str:
    """Fill in `template`; `IngestError` when a token is malformed or none has a value."""
    text = template
    # Text that was filled in is scanned again; a value may hold itself, so there is a bound.
    for _ in range(_MOST):
        match = _TEMPLATE.search(text)
        if match is None:
            return text
        value, secret = _first_value(match.group(1), os.environ if environ is None else environ)
        if secret:
            remember(value)
        text = text[: match.start()] + value + text[match.end() :]
    raise IngestError(
        f"'{template}' refers to itself through the environment",
        code="E0408",
        help="set the environment variables in it to plain values",
    )


def check_template(template: str) -> None:
    """Raise `IngestError` when `template` is malformed, whatever the environment holds."""
    for match in _TEMPLATE.finditer(template):
        for token in match.group(1).split("||"):
            _check_token(token.strip(), match.group(1))
    if "${{" in _TEMPLATE.sub("", template):
        raise IngestError(
            f"'{template}' opens a template that it does not close",
            code="E0408",
            help="write ${{ env.NAME || 'default' }}; the text inside may not hold a }",
        )


def required_variables(text: str) -> list[tuple[str, ...]]:
    """Names of variables that `text` cannot do without: of each tuple one has to be set."""
    bodies = [[part.strip() for part in body.split("||")] for body in _TEMPLATE.findall(text)]
    found = [[_ENV.fullmatch(part) for part in parts] for parts in bodies]
    return [tuple(each.group(1) for each in parts if each) for parts in found if all(parts)]


def remember(value: str) -> None:
    """Keep `value`, also as a URL or JSON may spell it, out of messages from now on."""
    # A value with a line break at its end is shown without it, and others are shown line by line.
    parts = {value, value.strip(), *(line.strip() for line in value.splitlines())}
    if "://" in value:
        parts |= _parts_of_url(value)
    for part in parts:
        for spelling in (
            part,
            quote(part, safe=""),
            quote(part),
            quote(part, safe=_PLAIN_IN_URLS),
            quote_plus(part),
            unquote(part),
            json.dumps(part)[1:-1],
            json.dumps(part, ensure_ascii=False)[1:-1],
        ):
            if len(spelling) >= _SHORTEST:
                _known.add(spelling)


def remember_password(url: str) -> None:
    """Keep the password that a URL holds in plain text out of messages.

    Also as servers are told it: "The Basic HTTP Authentication Scheme", RFC 7617.
    """
    password = _split_password(url)
    if password:
        remember(password)
        user = unquote(urlsplit(url).username or "")
        remember(b64encode(f"{user}:{unquote(password)}".encode()).decode())


def scrub(text: str) -> str:
    """`text` without the values that were remembered."""
    for secret in sorted(_known, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def holds_secret(text: str) -> bool:
    """Whether `text` shows a value that was remembered."""
    return scrub(text) != text


def scrub_error(error: OdfbuildError) -> OdfbuildError:
    """`error`, with secrets taken out of its texts."""
    if isinstance(error, Errors):
        return Errors(scrub_error(each) for each in error.errors)
    error.message = scrub(error.message)
    error.notes = tuple(scrub(note) for note in error.notes)
    error.help = None if error.help is None else scrub(error.help)
    place = error.location
    if place is not None:
        snippet = None if place.snippet is None else scrub(place.snippet)
        error.location = replace(place, file=scrub(place.file), snippet=snippet)
    return error


def _parts_of_url(url: str) -> set[str]:
    try:
        query = parse_qsl(urlsplit(url).query)
    except ValueError:
        return set()
    return {value for _, value in query} | {_split_password(url) or ""}


def _split_password(url: str) -> str | None:
    try:
        return urlsplit(url).password
    except ValueError:
        return None


def _first_value(body: str, environ: Mapping[str, str]) -> tuple[str, bool]:
    names = []
    for token in (part.strip() for part in body.split("||")):
        if match := _ENV.fullmatch(token):
            names.append(match.group(1))
            if match.group(1) in environ:
                return environ[match.group(1)], True
        elif match := _STRING.fullmatch(token):
            return match.group(1).strip(), False
        else:
            _check_token(token, body)
            return token, False
    raise IngestError(
        f"'${{{{{body}}}}}' has no value",
        code="E0408",
        help=f"set the environment variable {' or '.join(names)}, or give a default: "
        f"${{{{ env.{names[0] if names else 'NAME'} || 'default' }}}}",
    )


def _check_token(token: str, body: str) -> None:
    if not any(form.fullmatch(token) for form in (_ENV, _STRING, _NUMBER)):
        raise IngestError(
            f"'{token}' in '${{{{{body}}}}}' is not understood",
            code="E0408",
            help="write env.NAME, 'text' or a number, separated by ||",
        )
