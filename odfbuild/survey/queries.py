"""What is wrong with the queries and keys of all definitions, as far as their text tells."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import partial

from odfbuild.errors import OdfbuildError
from odfbuild.odf.chain.projection import Projection
from odfbuild.plan.columns.known import KnownColumns
from odfbuild.plan.engines import refused_queries
from odfbuild.plan.queries.subjects import errors_in, subjects_of
from odfbuild.plan.right_queries import RightQueries
from odfbuild.project.locate import DefinitionPlace
from odfbuild.project.model import Definition, Project
from odfbuild.survey.decision_cache import right_queries_file
from odfbuild.survey.definitions import Definitions


def wrong_queries(found: Definitions) -> dict[str, tuple[OdfbuildError, ...]]:
    """All errors of the definitions that have some, by dataset; no engine is asked.

    A definition that was right is looked at again when it, or one upstream of it, has changed.
    """
    project = found.project
    file = right_queries_file(project.config)
    right = RightQueries(file.load)
    keys = _Keys(project, found.projections)
    known = KnownColumns(project.definitions, found.projections)
    wrong: dict[str, tuple[OdfbuildError, ...]] = {}
    by_name = {each.name: each for each in project.definitions}
    for definition in (by_name[name] for name in found.graph.order):
        key = keys.of(definition.folded)
        errors = right.errors(key, partial(_look, project, definition, known))
        if errors:
            wrong[definition.name] = errors
    if right.is_changed:
        file.save(right.kept)
    return {each.name: wrong[each.name] for each in project.definitions if each.name in wrong}


def _look(
    project: Project, definition: Definition, known: KnownColumns
) -> tuple[OdfbuildError, ...]:
    snapshot = definition.snapshot
    place = DefinitionPlace(project, definition)
    name = definition.name
    subjects = subjects_of(name, snapshot.metadata, known.relation, known.vocabulary(name))
    foreign = refused_queries(snapshot, project.config.engines, place)
    return (*foreign, *errors_in(snapshot, subjects, place))


class _Keys:
    """Digests of all that the verdict on a definition follows from, its inputs' included."""

    def __init__(self, project: Project, projections: Mapping[str, Projection]) -> None:
        self._definitions = {each.folded: each for each in project.definitions}
        self._heads = {name.lower(): each for name, each in projections.items()}
        self._engines = repr(sorted(project.config.engines.items()))
        self._found: dict[str, str] = {}

    def of(self, folded: str) -> str:
        """The digest of one dataset; a circle among inputs was refused before."""
        if folded not in self._found:
            text = "\0".join(self._parts(folded))
            self._found[folded] = hashlib.sha256(text.encode()).hexdigest()
        return self._found[folded]

    def _parts(self, folded: str) -> Iterator[str]:
        yield f"definition {self._engines}"
        chain = self._heads.get(folded)
        yield repr(chain.head) if chain is not None else ""
        definition = self._definitions.get(folded)
        if definition is not None:
            yield definition.key.hex() if definition.key else repr(definition.snapshot)
            yield from (self.of(each.lower()) for each in definition.inputs)
