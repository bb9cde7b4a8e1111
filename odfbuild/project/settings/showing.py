"""Whose records may leave the machine, by patterns of names: `show` of odfbuild.yaml.

Sites, plans, comments and pages are read by others than those who may read the data. So they
contain records, and values of records such as a minimum, only where an entry lets them out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatchcase
from glob import escape

from odfbuild.declared_settings import setting
from odfbuild.project.settings.by_name import Patterns, last_matching
from odfbuild.project.settings.personal import PersonalEntry, subjects_of
from odfbuild.values import Value


class ShownColumns(Value):
    """Which columns are shown: those of `include` that are not among `exclude`."""

    include: Patterns = setting(("*",))
    exclude: Patterns = setting(())

    def allow(self, column: str) -> bool:
        """Whether values of a column may be shown, whatever the case of its name."""
        name = column.lower()
        included = any(fnmatchcase(name, each) for each in self.include)
        return included and not any(fnmatchcase(name, each) for each in self.exclude)

    def of(self, columns: Iterable[str]) -> tuple[str, ...]:
        """Those of these columns that may be shown."""
        return tuple(filter(self.allow, columns))


class Shown(Value):
    """Whether records of datasets whose name matches may be shown, and which columns."""

    match: Patterns = setting()
    samples: bool = setting(True, "Whether records, and values of them, may leave this machine")
    columns: ShownColumns = setting(ShownColumns(), "Columns whose values may be shown")


class Showing(Value):
    """What all entries together let out; of several that match a dataset, the last one wins.

    Values of columns that are `personal` are not let out.
    """

    entries: tuple[Shown, ...] = ()
    personal: tuple[PersonalEntry, ...] = ()

    def of(self, dataset: str) -> ShownColumns | None:
        """The columns of a dataset whose values may be shown; `None`: no values at all."""
        found = last_matching(self.entries, dataset)
        if found is None or not found.samples:
            return None
        hidden = tuple(escape(each.lower()) for each in subjects_of(self.personal, dataset))
        return replace(found.columns, exclude=(*found.columns.exclude, *hidden))
