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
from odfbuild.survey.faults import fault_of
from odfbuild.values import dataclass


@dataclass(frozen=True, slots=True)
class Probed:
    """What is known of polling sources, why some cannot be ingested, files edited since read."""

    facts: dict[str, SourceFacts]
    refusals: dict[str, OdfbuildError]
    edited: tuple[ChainDrift, ...]


def probe_all(
    project: Project,
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
    edited: list[ChainDrift] = []
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
            found = _edited(project, definition, chain, facts[name], listed) if is_known else None
        except IngestError as error:
            refusals[name] = error.or_at(_event_place(project, definition, index))
            continue
        except Exception as error:  # whatever is wrong with one source, the others are looked at
            refusals[name] = fault_of(project.config.cache, "looking at", name, error)
            continue
        if found is None:
            memory.watched(definition, completed(seen, facts[name], root))
        else:
            edited.append(found)  # and the next plan looks again
    contents.save()
    return Probed(facts, refusals, tuple(edited))


def _edited(
    project: Project,
    definition: Definition,
    chain: Projection | None,
    facts: SourceFacts,
    listed: list[str],
) -> ChainDrift | None:
    """That files which no run will read are not what they were when they were read."""
    last = last_name(polling_state(chain))
    if chain is None or last is None:
        return None
    root = project.config.root
    coming = set(facts.files)
    behind = [path for path in listed if display_name(path, str(root)) not in coming]
    files = ReadMarks(project.config.cache, chain.dataset_id).edited(behind)
    if not files:
        return None
    from odfbuild.survey.source_drift import edited_files

    return edited_files(definition, files, last, str(root))


def _polling_source(definition: Definition) -> tuple[SetPollingSource | None, int]:
    for index, event in enumerate(definition.snapshot.metadata):
        if isinstance(event, SetPollingSource):
            return event, index
    return None, 0


def _event_place(project: Project, definition: Definition, index: int) -> Location:
    from odfbuild.project.locate import locate_path

    return locate_path(project, definition, ("metadata", index))
