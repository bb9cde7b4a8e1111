"""Probe the polling sources of a project that may have changed since the last plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from odfbuild.errors import IngestError, Location, OdfbuildError
from odfbuild.ingest.content import KnownContents
from odfbuild.ingest.count import count_records
from odfbuild.ingest.facts import SourceFacts
from odfbuild.ingest.fetch.files_glob import display_name, last_name
from odfbuild.ingest.probe import listing, probe, probe_late
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
from odfbuild.values import Value


class Probed(Value):
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
        source, index = polling_source(definition)
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
            count = partial(
                count_records, line_breaks=project.config.ingest.reads_line_breaks(name)
            )
            root_path, may_open = project.config.root, boundary.may_open
            facts[name] = probe(source, state, root_path, listed, contents.of, may_open, count)
            if project.config.ingest.skips_bad_records(name):
                facts[name] = replace(facts[name], exact=False)
            found, late = _Behind.of(project, chain, facts[name], listed, is_known).told(
                workspace, definition, source
            )
            if late:
                facts[name] = probe_late(source, late, state, root_path, listed, may_open, count)
        except IngestError as error:
            refusals[name] = error.or_at(_event_place(project, definition, index))
            continue
        except Exception as error:  # whatever is wrong with one source, the others are looked at
            refusals[name] = fault_of(project.config.cache, "looking at", name, error)
            continue
        if not found and not late:
            memory.watched(definition, completed(seen, facts[name], root))
        unread += found  # and the next plan looks again
    contents.save()
    return Probed(facts, refusals, tuple(unread))


class _Behind(Value):
    """The files `paths` of a source that are not to come; `is_known`: of it there are marks."""

    project: Project
    chain: Projection | None
    paths: list[str]
    is_known: bool

    @classmethod
    def of(
        cls,
        project: Project,
        chain: Projection | None,
        facts: SourceFacts,
        listed: list[str],
        is_known: bool,
    ) -> _Behind:
        """Of a source, by its listing and what is new in it."""
        if chain is None or last_name(polling_state(chain)) is None:
            return cls(project, None, [], is_known)
        root, coming = str(project.config.root), set(facts.files)
        behind = [path for path in listed if display_name(path, root) not in coming]
        return cls(project, chain, behind, is_known)

    def told(
        self, workspace: Workspace, definition: Definition, source: SetPollingSource
    ) -> tuple[list[ChainDrift], list[str]]:
        """What is to be told of them, and the late ones that are to be read.

        Raises `IngestError` where no file may come late.
        """
        if self.chain is None or not self.paths:
            return [], []
        config, name = self.project.config, definition.name
        policy = config.ingest.late_policy(name)
        marks = ReadMarks(config.cache, self.chain.dataset_id)
        # The chain, which is long, tells what other machines have read.
        among = marks.unmarked(self.paths) if self.is_known and policy != "read" else self.paths
        edited = marks.edited(self.paths) if self.is_known else []
        if not among and not edited:
            return [], []
        from odfbuild.survey.late_files import late_files, refuse_order, refused
        from odfbuild.survey.source_drift import edited_files, passed_over

        root, last = str(config.root), last_name(polling_state(self.chain)) or ""
        late = late_files(workspace, name, self.chain, source, root, among)
        if late and policy == "fail":
            raise refused(name, late, last, root)
        found = [edited_files(definition, edited, last, root)] if edited else []
        if late and policy == "warn":
            return [passed_over(definition, late, last, root), *found], []
        if late:
            refuse_order(source, name, late, root)
        return found, late


def polling_source(definition: Definition) -> tuple[SetPollingSource | None, int]:
    """The source of a root that asks for data, and which of its events that is."""
    for index, event in enumerate(definition.snapshot.metadata):
        if isinstance(event, SetPollingSource):
            return event, index
    return None, 0


def _event_place(project: Project, definition: Definition, index: int) -> Location:
    from odfbuild.project.locate import locate_path

    return locate_path(project, definition, ("metadata", index))
