"""Forms of references that vectors of conformance have and odfbuild does not use.

Patterns of names, targets of a push, and accounts. Source: Open Data Fabric, "Dataset References"
(grammar); CAIP-10 for `did:pkh`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from odfbuild.odf.identity import DatasetAlias, DatasetId, DatasetRef, is_name, parse_ref
from odfbuild.odf.references import AnyRef, RemoteAlias, Url, parse_any_ref, parse_url

_PATTERN_START = r"(?:-?[a-zA-Z0-9%]+(?:-[a-zA-Z0-9%]+)*)"
_PKH = re.compile(r"did:pkh:([-a-z0-9]{3,8}):([-_a-zA-Z0-9]{1,32}):([-.%a-zA-Z0-9]{1,128})")


@dataclass(frozen=True, slots=True)
class Pattern:
    """Names with `%` for any characters, of an account or of all. Case does not count."""

    name: str
    account: str | None = None

    def matches(self, alias: DatasetAlias) -> bool:
        """Whether a dataset's alias fits."""
        if self.account is not None and not _like(self.account, alias.account or ""):
            return False
        return _like(self.name, alias.name)


def match_name_pattern(text: str) -> tuple[str, str] | None:
    """The longest name pattern in front of `text`, and the rest; `None` if there is none."""
    match = re.match(rf"{_PATTERN_START}(?:\.{_PATTERN_START})*", text)
    return (match.group(0), text[match.end() :]) if match else None


def is_name_pattern(text: str) -> bool:
    """Whether `text` is a name that may hold `%`."""
    found = match_name_pattern(text)
    return found is not None and found[1] == ""


def parse_ref_pattern(text: str) -> DatasetRef | Pattern:
    """Read a local reference or a pattern of names; `ValueError` otherwise."""
    if "%" not in text:
        return parse_ref(text)
    parts = text.split("/")
    if len(parts) > 2 or not all(is_name_pattern(part) for part in parts):
        raise ValueError(f"not a pattern of dataset names: {text!r}")
    return Pattern(parts[-1], parts[0] if len(parts) == 2 else None)


@dataclass(frozen=True, slots=True)
class AmbiguousPattern:
    """`prefix/pattern`: the prefix is an account here, or a repository."""

    prefix: str
    pattern: str


@dataclass(frozen=True, slots=True)
class RemotePattern:
    """A pattern of names of an account in a repository."""

    repo: str
    account: str
    pattern: str


def parse_any_ref_pattern(text: str) -> AnyRef | Pattern | AmbiguousPattern | RemotePattern:
    """Read any reference, or a pattern of names; `ValueError` otherwise."""
    if "%" not in text:
        return parse_any_ref(text)
    *prefixes, pattern = text.split("/")
    if len(prefixes) > 2 or not all(map(is_name, prefixes)) or not is_name_pattern(pattern):
        raise ValueError(f"not a pattern of dataset names: {text!r}")
    if not prefixes:
        return Pattern(pattern)
    if len(prefixes) == 1:
        return AmbiguousPattern(prefixes[0], pattern)
    return RemotePattern(prefixes[0], prefixes[1], pattern)


def ref_matches(pattern: DatasetRef | Pattern, dataset: DatasetId, alias: DatasetAlias) -> bool:
    """Whether a dataset is meant by a reference or pattern."""
    if isinstance(pattern, DatasetId):
        return pattern == dataset
    return pattern.matches(alias) if isinstance(pattern, Pattern) else pattern == alias


def _like(pattern: str, text: str) -> bool:
    expression = ".*".join(re.escape(part) for part in pattern.split("%"))
    return re.fullmatch(expression, text, re.I | re.S) is not None


def parse_push_target(text: str) -> Url | RemoteAlias | str:
    """Read where to push: a URL, a dataset in a repository, or a repository by name."""
    if "://" in text:
        return parse_url(text)
    if "/" in text:
        return RemoteAlias.parse(text)
    if not is_name(text):
        raise ValueError(f"not a repository, dataset or URL: {text!r}")
    return text


@dataclass(frozen=True, slots=True)
class WalletId:
    """An account of a blockchain, `did:pkh:namespace:reference:address` (CAIP-10)."""

    namespace: str
    reference: str
    address: str

    def __str__(self) -> str:
        return f"did:pkh:{self.namespace}:{self.reference}:{self.address}"


def parse_account_id(text: str) -> DatasetId | WalletId:
    """Read the identity of an account: `did:odf` or `did:pkh`; `ValueError` otherwise."""
    if text.startswith("did:pkh:"):
        match = _PKH.fullmatch(text)
        if match is None:
            raise ValueError(f"not a did:pkh: {text!r}")
        return WalletId(*match.groups())
    return DatasetId.parse(text)
