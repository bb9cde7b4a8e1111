"""Which columns hold personal values: `personal` of odfbuild.yaml.

Values of these columns are encrypted before they are committed, by a key of the person that they
are about. Nothing of that is in a manifest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from odfbuild.declared_settings import setting
from odfbuild.errors import InSettings, PersonalDataError
from odfbuild.project.settings.by_name import Name, Patterns, matching
from odfbuild.values import Value


class PersonalEntry(Value):
    """Columns of the datasets whose name matches; all entries that match count."""

    match: Patterns = setting()
    columns: tuple[Name, ...] = setting((), "Columns of text whose values are encrypted")
    subject: Name | None = setting(
        None, "Column that names the person whom the values of a record are about"
    )
    disclose: tuple[Name, ...] = setting(
        (), "Columns of a derivative that are made from personal values and are not encrypted"
    )


def subjects_of(entries: Iterable[PersonalEntry], dataset: str) -> dict[str, str]:
    """The personal columns of a dataset, each with the column that names its subject."""
    return {
        column: entry.subject
        for entry in entries
        if entry.subject is not None and matching(entry, dataset) is not None
        for column in entry.columns
    }


def disclosed(entries: Iterable[PersonalEntry], dataset: str) -> frozenset[str]:
    """Columns of a dataset, in lower case, that may show what personal values give."""
    return frozenset(
        column.lower()
        for entry in entries
        if matching(entry, dataset) is not None
        for column in entry.disclose
    )


def wrong_entries(entries: Sequence[PersonalEntry]) -> Iterator[PersonalDataError]:
    """What is wrong with entries by themselves."""
    for number, entry in enumerate(entries):
        if entry.columns and entry.subject is None:
            yield PersonalDataError(
                "`personal` names columns and no `subject`",
                code="E1601",
                location=InSettings.of("personal", number, "columns"),
                help="add `subject: COLUMN`, the column that names the person",
            )
        elif entry.subject is not None and entry.subject in entry.columns:
            yield PersonalDataError(
                f"the subject '{entry.subject}' cannot be a personal column itself",
                code="E1601",
                location=InSettings.of("personal", number, "columns"),
                notes=("its values choose the keys, so they are not encrypted",),
                help="leave it out of `columns`, and use a number or a random text as the subject",
            )
