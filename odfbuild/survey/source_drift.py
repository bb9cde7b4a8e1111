"""Source drift: files that arrived too late or were edited, which no run reads.

A source of files remembers the last one only. Which ones were read is told by the whole chain, what
they were by marks in the cache of the machine that read them. Times of modification are not used:
Git changes them with each checkout.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from odfbuild.errors import IngestError, IntegrityError
from odfbuild.ingest.fetch.files_glob import display_name, last_name, new_files
from odfbuild.ingest.fetch.result import ETAG
from odfbuild.ingest.probe import listing
from odfbuild.ingest.read_marks import ReadMarks
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import AddData, FetchStepFilesGlob, SetPollingSource
from odfbuild.plan.drift import ChainDrift, DriftCause
from odfbuild.project.model import Definition, Project
from odfbuild.store.workspace import Workspace


def source_drift(
    project: Project, workspace: Workspace, projections: Mapping[str, Projection]
) -> Iterator[ChainDrift]:
    """Roots with local files that match their pattern and will not be read as they are now."""
    root, cache = str(project.config.root), project.config.cache
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
            yield _late_files(definition, late, last, root)
        marks = ReadMarks(cache, state.dataset_id)
        edited = marks.edited(path for name, path in behind.items() if name in read)
        if edited:
            yield edited_files(definition, edited, last, root)


def edited_files(definition: Definition, files: Sequence[str], last: str, root: str) -> ChainDrift:
    """That `files` of a source were changed after they were read, the `last` one included."""
    many = len(files) > 1
    return ChainDrift(
        dataset=definition.name,
        cause=DriftCause.EDITED,
        message=f"{_some(files, root)} {'were' if many else 'was'} changed after being read, and "
        f"{'are' if many else 'is'} not read again",
        help=f"put new records into a file whose name comes after '{last}', or restore the file "
        "as it was read",
        file=str(definition.location),
    )


def passed_over(
    workspace: Workspace,
    definition: Definition,
    state: Projection,
    files: Sequence[str],
    last: str,
    root: str,
) -> ChainDrift | None:
    """That the chain has never read some of `files`, which come before the `last` one."""
    try:
        read = _read(workspace, definition.name, state)
    except IntegrityError:
        return None
    late = [path for path in files if path.rpartition("/")[2] not in read]
    return _late_files(definition, late, last, root) if late else None


def _late_files(definition: Definition, late: Sequence[str], last: str, root: str) -> ChainDrift:
    return ChainDrift(
        dataset=definition.name,
        cause=DriftCause.PASSED_OVER,
        message=f"{_some(late, root)} arrived after {last} was read, and "
        f"{'are' if late[1:] else 'is'} never read",
        help=f"give it a name that comes after '{last}', and the next apply reads it",
        file=str(definition.location),
    )


def _some(files: Sequence[str], root: str) -> str:
    return display_name(files[0], root) + (f" and {len(files) - 1} more" if files[1:] else "")


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
    events = (block.event for _, block in workspace.dataset(name).walk(state.head))
    sources = (event.new_source_state for event in events if isinstance(event, AddData))
    return {source.value for source in sources if source is not None and source.kind == ETAG}
