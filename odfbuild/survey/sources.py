"""Probe the polling sources of a project that may have changed since the last plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from odfbuild.errors import IngestError, Location, OdfbuildError
from odfbuild.ingest.content import KnownContents
from odfbuild.ingest.facts import SourceFacts
from odfbuild.ingest.fetch.files_glob import display_name, last_name
from odfbuild.ingest.probe import listing, probe
from odfbuild.ingest.read_marks import ReadMarks, key_of, marked
from odfbuild.ingest.resume import polling_state, reason_to_rest
from odfbuild.ingest.watch import NOTHING_TO_WATCH, completed, look, looks_the_same
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import SetPollingSource
from odfbuild.plan.drift import ChainDrift
from odfbuild.plan.memory import Memory
from odfbuild.project.model import Definition, Project
from odfbuild.store.workspace import Workspace
from odfbuild.survey.faults import fault_of
from odfbuild.values import dataclass


@dataclass(frozen=True, slots=True)
class Probed:
    """What is known of polling sources, why some cannot be ingested, files that no run reads."""

    facts: dict[str, SourceFacts]
    refusals: dict[str, OdfbuildError]
    unread: tuple[ChainDrift, ...]


def probe_all(
    project: Project,
    workspace: Workspace,
    definitions: Iterable[Definition],
    projections: Mapping[str, Projection],
    memory: Memory,
    fetch_uncacheable: bool = False,
) -> Probed:
    """Look at the polling source of each definition.

    A source that looks as it did when the last plan was made is not probed again.
    """
    root = str(project.config.root)
    aliases = {name.lower(): name for name in projections}
    facts: dict[str, SourceFacts] = {}
    refusals: dict[str, OdfbuildError] = {}
    unread: list[ChainDrift] = []
    known = marked(project.config.cache)
    contents = KnownContents(project.config.cache)
    boundary = project.config.boundary
    for definition in definitions:
        seen = memory.watch(definition)
        if seen is not None and looks_the_same(seen, root):
            memory.watched(definition, seen)
            continue
        name = definition.name
        source, index = _polling_source(definition)
        if source is None:
            memory.watched(definition, NOTHING_TO_WATCH)
            continue
        memory.watched(definition, None)
        try:
            alias = aliases.get(definition.folded)
            chain = projections[alias] if alias is not None else None
            reason = reason_to_rest(source.fetch, chain, fetch_uncacheable)
            if reason is not None:
                facts[name] = SourceFacts("unchanged", message=reason)
                memory.watched(definition, NOTHING_TO_WATCH)
                continue
            listed = listing(source, root)
            is_known = chain is not None and key_of(chain.dataset_id) in known
            seen = look(source, root, listed, closely=is_known)
            state = polling_state(chain)
            facts[name] = probe(
                source, state, project.config.root, listed, contents.of, boundary.may_open
            )
            if project.config.ingest.skips_bad_records(name):
                facts[name] = replace(facts[name], exact=False)
            found = (
                _unread(project, workspace, definition, chain, facts[name], listed)
                if chain is not None and is_known
                else []
            )
        except IngestError as error:
            refusals[name] = error.or_at(_event_place(project, definition, index))
            continue
        except Exception as error:  # whatever is wrong with one source, the others are looked at
            refusals[name] = fault_of(project.config.cache, "looking at", name, error)
            continue
        if not found:
            memory.watched(definition, completed(seen, facts[name], root))
        unread += found  # and the next plan looks again
    contents.save()
    return Probed(facts, refusals, tuple(unread))


def _unread(
    project: Project,
    workspace: Workspace,
    definition: Definition,
    chain: Projection,
    facts: SourceFacts,
    listed: list[str],
) -> list[ChainDrift]:
    """That files which no run will read came too late, or are not what they were when read."""
    last = last_name(polling_state(chain))
    if last is None:
        return []
    root = str(project.config.root)
    coming = set(facts.files)
    behind = [path for path in listed if display_name(path, root) not in coming]
    marks = ReadMarks(project.config.cache, chain.dataset_id)
    edited, unmarked = marks.edited(behind), marks.unmarked(behind)
    if not edited and not unmarked:
        return []
    from odfbuild.survey.source_drift import edited_files, passed_over

    # The chain, which is long, tells what other machines have read.
    late = passed_over(workspace, definition, chain, unmarked, last, root) if unmarked else None
    told = edited_files(definition, edited, last, root) if edited else None
    return [each for each in (late, told) if each is not None]


def _polling_source(definition: Definition) -> tuple[SetPollingSource | None, int]:
    for index, event in enumerate(definition.snapshot.metadata):
        if isinstance(event, SetPollingSource):
            return event, index
    return None, 0


def _event_place(project: Project, definition: Definition, index: int) -> Location:
    from odfbuild.project.locate import locate_path

    return locate_path(project, definition, ("metadata", index))
