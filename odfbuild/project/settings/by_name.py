"""Settings of odfbuild.yaml that are about datasets by patterns of their names."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Annotated, Protocol, TypeVar

from odfbuild.declared_settings import Fits

Name = Annotated[str, Fits(minLength=1)]
Patterns = Annotated[
    tuple[str, ...],
    Fits(
        tuple[Name, ...],
        lambda found: tuple(map(str.lower, found)),
        description="Patterns of names with * and ?",
    ),
]
"""Patterns in lower case, by which an entry is about datasets."""


class ByName(Protocol):
    """An entry about all datasets whose name matches one of its patterns."""

    @property
    def match(self) -> tuple[str, ...]:
        """Patterns in lower case."""


Entry = TypeVar("Entry", bound=ByName)


def matching(entry: ByName, name: str) -> str | None:
    """The first pattern of an entry that the name of a dataset matches, whatever its case."""
    name = name.lower()
    return next((each for each in entry.match if fnmatchcase(name, each)), None)


def last_matching(entries: Iterable[Entry], name: str) -> Entry | None:
    """The entry that holds for a dataset: of several that match the last."""
    found = None
    for each in entries:
        if matching(each, name) is not None:
            found = each
    return found
