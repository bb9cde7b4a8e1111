"""Ingest only the planned files: files that arrived later wait for the next plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from odfbuild.errors import StaleHeadError
from odfbuild.ingest.fetch import Fetched
from odfbuild.odf.model import FetchStep, FetchStepFilesGlob
from odfbuild.plan.model import DatasetPlan


def as_planned(item: DatasetPlan, step: FetchStep, found: Iterable[Fetched]) -> Iterator[Fetched]:
    """The planned files of those that are found now.

    Raises `StaleHeadError` E0703 when another file comes before a planned one: the order of files
    is the order of records, so it cannot be left for later. Sources without a list of files in
    the plan are taken as they are.
    """
    planned = item.pending.files if item.pending else ()
    if not planned or not isinstance(step, FetchStepFilesGlob):
        yield from found
        return
    waiting = list(planned)
    for fetched in found:
        if not waiting:
            return
        if fetched.display_name != waiting[0]:
            raise _changed(item.name, waiting[0], fetched.display_name)
        yield fetched
        waiting.pop(0)
    if waiting:
        raise _changed(item.name, waiting[0], "nothing")


def _changed(name: str, planned: str, found: str) -> StaleHeadError:
    return StaleHeadError(
        f"the source of '{name}' changed since the plan was made: "
        f"{planned} was next, and now it is {found}",
        code="E0703",
        dataset=name,
        help=f"plan it again: `odfbuild plan -s {name}`",
    )
