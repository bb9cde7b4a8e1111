"""Errors in the queries and keys of all definitions, found from their text."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from functools import partial

from odfbuild.engine.release import engine_version
from odfbuild.errors import OdfbuildError
from odfbuild.plan.columns.known import KnownColumns
from odfbuild.plan.engines import refused_queries
from odfbuild.plan.inputs import ChainIdentities
from odfbuild.plan.queries.subjects import accepted_texts, errors_in, subjects_of
from odfbuild.plan.right_queries import QueryKeys, RightQueries
from odfbuild.project.locate import DefinitionPlace
from odfbuild.project.model import Definition, Project
from odfbuild.sql.check.mistakes import NOT_UNDERSTOOD
from odfbuild.sql.translate.runnable import SPARK
from odfbuild.survey.accepted_texts import AcceptedTexts
from odfbuild.survey.decision_cache import right_queries_file
from odfbuild.survey.definitions import Definitions
from odfbuild.survey.faults import fault_of


def wrong_queries(
    found: Definitions, *, engine_follows: bool = False
) -> dict[str, tuple[OdfbuildError, ...]]:
    """All errors of the definitions that have some, by dataset; no engine is asked.

    `engine_follows`: what is not understood is left to it.

    A definition that was right is looked at again when it, or one upstream of it, has changed.
    """
    project = found.project
    file = right_queries_file(project.config)
    right = RightQueries(file.load, AcceptedTexts(project.config.cache, engine_version()))
    heads = {name.lower(): head for name, head in found.workspace.heads().items()}
    alias_of = ChainIdentities(found.projections).alias
    faulty = {name.lower() for name in found.wrong}
    keys = QueryKeys(project.definitions, heads, project.config.engines, alias_of, faulty)
    known = found.columns()
    wrong: dict[str, tuple[OdfbuildError, ...]] = {}
    by_name = {each.name: each for each in project.definitions}
    for definition in (by_name[name] for name in found.graph.order if name in by_name):
        try:
            key = keys.of_definition(definition.folded)
            # Not part of what is remembered: plans remember, too, and look at engines elsewhere.
            errors = _of_other_engines(project, definition)
            state = found.projections.get(definition.name)
            accepted = partial(accepted_texts, definition, state, right.accepted)
            look = partial(_look, project, definition, known, accepted)
            found_wrong = right.errors(key, look)
            if engine_follows:
                found_wrong = tuple(each for each in found_wrong if each.code != NOT_UNDERSTOOD)
            errors += found_wrong
        except Exception as error:  # a defect of ours must not hide what is wrong with the others
            errors = (fault_of(project.config.cache, "checking", definition.name, error),)
        if errors:
            wrong[definition.name] = errors
    if right.is_changed:
        file.save(right.kept)
    return {each.name: wrong[each.name] for each in project.definitions if each.name in wrong}


def wrong_queries_of(
    found: Definitions, chosen: Sequence[Definition]
) -> dict[str, tuple[OdfbuildError, ...]]:
    """The same of some definitions only; nothing is remembered."""
    known = found.columns()
    engine_accepted = AcceptedTexts(found.project.config.cache, engine_version())
    wrong: dict[str, tuple[OdfbuildError, ...]] = {}
    for definition in chosen:
        state = found.projections.get(definition.name)
        accepted = partial(accepted_texts, definition, state, engine_accepted)
        errors = _of_other_engines(found.project, definition)
        errors += _look(found.project, definition, known, accepted)
        if errors:
            wrong[definition.name] = errors
    return wrong


def _of_other_engines(project: Project, definition: Definition) -> tuple[OdfbuildError, ...]:
    if set(definition.engines) <= {SPARK}:
        return ()
    place = DefinitionPlace(project, definition)
    return refused_queries(definition.snapshot, project.config.engines, place)


def _look(
    project: Project,
    definition: Definition,
    known: KnownColumns,
    accepted: Callable[[], Container[str]],
) -> tuple[OdfbuildError, ...]:
    snapshot = definition.snapshot
    place = DefinitionPlace(project, definition)
    name = definition.name
    vocab = known.vocabulary(name)
    subjects = subjects_of(name, snapshot.metadata, known.relation, vocab, project.config.engines)
    return errors_in(snapshot, subjects, place, accepted())
