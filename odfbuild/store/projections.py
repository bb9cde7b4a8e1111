"""Projections of datasets by alias, and what is wrong with chains that stand side by side."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from odfbuild.errors import ChainError, IntegrityError, OdfbuildError, together
from odfbuild.odf.identity import DatasetId

if TYPE_CHECKING:
    from odfbuild.odf.chain.projection import Projection

SAME_IDENTITY = "'{}' and '{}' have one identity: a chain was copied"
IDENTITY_HELP = (
    "restore the original chain (git checkout, a backup), or move the copy out of the "
    "folder of chains"
)


class Projections(Mapping[str, "Projection"]):
    """Projections by alias, sorted; nothing is read before one is asked for.

    While all is as it was when the last plan was made, none is. `project` gives the projection of a
    dataset at a head, `read_chains` what is wrong with chains at these heads.
    """

    def __init__(
        self,
        heads: Mapping[str, bytes],
        project: Callable[[str, bytes], Projection],
        read_chains: Callable[[Mapping[str, bytes]], Mapping[str, OdfbuildError]],
    ) -> None:
        self._project = project
        self._read_chains = read_chains
        self._heads = {alias: heads[alias] for alias in sorted(heads)}
        self._found: dict[str, Projection] = {}
        self._faults: Mapping[str, OdfbuildError] | None = None

    def faults(self) -> Mapping[str, OdfbuildError]:
        """What is wrong with chains, by alias; reads what has to be read of any."""
        if self._faults is None:
            self._faults = self._read_chains(self._heads)
        return self._faults

    @property
    def have_twins(self) -> bool:
        """Whether aliases differ only in case, which `faults` tells."""
        return len({alias.lower() for alias in self._heads}) < len(self._heads)

    def read(self) -> None:
        """Read what has to be read of any chain; what is wrong with them is raised here."""
        raise_any(self.faults())

    def without(self, aliases: Container[str]) -> Projections:
        """The others."""
        heads = {alias: head for alias, head in self._heads.items() if alias not in aliases}
        rest = Projections(heads, self._project, self._read_chains)
        rest._faults = {}
        return rest

    def __getitem__(self, alias: str) -> Projection:
        found = self._found.get(alias)
        if found is None:
            head = self._heads[alias]
            if alias in self.faults():
                raise self.faults()[alias]
            found = self._found[alias] = self._project(alias, head)
        return found

    def __contains__(self, alias: object) -> bool:
        return alias in self._heads

    def __iter__(self) -> Iterator[str]:
        return iter(self._heads)

    def __len__(self) -> int:
        return len(self._heads)


def raise_any(faults: Mapping[str, OdfbuildError]) -> None:
    """Raise what is wrong with any chain, each thing once."""
    if faults:
        raise together(list({id(each): each for each in faults.values()}.values()))


def not_apart(identities: Mapping[str, bytes]) -> dict[str, OdfbuildError]:
    """E0381 for all aliases that have a public key in common."""
    if len(set(identities.values())) == len(identities):
        return {}
    faults: dict[str, OdfbuildError] = {}
    seen: dict[bytes, str] = {}
    for alias, key in sorted(identities.items()):
        other = seen.setdefault(key, alias)
        if other != alias:
            faults[alias] = IntegrityError(
                SAME_IDENTITY.format(other, alias),
                code="E0381",
                dataset=alias,
                notes=(str(DatasetId(key)),),
                help=IDENTITY_HELP,
            )
            faults.setdefault(other, faults[alias])
    return faults


def same_but_for_case(aliases: Iterable[str]) -> dict[str, OdfbuildError]:
    """E0620 for all aliases that are the same but for their case."""
    faults: dict[str, OdfbuildError] = {}
    seen: dict[str, str] = {}
    for alias in sorted(aliases):
        other = seen.setdefault(alias.lower(), alias)
        if other != alias:
            faults[alias] = faults[other] = ChainError(
                f"'{other}' and '{alias}' are the same alias: case does not count",
                code="E0620",
                dataset=alias,
                help="rename or remove one of the two folders",
            )
    return faults
