"""Find datasets and blocks by the names and hashes that users give."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from odfbuild.errors import PlanError
from odfbuild.wording import did_you_mean

if TYPE_CHECKING:
    from odfbuild.odf.multihash import Multihash
    from odfbuild.store.as_of import PointInTime
    from odfbuild.store.dataset import DatasetStore
    from odfbuild.store.workspace import Workspace


def existing(workspace: Workspace, name: str) -> str:
    """The alias of a dataset that has a chain, in its committed spelling; `PlanError` otherwise.

    `name` may be any reference: a DID, or what the dataset was pulled by. `ChainError` E0620 when
    there is another alias that differs only in case.
    """
    from odfbuild.store.projections import same_but_for_case

    aliases = workspace.aliases()
    if name.lower() not in map(str.lower, aliases):
        name = _by_reference(workspace, name) or name
    found = one_of(
        aliases,
        name,
        what="chain of",
        help="`odfbuild ls` lists all datasets; `odfbuild apply` creates the chains of new ones",
    )
    ambiguous = same_but_for_case(each for each in aliases if each.lower() == found.lower())
    if ambiguous:
        raise ambiguous[found]
    return found


def _by_reference(workspace: Workspace, text: str) -> str | None:
    """The dataset with an identity, or the one that was pulled by this reference."""
    from odfbuild.exchange.repositories.dataset_config import read_config
    from odfbuild.odf.identity import DatasetId

    _, found, did = text.rpartition("did:")
    if found:
        try:
            return workspace.resolve(DatasetId.parse(f"did:{did}"))
        except ValueError:
            return None
    if "/" not in text:
        return None
    for alias in workspace.aliases():
        pulled = read_config(workspace.dataset(alias).folder).pull_aliases
        if text.lower() in map(str.lower, pulled):
            return alias
    return None


def one_of(
    names: Iterable[str],
    name: str,
    *,
    what: str = "dataset",
    help: str = "`odfbuild ls` lists them all",
) -> str:
    """The one of `names` that is `name` but for its case; `PlanError` otherwise."""
    aliases = {each.lower(): each for each in names}
    found = aliases.get(name.lower())
    if found is not None:
        return found
    raise PlanError(
        f"there is no {what} '{name}' here",
        code="E0301",
        dataset=name,
        help=did_you_mean(name, aliases.values(), help),
    )


def block_in(store: DatasetStore, text: str, *, abandoned: bool = False) -> Multihash:
    """The block of a chain that `text` names: its hash, or the beginning or end of it.

    `abandoned` also finds blocks that are on disk and no longer part of the chain. `PlanError` when
    there is none, or more than one.
    """
    head = store.head()
    if abandoned:
        hashes = list(store.stored("blocks"))
    else:
        hashes = [hash for hash, _ in store.walk(head)] if head is not None else []
    found = [h for h in hashes if str(h).startswith(text) or str(h).endswith(text)]
    if len(found) == 1:
        return found[0]
    problem = "is more than one block" if found else "is no block"
    raise PlanError(
        f"'{text}' {problem} of '{store.name}'",
        code="E0332",
        dataset=store.name,
        help=f"`odfbuild log {store.name}` lists them",
    )


def moment_in(workspace: Workspace, text: str, dataset: str | None = None) -> PointInTime:
    """The system time that `text` names: a time, a date (midnight UTC), or a block.

    A block is one of `dataset` if that is given, else of whichever dataset has it. `PlanError` when
    it is none of these, or more than one block.
    """
    from odfbuild.odf.timestamp import Timestamp
    from odfbuild.store.as_of import PointInTime

    for time in (text, f"{text}T00:00:00Z"):
        try:
            return PointInTime(Timestamp.parse(time))
        except ValueError:
            continue
    if dataset is not None:
        store = workspace.dataset(dataset)
        block = block_in(store, text)
        return PointInTime(store.read_block(block).system_time, dataset, block)
    found = []
    for name in workspace.aliases():
        store = workspace.dataset(name)
        if any(str(h).startswith(text) or str(h).endswith(text) for h in store.stored("blocks")):
            found.append(name)
    if len(found) == 1:
        return moment_in(workspace, text, found[0])
    raise PlanError(
        f"'{text}' is neither a time nor a block"
        if not found
        else f"'{text}' is a block of '{found[0]}' and of '{found[1]}'",
        code="E0661",
        help="give a time, such as 2026-01-31T08:00:00Z, or more of the hash of a block, as "
        "`odfbuild log` shows it",
    )
