"""The input of the decisions of a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import field
from typing import Any

from odfbuild.errors import CheckError, Location, OdfbuildError
from odfbuild.ingest.facts import SourceFacts
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.identity import DatasetId
from odfbuild.plan.memory import Memory
from odfbuild.plan.places import Place
from odfbuild.plan.slices import SliceIndex
from odfbuild.project.model import Definition
from odfbuild.project.settings.checks import Declared
from odfbuild.project.settings.policy import Policy
from odfbuild.sql.translate.named import Engines
from odfbuild.values import Value


class States(Mapping[str, Projection]):
    """Projections by alias in lower case, read where they are asked for."""

    def __init__(self, projections: Mapping[str, Projection]) -> None:
        self._projections = projections
        self._aliases = {name.lower(): name for name in projections}

    def __getitem__(self, folded: str) -> Projection:
        return self._projections[self._aliases[folded]]

    def get(self, folded: str, default: Any = None) -> Any:
        """See `Mapping.get`; without raising for each dataset that has no chain yet."""
        alias = self._aliases.get(folded)
        return default if alias is None else self._projections[alias]

    def __contains__(self, folded: object) -> bool:
        return folded in self._aliases

    def __iter__(self) -> Iterator[str]:
        return iter(self._aliases)

    def __len__(self) -> int:
        return len(self._aliases)


class ChainIdentities(Mapping[str, DatasetId]):
    """DIDs by alias in lower case, looked up where they are asked for."""

    def __init__(self, projections: Mapping[str, Projection]) -> None:
        self.states = States(projections)
        self._projections = projections
        self._aliases: dict[str, str] | None = None

    def __getitem__(self, folded: str) -> DatasetId:
        return self.states[folded].dataset_id

    def __iter__(self) -> Iterator[str]:
        return iter(self.states)

    def __len__(self) -> int:
        return len(self.states)

    def aliases(self, refs: tuple[str, ...]) -> tuple[str, ...]:
        """The aliases behind references, as `alias` tells them."""
        for ref in refs:
            if ref.startswith("did:"):
                return tuple(map(self.alias, refs))
        return refs

    def alias(self, ref: str) -> str:
        """The alias behind a reference; a DID that no chain has stays one."""
        if not ref.startswith("did:"):
            return ref
        if self._aliases is None:
            states = self._projections.items()
            self._aliases = {str(state.dataset_id): name for name, state in states}
        return self._aliases.get(ref, ref)


class Others(Value):
    """Datasets of others: references of those that are `declared`, by name here.

    `pulled_from` gives the reference of a chain without a definition; `None`: nobody pulled it.
    """

    declared: Mapping[str, str] = field(default_factory=dict)
    pulled_from: Callable[[str], str | None] = lambda _: None


class ByPolicy(Value):
    """What `onQueryChange` in odfbuild.yaml brings about, by names of datasets in lower case.

    `corrected` and `rebuilt` say which setting asks for that, `kept` why one does not apply. A
    rebuild that cannot be is `refused`.
    """

    corrected: Mapping[str, str] = field(default_factory=dict)
    rebuilt: Mapping[str, str] = field(default_factory=dict)
    kept: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, OdfbuildError] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.corrected or self.rebuilt or self.kept or self.refused)


NOTHING_BY_POLICY = ByPolicy()


class PlanInputs(Value):
    """What decisions are made from.

    Names are in lower case in `left_out`, `rebuilt`, `corrected`, `faults` and
    `unpinned`, the datasets of others that were never pulled.

    `faults` are what keeps datasets from being planned at all, `due` roots whose watermark the
    clock moves. `unforeseen` makes an error of an exception that came while one was decided.
    `place_of_check` tells where a check stands that is wrong. `by_policy` is what settings bring
    about: it is among `rebuilt`, `corrected` and `faults`, too. `takes_all` says why changelogs are
    computed over all records here, if they are. Datasets that are `unlimited`, in lower case, may
    read more than policies let them.
    """

    identities: ChainIdentities
    facts: Mapping[str, SourceFacts]
    slice_index: SliceIndex
    refusals: Mapping[str, OdfbuildError]
    left_out: Set[str]
    rebuilt: Set[str]
    place_of: Callable[[Definition], Place]
    memory: Memory
    policies: Sequence[Policy]
    engines: Engines
    engine_version: str
    faults: Mapping[str, OdfbuildError]
    unforeseen: Callable[[str, Exception], OdfbuildError]
    due: Set[str] = frozenset()
    corrected: Set[str] = frozenset()
    definitions: Sequence[Definition] = ()
    checks: Sequence[Declared] = ()
    place_of_check: Callable[[CheckError], Location | None] = lambda _: None
    unpinned: Set[str] = frozenset()
    by_policy: ByPolicy = NOTHING_BY_POLICY
    takes_all: str = ""
    unlimited: Set[str] = frozenset()
