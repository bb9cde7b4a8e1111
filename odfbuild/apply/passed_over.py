"""Files of sources that came too late: a later one was read before, and no run looks back.

A source of files remembers the last one only; which ones were read is told by the whole chain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from odfbuild.errors import IngestError, IntegrityError
from odfbuild.ingest.fetch.files_glob import display_name, last_name, new_files
from odfbuild.ingest.fetch.result import ETAG
from odfbuild.ingest.probe import listing
from odfbuild.odf.model import AddData, FetchStepFilesGlob, SetPollingSource
from odfbuild.odf.projection import Projection
from odfbuild.plan.drift import ChainDrift, DriftCause
from odfbuild.project.model import Definition, Project
from odfbuild.store.workspace import Workspace


def passed_over(
    project: Project, workspace: Workspace, projections: Mapping[str, Projection]
) -> Iterator[ChainDrift]:
    """Roots with local files that match their pattern, were never read and never will be."""
    root = str(project.config.root)
    for definition in project.definitions:
        state, source = projections.get(definition.name), _source(definition)
        if state is None or source is None:
            continue
        last, behind = last_name(state.source_state), _behind(source, state, root)
        if last is None or not behind:
            continue
        try:
            read = _read(workspace, definition.name, state)
        except IntegrityError:
            continue  # a damaged chain is drift of bytes
        late = sorted(path for name, path in behind.items() if name not in read)
        if late:
            more = f" and {len(late) - 1} more" if late[1:] else ""
            yield ChainDrift(
                dataset=definition.name,
                cause=DriftCause.PASSED_OVER,
                message=f"{display_name(late[0], root)}{more} came when {last} had been read, and "
                f"{'are' if more else 'is'} never read",
                help=f"give it a name that comes after '{last}', and the next apply reads it",
                file=str(definition.location),
            )


def _source(definition: Definition) -> SetPollingSource | None:
    for event in definition.snapshot.metadata:
        if isinstance(event, SetPollingSource) and isinstance(event.fetch, FetchStepFilesGlob):
            return event
    return None


def _behind(source: SetPollingSource, state: Projection, root: str) -> dict[str, str]:
    """Paths by base names of the local files that no run will read."""
    assert isinstance(source.fetch, FetchStepFilesGlob)
    matching = listing(source, root)
    try:
        coming = set(new_files(source.fetch, matching, state.source_state))
    except IngestError:
        return {}  # two files of one name, say: the plan refuses that
    return {path.rpartition("/")[2]: path for path in matching if path not in coming}


def _read(workspace: Workspace, name: str, state: Projection) -> set[str]:
    """Base names of all files that the chain says were read."""
    blocks = workspace.dataset(name).walk(state.head)
    states = (each.event.new_source_state for _, each in blocks if isinstance(each.event, AddData))
    return {each.value for each in states if each is not None and each.kind == ETAG}
