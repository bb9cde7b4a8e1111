"""The input of the decisions of a plan."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import field
from typing import Any, Protocol

from odfbuild.errors import CheckError, Location, OdfbuildError
from odfbuild.ingest.facts import SourceFacts
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.identity import DatasetId
from odfbuild.plan.memory import Memory
from odfbuild.plan.places import FileOnly, Place
from odfbuild.plan.slices import SliceIndex
from odfbuild.project.model import Definition, Project
from odfbuild.store.corrections import Corrections
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


class Order(Protocol):
    """The part of a graph that planning needs."""

    @property
    def order(self) -> Sequence[str]:
        """Aliases of all defined datasets, inputs first."""
        ...

    @property
    def checks(self) -> Mapping[str, tuple[str, ...]]:
        """What the checks of datasets refer to."""
        ...


def _raised(_: str, error: Exception) -> OdfbuildError:
    raise error


class PlanFacts(Value, kw_only=True):
    """What is there: all that a plan follows from, whatever is asked for.

    `projections` are the committed chains by alias, `sources` what is known about the polling
    sources of root datasets by alias (absent: not looked at); `slices` answers for those inputs
    that moved, and `corrections` tells what is kept of a dataset by that name. `refusals` are
    sources that cannot be ingested by alias, and why. `faults` say what is wrong with datasets, by
    name, also with definitions and chains that cannot be read.
    `engine_version` is the release that would compute: another one than recorded is said, and no
    reason to run. `due` are roots whose watermark the clock moves. `memory` gives what was decided
    last time and learns what is decided now. `place_of` knows where things stand in definitions,
    `place_of_check` where checks are declared; `unforeseen` makes an error of an exception that
    came while one dataset was decided. `others` tells which datasets belong to others. `takes_all`
    says why changelogs are computed over all records here, if they are.
    """

    project: Project
    graph: Order
    projections: Mapping[str, Projection]
    slices: SliceIndex
    sources: Mapping[str, SourceFacts] = field(default_factory=dict)
    refusals: Mapping[str, OdfbuildError] = field(default_factory=dict)
    faults: Mapping[str, OdfbuildError] = field(default_factory=dict)
    due: Collection[str] = ()
    others: Others | None = None
    engine_version: str = ""
    memory: Memory = field(default_factory=lambda: Memory({}, {}))
    takes_all: str = ""
    corrections: Callable[[str], Corrections | None] = lambda _: None
    place_of: Callable[[Definition], Place] = FileOnly
    place_of_check: Callable[[CheckError], Location | None] = lambda _: None
    unforeseen: Callable[[str, Exception], OdfbuildError] = _raised


class Asked(Value, kw_only=True):
    """What is asked of a plan.

    Datasets that are `left_out` stay as they are, and their readers are planned accordingly; those
    that are `rebuilt` (in lower case, as `to_rebuild` gives them) begin anew, those that are
    `corrected` (by `to_correct`) follow a changed query now, and chains that are `deleted` (in the
    order of `to_delete`, with the branches that they are in) go. Settings can ask for the same
    (`by_policy`). Datasets that are `unlimited` may read more than policies let them.
    """

    left_out: Collection[str] = ()
    rebuilt: Collection[str] = ()
    corrected: Collection[str] = ()
    deleted: Mapping[str, Sequence[str]] = field(default_factory=dict)
    unlimited: Collection[str] = ()
    by_policy: ByPolicy = NOTHING_BY_POLICY


class PlanInputs(Value, kw_only=True):
    """What single decisions are made from: the facts, and what is asked, put together.

    Names are in lower case in `left_out`, `rebuilt`, `corrected`, `unlimited`, `faults` and
    `unpinned`, the datasets of others that were never pulled. `by_policy` is what settings bring
    about: it is among `rebuilt`, `corrected` and `faults`, too.
    """

    facts: PlanFacts
    identities: ChainIdentities
    left_out: Set[str]
    rebuilt: Set[str]
    corrected: Set[str]
    faults: Mapping[str, OdfbuildError]
    unpinned: Set[str]
    by_policy: ByPolicy
    unlimited: Set[str]
