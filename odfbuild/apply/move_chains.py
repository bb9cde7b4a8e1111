"""Move the blocks of chains between Git and the storage; no byte of a block changes.

Blocks are copied first, then odfbuild.yaml is changed, then the copies that nobody needs any more
are removed. Blocks that lie in a dataset's folder are read in either form, so whoever is killed in
between leaves chains that can be read, and the same command completes it.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Literal

from odfbuild.errors import PlanError
from odfbuild.odf.multihash import Multihash
from odfbuild.project.chain_place import set_chain_place
from odfbuild.store.claims import NOT_WAITING, Waiting, held_elsewhere
from odfbuild.store.files import make_folder, move_files, stage
from odfbuild.store.summaries import FOLDER
from odfbuild.values import Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odfbuild.project.model import Config
    from odfbuild.store.dataset import DatasetStore
    from odfbuild.store.workspace import Workspace

ChainPlace = Literal["git", "storage"]

_PORTION = 1_000


class MovedChain(Value):
    """A dataset, and how many of its blocks were copied to where they are to be."""

    name: str
    blocks: int


class MovedChains(Value, kw_only=True):
    """Where chains were moved to; `declared`: odfbuild.yaml said so before."""

    to: ChainPlace
    storage: str
    chains: tuple[MovedChain, ...]
    declared: bool


def move_chains(
    config: Config, to: ChainPlace, *, dry_run: bool = False, waiting: Waiting = NOT_WAITING
) -> MovedChains:
    """Move all chains of the project; with `dry_run` only say what would be copied.

    `PlanError` E0373 when there is no storage, `StaleHeadError` while others work on a dataset,
    `ChainError` E0675 when odfbuild.yaml cannot be changed, `IntegrityError` for a damaged chain,
    `EnvironmentProblem` E0911 when the storage cannot be used.
    """
    if config.storage is None:
        raise PlanError(
            "chains cannot be moved: this project has no storage",
            code="E0373",
            help="name one under `content` of odfbuild.yaml: `storage: s3://bucket/prefix`, "
            "`gs:`, `az:`, or a folder that all clones can reach",
        )
    # Whatever the file says, blocks may be in either place: an earlier move may have been cut off.
    workspace = replace(config.on_head, chains="storage").workspace()
    names = [*dict.fromkeys((*workspace.aliases(), *(name for name, _ in workspace.in_branches())))]
    stores = [workspace.dataset(name) for name in names]
    declared = config.chains == to
    if dry_run:
        return MovedChains(
            to=to,
            storage=config.storage,
            chains=tuple(MovedChain(each.name, _waiting(each, to)) for each in stores),
            declared=declared,
        )
    with workspace.claim(names, waiting) as claim:
        for name, holder in claim.held.items():
            raise held_elsewhere(name, holder)
        moved = []
        for store in stores:
            copied = _waiting(store, to)
            (_to_storage if to == "storage" else _to_folder)(store)
            moved.append(MovedChain(store.name, copied))
        if not declared:
            set_chain_place(config, to)
        for store in stores:
            _clear(workspace, store, to)
    return MovedChains(to=to, storage=config.storage, chains=tuple(moved), declared=declared)


def _waiting(store: DatasetStore, to: ChainPlace) -> int:
    """How many blocks have to be copied."""
    if to == "storage":
        return sum(1 for _ in _in_folder(store))
    here = set(_in_folder(store))
    return len({each for chain in _chains(store) for each in chain} - here)


def _in_folder(store: DatasetStore) -> Iterator[Multihash]:
    folder = store.path / "blocks"
    for file in sorted(folder.iterdir()) if folder.is_dir() else ():
        if (found := Multihash.of_file(file.name)) is not None:
            yield found


def _chains(store: DatasetStore) -> list[list[Multihash]]:
    """The blocks of each reference, oldest first."""
    heads = dict.fromkeys(store.references().values())
    return [[hash for hash, _ in store.walk(head)][::-1] for head in heads]


def _portions(blocks: Sequence[Multihash]) -> Iterator[list[Multihash]]:
    rest = iter(blocks)
    while some := list(islice(rest, _PORTION)):
        yield some


def _to_storage(store: DatasetStore) -> None:
    """Copy all blocks that the folder has, those of no history included, and write summaries."""
    blocks, summaries = store.blocks, store.summaries
    if blocks is None or summaries is None:
        raise AssertionError("the storage keeps the chains of this workspace")
    here = set(_in_folder(store))
    for chain in _chains(store) if here else ():
        for some in _portions(chain):
            blocks.put([store.read_raw(each) for each in some])
        here.difference_update(chain)
    for each in sorted(here):
        blocks.put([store.read_raw(each)])
    for reference, head in store.references().items():
        summaries.remove(reference)
        summaries.follow(reference, head)


def _to_folder(store: DatasetStore) -> None:
    """Copy all blocks of histories to the folder."""
    folder = store.path / "blocks"
    make_folder(folder)
    here = set(_in_folder(store))
    for chain in _chains(store):
        for some in _portions([each for each in chain if each not in here]):
            moves = {
                stage(folder, store.read_raw(each), durable=False): folder / str(each)
                for each in some
            }
            move_files(moves, folder)
        here.update(chain)


def _clear(workspace: Workspace, store: DatasetStore, to: ChainPlace) -> None:
    """Remove the copies that are not needed in the new form."""
    if to == "storage":
        for each in list(_in_folder(store)):
            (store.path / "blocks" / str(each)).unlink()
        with contextlib.suppress(OSError):
            (store.path / "blocks").rmdir()
        return
    shutil.rmtree(store.path / "info" / FOLDER, ignore_errors=True)
    shutil.rmtree(workspace.cache / "chains" / store.name, ignore_errors=True)
