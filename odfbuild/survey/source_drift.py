"""Source drift: files that arrived too late or were edited, which no run reads.

A source of files remembers the last one only. Which ones were read is told by the whole chain, what
they were by marks in the cache of the machine that read them. Times of modification are not used:
Git changes them with each checkout.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from odfbuild.errors import IngestError
from odfbuild.ingest.fetch.files_glob import last_name, new_files
from odfbuild.ingest.probe import listing
from odfbuild.ingest.read_marks import ReadMarks
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import FetchStepFilesGlob, SetPollingSource
from odfbuild.plan.drift import ChainDrift, DriftCause
from odfbuild.project.model import Definition, Project
from odfbuild.project.overrides import Overrides
from odfbuild.store.workspace import Workspace
from odfbuild.survey.definitions import look_at_definitions
from odfbuild.survey.late_files import late_files, some


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
        late = late_files(workspace, definition.name, state, source, root, [*behind.values()])
        if late and project.config.ingest.late_policy(definition.name) != "read":
            yield passed_over(definition, late, last, root)
        marks = ReadMarks(cache, state.dataset_id)
        edited = marks.edited(path for path in behind.values() if path not in late)
        if edited:
            yield edited_files(definition, edited, last, root)


def count_late_files(
    start: Path | None, given: Overrides, among: Collection[str]
) -> dict[str, int]:
    """How many files of the roots `among` came late and are never read; none are left out."""
    defined = look_at_definitions(start, given)
    project, found = defined.project, {}
    for definition in project.definitions:
        state, source = defined.projections.get(definition.name), _source(definition)
        if definition.name not in among or state is None or source is None:
            continue
        if project.config.ingest.late_policy(definition.name) == "read":
            continue
        try:
            late = late_files(
                defined.workspace, definition.name, state, source, str(project.config.root)
            )
        except IngestError:
            continue  # two files of one name, say: the plan refuses that
        if late:
            found[definition.name] = len(late)
    return found


def edited_files(definition: Definition, files: Sequence[str], last: str, root: str) -> ChainDrift:
    """That `files` of a source were changed after they were read, the `last` one included."""
    many = len(files) > 1
    return ChainDrift(
        dataset=definition.name,
        cause=DriftCause.EDITED,
        message=f"{some(files, root)} {'were' if many else 'was'} changed after being read, and "
        f"{'are' if many else 'is'} not read again",
        help=f"put new records into a file whose name comes after '{last}', or restore the file "
        "as it was read",
        file=str(definition.location),
    )


def passed_over(definition: Definition, late: Sequence[str], last: str, root: str) -> ChainDrift:
    """That no run reads the files `late`, which come before the `last` one."""
    return ChainDrift(
        dataset=definition.name,
        cause=DriftCause.PASSED_OVER,
        message=f"{some(late, root)} arrived after {last} was read, and "
        f"{'are' if late[1:] else 'is'} never read",
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
