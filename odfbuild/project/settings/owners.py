"""Owners of datasets, by name patterns: `owners` of odfbuild.yaml.

As in a CODEOWNERS file, the last matching entry wins; an entry without owners removes them.
"""

from __future__ import annotations

from collections.abc import Iterable

from odfbuild.declared_settings import setting
from odfbuild.project.settings.by_name import Name, Patterns, last_matching
from odfbuild.values import Value


class Ownership(Value):
    """Datasets whose name matches have these owners."""

    match: Patterns = setting()
    owners: tuple[Name, ...] = setting(about="Teams or people: @data/rail, ann@example.org")


def owners_of(declared: Iterable[Ownership], name: str) -> tuple[str, ...]:
    """Whom to ask about a dataset; nobody where nothing is said."""
    found = last_matching(declared, name)
    return found.owners if found else ()
