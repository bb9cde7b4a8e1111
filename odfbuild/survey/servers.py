"""Ask web servers about the sources that planning cannot see, for `plan --refresh`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from odfbuild.ingest.ask import Question, ask_servers, is_asked
from odfbuild.ingest.facts import SourceFacts
from odfbuild.ingest.resume import polling_state
from odfbuild.odf.chain.projection import Projection
from odfbuild.project.model import Definition, Project
from odfbuild.survey.sources import polling_source


def told_by_servers(
    project: Project,
    definitions: Iterable[Definition],
    projections: Mapping[str, Projection],
    facts: Mapping[str, SourceFacts],
) -> dict[str, SourceFacts]:
    """What web servers say of sources of which nothing is known here.

    A source that was never read, or is another one since, has no state to be compared.
    """
    aliases = {name.lower(): name for name in projections}
    questions = {}
    for each in definitions:
        if each.name not in facts or facts[each.name].status != "unknown":
            continue
        source, _ = polling_source(each)
        alias = aliases.get(each.folded)
        if source is None or alias is None:
            continue
        committed, state = projections[alias].polling_source, polling_state(projections[alias])
        if committed is None or state is None or source.fetch != committed.fetch:
            continue
        if is_asked(source.fetch):
            questions[each.name] = Question(source.fetch, state)
    return ask_servers(questions, project.config.ingest)
