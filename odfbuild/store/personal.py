"""Which columns of datasets are personal, and what this machine may do with them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Literal

from odfbuild.errors import Code, PersonalDataError
from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.odf.identity import DatasetId
    from odfbuild.store.subject_keys import SubjectKeys

Hiding = Literal["pseudonym", "empty"]
"""What stands in place of a value for readers who may not see it."""
Audience = Literal["people", "public", "nobody"]
"""Who reads: people on this machine, whoever gets tables, sites and comments, or nobody who may see
personal values."""


class PersonalColumns(Value):
    """The personal columns of a dataset, each with the column that names its subject.

    The identity of the dataset is part of what is encrypted: a value of another one is refused.
    """

    dataset: str
    dataset_id: DatasetId
    subjects: Mapping[str, str]

    def within(self, names: Collection[str]) -> PersonalColumns | None:
        """The same for a part of the columns; `None` where none of them is personal."""
        found = {name: self.subjects[name] for name in self.subjects if name in names}
        return PersonalColumns(self.dataset, self.dataset_id, found) if found else None

    def context(self, column: str) -> list[bytes]:
        """What ties an encrypted value to its place (associated data of AES-SIV)."""
        return [str(self.dataset_id).encode(), column.encode()]


class Personal:
    """The personal columns of a project, and the rights of this machine.

    `subjects_of` gives the columns of a dataset by its name, `open_keys` the keys of subjects;
    `show` and `publish` say who may see plain values, `hiding` what others see instead.
    """

    def __init__(
        self,
        subjects_of: Callable[[str], Mapping[str, str]],
        open_keys: Callable[[], SubjectKeys | None],
        *,
        show: bool = False,
        publish: bool = False,
        hiding: Hiding = "pseudonym",
    ) -> None:
        self._subjects_of, self._open_keys = subjects_of, open_keys
        self._shows: dict[Audience, bool] = {"people": show, "public": publish, "nobody": False}
        self.hiding = hiding
        self._lock = Lock()

    def of(self, dataset: str, dataset_id: DatasetId) -> PersonalColumns | None:
        """The personal columns of a dataset; `None` where it has none."""
        found = self._subjects_of(dataset)
        return PersonalColumns(dataset, dataset_id, found) if found else None

    def has(self, dataset: str) -> bool:
        """Whether a dataset of this name has personal columns."""
        return bool(self._subjects_of(dataset))

    def shows(self, audience: Audience) -> bool:
        """Whether these readers see plain values here: they may, and there are keys."""
        return self._shows[audience] and self.keys is not None

    @property
    def keys(self) -> SubjectKeys | None:
        """The keys of subjects; `None`: none are configured on this machine."""
        with self._lock:
            return self._opened

    @cached_property
    def _opened(self) -> SubjectKeys | None:
        return self._open_keys()

    def required_keys(self, dataset: str) -> SubjectKeys:
        """The keys of subjects; `PersonalDataError` E1604 where there are none."""
        if self.keys is None:
            raise PersonalDataError(
                f"'{dataset}' needs the keys of subjects, and this machine has none",
                code=Code.NO_SUBJECT_KEYS,
                dataset=dataset,
                notes=("columns that are `personal` in odfbuild.yaml are encrypted by these keys",),
                help="name their place in the machine's configuration: "
                "`personal: {keys: …, wrapping: …}` (docs/personal-data.md)",
            )
        return self.keys
