"""Sources of changes: what they have on their servers is created and dropped on request only."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.api.base import Base
from odfbuild.errors import OdfbuildError
from odfbuild.ingest.fetch.database.address import keeps_slot
from odfbuild.odf.model import FetchStepUrl, SetPollingSource
from odfbuild.project.overrides import Overrides
from odfbuild.survey.names import one_of

if TYPE_CHECKING:
    from odfbuild.ingest.fetch.database.changes.manage import ChangesSource, SlotStatus


class Sources(Base):
    """Replication slots and publications of datasets that read changes of a table."""

    def create_source(self, dataset: str, *, resnapshot: bool = False) -> str:
        """Create the replication slot and the publication of a dataset that reads changes.

        `created`, or `kept` if they are there. With `resnapshot`, they are created again, and the
        next apply reads the whole table.
        `PlanError` E0301 where no such dataset reads changes; `IngestError` where that fails.
        """
        return source_of(self._folder, self._given, dataset).create(again=resnapshot)

    def drop_source(self, dataset: str) -> str:
        """Drop the replication slot and the publication; `absent` if there are none.

        The server then keeps no changes for the dataset, which stays as it is.
        """
        return source_of(self._folder, self._given, dataset).drop()

    def source_status(self, *datasets: str) -> list[SlotStatus]:
        """Which replication slots there are for datasets (default: all that read changes).

        `IngestError` if one does not answer.
        """
        return status_of(self._folder, self._given, datasets)


_WHAT = "dataset with a replication slot"
_HELP = "its `fetch.url` names a slot: postgresql://…?changes=NAME#TABLE"


def source_of(folder: Path | None, given: Overrides, dataset: str) -> ChangesSource:
    """The source of one dataset. Raises `PlanError` E0301 where it reads no changes."""
    return _chosen(folder, given, [dataset])[0]


def status_of(folder: Path | None, given: Overrides, datasets: Sequence[str]) -> list[SlotStatus]:
    """What sources of changes have on their servers; of all datasets, if none is named."""
    return [each.status() for each in _chosen(folder, given, datasets)]


def held_logs(
    folder: Path | None, given: Overrides, datasets: Collection[str] | None
) -> Iterator[str | OdfbuildError]:
    """A warning for each slot that holds back much of its server's log, or is no use any more."""
    for name, source in _sources(folder, given):
        if datasets is None or name in datasets:
            try:
                said = source().status().warning
            except OdfbuildError as error:
                yield error.changed(dataset=name)
            else:
                if said:
                    yield said


def _chosen(folder: Path | None, given: Overrides, datasets: Sequence[str]) -> list[ChangesSource]:
    found = dict(_sources(folder, given))
    names = [one_of(found, each, what=_WHAT, help=_HELP) for each in datasets] or sorted(found)
    return [found[name]() for name in names]


def _sources(
    folder: Path | None, given: Overrides
) -> Iterator[tuple[str, Callable[[], ChangesSource]]]:
    from odfbuild.ingest.fetch.database.changes.manage import ChangesSource
    from odfbuild.project.load import read_project

    project = read_project(folder, given)
    for definition in project.definitions:
        for event in definition.snapshot.metadata:
            if isinstance(event, SetPollingSource) and isinstance(event.fetch, FetchStepUrl):
                url, name = event.fetch.url, definition.name
                if keeps_slot(url):
                    yield name, partial(ChangesSource, name, url, project.config.ingest)
