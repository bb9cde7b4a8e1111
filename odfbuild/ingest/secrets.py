"""`${{ env.NAME || 'default' }}`, filled in when data is fetched, and kept out of everything else.

Values that come from the environment are secrets: `resolve` remembers them, `scrub` takes them out
of whatever is shown or stored, also in pieces of eight characters and more, and encoded.
Definitions, plans and chains keep the text of the template.
Source: reference behaviour, template substitution.
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

from odfbuild.errors import IngestError, OdfbuildError

HIDDEN = "***"

_TEMPLATE = re.compile(r"\$\{\{([^}]*)\}\}")
PRIVATE = "ODFBUILD_KEYS"
"""What variables with private keys begin with: a definition of a pull request could send them."""

_ENV = re.compile(rf"env\.(?!{PRIVATE})([A-Za-z0-9_-]+)")
_STRING = re.compile(r"'([^']*)'")
_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_MOST = 100
_SHORTEST = 6
"""Shorter values are no secrets, and blotting them out would make messages unreadable."""

_PERCENT = re.compile(r"%[0-9A-F]{2}")
_URL_SAFE = str.maketrans("+/", "-_")
_PLAIN_IN_URLS = "!$&'()*+,;=:/?@[]~"
"""What clients leave alone when they write an address down that was given to them."""

_QUOTED = ("http", "ftp", "sftp", "postgres", "mysql", "mariadb", "kafka", "smtp")
"""What schemes of addresses begin with whose parts are percent-encoded."""

_PIECE = 8
"""A message may show a part of a value, as one does that speaks of a port it could not read."""
_CERTAIN = 16
"""A shorter part of a value may stand somewhere by chance, such as the year and month of a date."""

_known: set[str] = set()
_pieces: set[str] = set()
"""The secrets of this process: a value may turn up in any message, whichever dataset read it."""


def resolve(template: str, environ: Mapping[str, str] | None = None) -> str:
    """Fill in `template`; `IngestError` when a token is malformed or none has a value."""
    return _filled(template, environ, lambda _before, value, _after: value)


def resolve_address(template: str, environ: Mapping[str, str] | None = None) -> str:
    """Fill in an address: no value ends the part of the address that it stands in.

    In a name, a password or the value of a parameter every character with a meaning of its own is
    percent-encoded, elsewhere those that addresses cannot have; what is encoded already stays.
    """
    return _filled(template, environ, _quoted)


def _quoted(before: str, value: str, after: str) -> str:
    scheme, separator, rest = before.partition("://")
    # It may be the address itself, or be filled in further; names of objects are no addresses.
    if not separator or "${{" in value or not scheme.lower().startswith(_QUOTED):
        return value
    if re.search(r"[/?#]", rest) is None:
        authority = re.split(r"[/?#]", _TEMPLATE.sub("", after))[0]
        if "@" not in authority:
            return value  # a host
        safe = ""
    else:
        safe = "/:" if re.search(r"[?&][^?&=#]*=[^?&#]*$", rest) else _PLAIN_IN_URLS + "#"
    return quote(_LONE_PERCENT.sub("%25", value), safe=safe + "%")


def library_words(error: Exception, *templates: str) -> str:
    """What a library says of values; where some were filled in, only what kind of error it is."""
    if any("${{" in each for each in templates):
        return f"{type(error).__name__}, of which no more is shown as it may repeat secrets"
    return str(error) or type(error).__name__


def _filled(
    template: str,
    environ: Mapping[str, str] | None,
    spelled: Callable[[str, str, str], str],
) -> str:
    text = template
    # Text that was filled in is scanned again; a value may hold itself, so there is a bound.
    for _ in range(_MOST):
        match = _TEMPLATE.search(text)
        if match is None:
            return text
        value, secret = _first_value(match.group(1), os.environ if environ is None else environ)
        for literal in _TEMPLATE.sub("\0", value).split("\0") if secret else ():
            remember(literal)
        before, after = text[: match.start()], text[match.end() :]
        text = before + spelled(before, value, after) + after
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
            _keep(spelling)
            _keep(_PERCENT.sub(lambda found: found[0].lower(), spelling))
        for spelling in _in_base64(part.encode()):
            _keep(spelling)


def _keep(spelling: str) -> None:
    if len(spelling) >= _SHORTEST:
        _known.add(spelling)
    shown = spelling.rpartition("://")[2]  # what all addresses begin with is no secret
    _pieces.update(shown[at : at + _PIECE] for at in range(len(shown) - _PIECE + 1))


def _in_base64(data: bytes) -> Iterator[str]:
    """What base64 shows of `data` wherever it begins in what is encoded, as `user:password`."""
    for offset in range(3):
        encoded = b64encode(bytes(offset) + data).decode().rstrip("=")
        whole = encoded[(0, 2, 3)[offset] : None if (offset + len(data)) % 3 == 0 else -1]
        if len(whole) >= _PIECE:
            yield whole
            yield whole.translate(_URL_SAFE)


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
    """`text` without the values that were remembered, and without pieces of them."""
    for secret in sorted(_known, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    for start, end in reversed(_spans(text)):
        text = text[:start] + HIDDEN + text[end:]
    return text


def holds_secret(text: str) -> bool:
    """Whether `text` shows a value that was remembered, or so much of one that it is no chance."""
    return any(secret in text for secret in _known) or any(
        end - start >= _CERTAIN for start, end in _spans(text)
    )


def _spans(text: str) -> list[tuple[int, int]]:
    """Where `text` shows pieces of values, from left to right, each as long as it goes."""
    found: list[tuple[int, int]] = []
    for start in range(len(text) - _PIECE + 1) if _pieces else ():
        if text[start : start + _PIECE] in _pieces:
            first = found.pop()[0] if found and start <= found[-1][1] else start
            found.append((first, start + _PIECE))
    return found


def scrub_error(error: OdfbuildError) -> OdfbuildError:
    """`error`, with secrets taken out of its texts."""
    return error.mapped(_scrubbed)


def _scrubbed(error: OdfbuildError) -> OdfbuildError:
    place = error.location
    if place is not None:
        snippet = None if place.snippet is None else scrub(place.snippet)
        place = replace(place, file=scrub(place.file), snippet=snippet)
    return error.changed(
        message=scrub(error.message),
        notes=tuple(scrub(note) for note in error.notes),
        help=None if error.help is None else scrub(error.help),
        location=place,
    )


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
    if token.startswith(f"env.{PRIVATE}"):
        raise IngestError(
            f"'{token}' is not for sources: private keys never leave this process",
            code="E0408",
            help="use another variable",
        )
    if not any(form.fullmatch(token) for form in (_ENV, _STRING, _NUMBER)):
        raise IngestError(
            f"'{token}' in '${{{{{body}}}}}' is not understood",
            code="E0408",
            help="write env.NAME, 'text' or a number, separated by ||",
        )
