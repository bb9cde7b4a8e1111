"""Who asks, and what he may do: tokens and patterns of names. Pure, but for reading variables."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from fnmatch import fnmatchcase

from odfbuild.errors import Errors, OdfbuildError, RepositoryError
from odfbuild.ingest.secrets import resolve
from odfbuild.project.settings.serving import Access
from odfbuild.values import Value

SHORTEST = 16
"""Characters of a token: shorter ones can be guessed."""


class UnknownToken(Exception):
    """Nobody has this token."""


class MalformedToken(Exception):
    """The header `Authorization` holds no bearer token."""


class Caller(Value):
    """Who asks; `token` is what was shown, if anything was."""

    name: str
    token: str | None
    _rules: tuple[Access, ...]

    def may_read(self, alias: str) -> bool:
        """Whether the dataset is there for him at all."""
        return any(_matches(each.read + each.write + each.replace, alias) for each in self._rules)

    def may_write(self, alias: str) -> bool:
        """Whether he may create it, and append to it."""
        return any(_matches(each.write + each.replace, alias) for each in self._rules)

    def may_ingest(self, alias: str) -> bool:
        """Whether he may push records to it."""
        return self.may_write(alias) or any(_matches(each.ingest, alias) for each in self._rules)

    def may_replace(self, alias: str) -> bool:
        """Whether he may give it another history."""
        return any(_matches(each.replace, alias) for each in self._rules)


class Rights:
    """The rules of a server; `RepositoryError` E1052 for those that are wrong, all at once."""

    def __init__(self, rules: Sequence[Access]) -> None:
        self._open = tuple(each for each in rules if each.token is None)
        self._owned: dict[bytes, tuple[str, list[Access]]] = {}
        errors: list[OdfbuildError] = []
        for number, rule in enumerate(rules):
            try:
                self._add(number, rule)
            except OdfbuildError as error:
                errors.append(error)
        if errors:
            raise Errors(errors) if len(errors) > 1 else errors[0]

    def _add(self, number: int, rule: Access) -> None:
        place = f"serve.access[{number}]"
        if not (rule.read or rule.write or rule.replace or rule.ingest):
            raise _wrong(
                f"{place} allows nothing", "give it `read`, `write`, `replace` or `ingest`"
            )
        if rule.token is None:
            if rule.write or rule.replace or rule.ingest:
                raise _wrong(f"{place} lets everybody write", "give it a `token`")
            return
        token = resolve(rule.token)
        if len(token) < SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
            raise _wrong(
                f"the token of {place} is too short, or has other characters than letters, digits "
                "and punctuation",
                f"use one of {SHORTEST} characters or more, such as `openssl rand -hex 24` prints",
            )
        name = rule.name or f"access[{number}]"
        self._owned.setdefault(_digest(token), (name, []))[1].append(rule)

    def caller(self, header: str | None) -> Caller:
        """Who shows this header `Authorization`."""
        if header is None:
            return Caller("-", None, self._open)
        scheme, _, token = header.partition(" ")
        if scheme.lower() != "bearer" or not token or " " in token:
            raise MalformedToken
        shown = _digest(token)
        for digest, (name, rules) in self._owned.items():
            if hmac.compare_digest(digest, shown):
                return Caller(name, token, (*rules, *self._open))
        raise UnknownToken


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _matches(patterns: Sequence[str], alias: str) -> bool:
    return any(fnmatchcase(alias.lower(), each) for each in patterns)


def _wrong(problem: str, help: str) -> RepositoryError:
    return RepositoryError(problem, code="E1052", help=help)
