"""How closely the steps of each derivative of a project follow the blocks of their inputs.

Asks definitions, and chains without one, such as those of a branch that is promoted.
"""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock

from odfbuild.odf.chain.step import Closeness
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import MetadataEvent, SetTransform, SetVocab
from odfbuild.odf.vocabulary import Vocabulary, vocabulary_of
from odfbuild.plan.closeness import Derivative, Readers
from odfbuild.project.model import Project
from odfbuild.store.workspace import Workspace


class Following:
    """The derivatives of a project, asked for at the first one that runs."""

    def __init__(self, project: Project, workspace: Workspace) -> None:
        self._project = project
        self._workspace = workspace
        self._readers: Readers | None = None
        self._mutex = Lock()

    def of(self, name: str) -> Closeness:
        """How closely a derivative follows its inputs."""
        with self._mutex:
            if self._readers is None:
                self._readers = Readers(self._found())
            return self._readers.closeness_of(name.lower())

    def _found(self) -> dict[str, Derivative]:
        events: dict[str, Iterable[MetadataEvent | None]] = {
            name.lower(): (state.transform, state.vocab)
            for name, state in self._workspace.readable().items()
        }
        events |= {each.folded: each.snapshot.metadata for each in self._project.definitions}
        renamed = {
            name for name, each in events.items() if any(_names_event_time(one) for one in each)
        }
        found = {}
        for name, each in events.items():
            transform = next((one for one in each if isinstance(one, SetTransform)), None)
            if transform is not None:
                inputs = self._inputs(transform)
                own_names = not renamed.isdisjoint({name, *inputs.values()})
                found[name] = Derivative(transform.transform, inputs, own_names)
        return found

    def _inputs(self, transform: SetTransform) -> dict[str, str]:
        found = {}
        for each in transform.inputs:
            ref = each.dataset_ref
            name = self._workspace.resolve(ref) if isinstance(ref, DatasetId) else str(ref)
            if name is not None:
                found[(each.alias or name).lower()] = name.lower()
        return found


def _names_event_time(event: MetadataEvent | None) -> bool:
    given = vocabulary_of(event) if isinstance(event, SetVocab) else Vocabulary()
    return given.event_time != Vocabulary().event_time
