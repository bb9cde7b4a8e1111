"""Look at the polling sources of a project, at those that may have news since the last plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from odfbuild.errors import IngestError, Location, OdfbuildError
from odfbuild.ingest.facts import SourceFacts
from odfbuild.ingest.probe import listing, probe
from odfbuild.ingest.resume import polling_state, reason_to_rest
from odfbuild.ingest.watch import NOTHING_TO_WATCH, completed, look, looks_the_same
from odfbuild.odf.model import SetPollingSource
from odfbuild.odf.projection import Projection
from odfbuild.plan.memory import Memory
from odfbuild.project.model import Definition, Project


def probe_all(
    project: Project,
    definitions: Iterable[Definition],
    projections: Mapping[str, Projection],
    memory: Memory,
    fetch_uncacheable: bool = False,
) -> tuple[dict[str, SourceFacts], dict[str, OdfbuildError]]:
    """What is known of each polling source, and why those that cannot be ingested cannot.

    A source that looks as it did when the last plan was made is not probed again.
    """
    root = str(project.config.root)
    aliases = {name.lower(): name for name in projections}
    facts: dict[str, SourceFacts] = {}
    refusals: dict[str, OdfbuildError] = {}
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
        alias = aliases.get(definition.folded)
        chain = projections[alias] if alias is not None else None
        reason = reason_to_rest(source.fetch, chain, fetch_uncacheable)
        if reason is not None:
            facts[name] = SourceFacts("unchanged", message=reason)
            memory.watched(definition, NOTHING_TO_WATCH)
            continue
        try:
            listed = listing(source, root)
            seen = look(source, root, listed)
            facts[name] = probe(source, polling_state(chain), project.config.root, listed)
        except IngestError as error:
            error.location = error.location or _event_place(project, definition, index)
            refusals[name] = error
        else:
            memory.watched(definition, completed(seen, facts[name], root))
    return facts, refusals


def _polling_source(definition: Definition) -> tuple[SetPollingSource | None, int]:
    for index, event in enumerate(definition.snapshot.metadata):
        if isinstance(event, SetPollingSource):
            return event, index
    return None, 0


def _event_place(project: Project, definition: Definition, index: int) -> Location:
    from odfbuild.project.locate import locate_path

    return locate_path(project, definition, ("metadata", index))
