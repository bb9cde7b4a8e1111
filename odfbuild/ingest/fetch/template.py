"""`${{ env.NAME || 'default' }}` in URLs and headers, resolved when data is fetched.

The text with the values is used for the request and never stored or shown.
Source: reference behaviour, template substitution.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from odfbuild.errors import IngestError

_TEMPLATE = re.compile(r"\$\{\{([^}]*)\}\}")
_ENV = re.compile(r"env\.([A-Za-z0-9_-]+)")
_STRING = re.compile(r"'([^']*)'")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_MOST = 100


@dataclass(frozen=True, slots=True)
class Resolved:
    """Text with its values filled in, and the values, which messages must not show."""

    text: str
    secrets: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "Resolved(…)"


def has_template(text: str) -> bool:
    """Whether `text` has anything to fill in."""
    return "${{" in text


def resolve(template: str, environ: Mapping[str, str]) -> Resolved:
    """Fill in `template`; `IngestError` when a token is malformed or none has a value."""
    text = template
    secrets: list[str] = []
    # Text that was filled in is scanned again; a value may hold itself, so there is a bound.
    for _ in range(_MOST):
        match = _TEMPLATE.search(text)
        if match is None:
            return Resolved(text, tuple(secrets))
        value, secret = _first_value(match.group(1), environ)
        if secret and value:
            secrets.append(value)
        text = text[: match.start()] + value + text[match.end() :]
    raise IngestError(
        f"'{template}' refers to itself through the environment",
        code="E0408",
        help="set the environment variables in it to plain values",
    )


def mask(text: str, secrets: tuple[str, ...]) -> str:
    """`text` without the values."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def _first_value(body: str, environ: Mapping[str, str]) -> tuple[str, bool]:
    names = []
    for token in (part.strip() for part in body.split("||")):
        if match := _ENV.fullmatch(token):
            names.append(match.group(1))
            if match.group(1) in environ:
                return environ[match.group(1)], True
        elif match := _STRING.fullmatch(token):
            return match.group(1).strip(), False
        elif _NUMBER.fullmatch(token):
            return token, False
        else:
            raise IngestError(
                f"'{token}' in '${{{{{body}}}}}' is not understood",
                code="E0408",
                help="write env.NAME, 'text' or a number, separated by ||",
            )
    raise IngestError(
        f"'${{{{{body}}}}}' has no value",
        code="E0408",
        help=f"set the environment variable {' or '.join(names)}, or give a default: "
        f"${{{{ env.{names[0] if names else 'NAME'} || 'default' }}}}",
    )
