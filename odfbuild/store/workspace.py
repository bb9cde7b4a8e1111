"""All datasets of a project: found by folder, projected through the cache, claimed, created.

A dataset with the alias `name` lives in `<state>/name`, one with `account/name` in
`<state>/account/name`. A folder without `refs/head` is not a dataset. Two aliases that differ only
in case are the same alias. In a branch, a dataset is what `refs/<branch>` names, and `refs/head`
where there is no such file.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.errors import OdfbuildError
from odfbuild.odf.identity import DatasetAlias, DatasetId, is_name
from odfbuild.odf.multihash import Multihash
from odfbuild.python_gc import paused_collector
from odfbuild.store.branches import (
    HEAD,
    BranchInfo,
    BranchRef,
    branch_cache,
    references,
    unknown_branch,
)
from odfbuild.store.cache import ProjectionCache, project
from odfbuild.store.claims import NOT_WAITING, Claim, Waiting, claim_within, forget, holders
from odfbuild.store.committed import Committed
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.disposable import prepare_cache_folder
from odfbuild.store.files import names_like
from odfbuild.store.lock_holders import LockHolder
from odfbuild.store.projections import Projections, not_apart, raise_any, same_but_for_case
from odfbuild.store.references import children, folders, parse_head, reference_text

if TYPE_CHECKING:
    from odfbuild.odf.chain.projection import Projection
    from odfbuild.odf.model import DatasetKind, MetadataEvent
    from odfbuild.odf.timestamp import Timestamp
    from odfbuild.store.branches import Limit
    from odfbuild.store.dataset import Elsewhere
    from odfbuild.store.deleted import Deleted
    from odfbuild.store.keys import PrivateKeys
    from odfbuild.store.personal import Personal
    from odfbuild.store.storage import Storage


class Workspace:
    """Datasets below `state`, their private keys in `keys`, disposable files in `cache`.

    `storage` keeps their objects for all clones of the project; `None`: `state` has them all, but
    for what was published `elsewhere`. With a `branch` all is read as it is there, and what is
    appended goes there, under a `limit` if its inputs are read in part; a branch that is begun
    remembers the `git_branch` that it was begun on. With `stored_chains` the storage has the blocks
    of chains, and `cache` copies of them; if it is `offline`, these alone are read. `personal` says
    which columns are encrypted.
    Methods may be called from several threads at once.
    """

    def __init__(
        self,
        state: Path,
        keys: Path,
        cache: Path,
        storage: Storage | None = None,
        elsewhere: Elsewhere | None = None,
        branch: str | None = None,
        limit: Limit | None = None,
        git_branch: str | None = None,
        personal: Personal | None = None,
        *,
        stored_chains: bool = False,
        offline: bool = False,
    ) -> None:
        self.state = state
        self.keys = keys
        self.cache = cache
        self.storage = storage
        self.elsewhere = elsewhere
        self.branch = branch
        self.limit = limit
        self.git_branch = git_branch
        self.stored_chains = stored_chains and storage is not None
        self.offline = offline
        self.personal = personal
        self._references = (HEAD,) if branch is None else (branch, HEAD)
        own = branch_cache(cache, branch) if branch is not None else None
        self._projections = ProjectionCache(cache, own)
        self._side_cars = (own or cache) / "side-cars"
        self._stores: dict[str, DatasetStore] = {}
        self._by_id: dict[DatasetId, str] = {}
        self._mutex = threading.RLock()

    def under(self, limit: Limit | None) -> Workspace:
        """The same, where what is appended to the branch is computed over part of its inputs."""
        found = (self.state, self.keys, self.cache, self.storage, self.elsewhere, self.branch)
        if limit == self.limit:
            return self
        return Workspace(
            *found,
            limit,
            personal=self.personal,
            stored_chains=self.stored_chains,
            offline=self.offline,
        )

    # --- Finding ---

    def aliases(self) -> list[str]:
        """Aliases of all datasets, sorted."""
        return sorted(self.heads())

    def heads(self) -> dict[str, bytes]:
        """Text of the head of every dataset, by alias in its committed spelling."""
        return self.resolved()[0]

    def resolved(self) -> tuple[dict[str, bytes], frozenset[str]]:
        """What `heads` gives, and the datasets that have a reference of the branch."""
        heads: dict[str, bytes] = {}
        held = []
        for name, text, in_branch in self._children():
            heads[name] = text
            if in_branch:
                held.append(name)
        return heads, frozenset(held)

    def _children(self) -> Iterator[tuple[str, bytes, bool]]:
        for name, text, in_branch in children(str(self.state), self.branch):
            if text is not None:
                yield name, text, in_branch
                continue
            for inner, deeper, also in children(f"{self.state}/{name}", self.branch):
                if deeper is not None:
                    yield f"{name}/{inner}", deeper, also

    def find(self, alias: str) -> str | None:
        """The committed spelling of `alias`, whose case does not count; `None`: no such dataset."""
        parts = alias.split("/")
        if len(parts) > 2 or not all(map(is_name, parts)):
            return None
        if self._head_text(alias) is not None:
            return alias
        folder, found = self.state, []
        for part in parts:
            match = next((n for n in names_like(folder, part) if (folder / n).is_dir()), None)
            if match is None:
                return None
            folder = folder / match
            found.append(match)
        name = "/".join(found)
        return name if self._head_text(name) is not None else None

    def _head_text(self, alias: str) -> bytes | None:
        for reference in self._references:
            text = reference_text(f"{self.state}/{alias}", reference)
            if text is not None:
                return text
        return None

    def branches(self) -> dict[str, dict[str, BranchRef]]:
        """All branches: by name, the datasets that are in it.

        `BranchError` E1104 where what is known of one is damaged, `IntegrityError` E0805 where the
        reference is.
        """
        found: dict[str, dict[str, BranchRef]] = {}
        for alias, branch in self.in_branches():
            store = self._store(alias)
            head = store.branch_head(branch)
            if head is None:
                continue  # it was deleted just now
            known = BranchInfo.read(store.folder, alias, branch)
            found.setdefault(branch, {})[alias] = BranchRef(
                head=head, base=known.base, created=known.created, limit=known.limit
            )
        return dict(sorted(found.items()))

    def branch_names(self) -> set[str]:
        """Names of all branches."""
        return {branch for _, branch in self.in_branches()}

    def branches_of(self, alias: str) -> list[str]:
        """The branches that a dataset is in."""
        return sorted(set(references(str(self.dataset(alias).folder))) - {HEAD})

    def in_branches(self) -> Iterator[tuple[str, str]]:
        """Datasets in branches, with the name of the branch, by alias."""
        for name in sorted(folders(self.state)):
            here = list(references(f"{self.state}/{name}"))
            yield from ((name, each) for each in here if each != HEAD)
            for inner in () if here else sorted(folders(self.state / name)):
                below = references(f"{self.state}/{name}/{inner}")
                yield from ((f"{name}/{inner}", each) for each in below if each != HEAD)

    def check_branch(self) -> None:
        """`BranchError` E1102 when no dataset is in the branch of this workspace."""
        if self.branch is None:
            return
        known = self.branch_names()
        if self.branch not in known:
            raise unknown_branch(self.branch, known)

    def dataset(self, alias: str) -> DatasetStore:
        """The store of a dataset, which need not exist; `ValueError` if `alias` is not an alias."""
        with self._mutex:
            store = self._stores.get(alias)
            if store is None:
                name = self.find(alias) or str(DatasetAlias.parse(alias))
                store = self._stores[alias] = self._store(name)
            return store

    def _store(self, name: str) -> DatasetStore:
        """The store of a dataset by its committed spelling."""
        store = self._stores.get(name)
        if store is None:
            store = self._stores[name] = self._made(name)
        return store

    def _made(self, name: str) -> DatasetStore:
        store = DatasetStore(
            f"{self.state}/{name}",
            name,
            self.storage,
            self.elsewhere,
            self.branch,
            self.limit,
            self.git_branch,
        )
        store.personal = self.personal
        if self.stored_chains and self.storage is not None:
            from odfbuild.store.stored_blocks import StoredBlocks
            from odfbuild.store.summaries import SignedSummaries

            copies = self.cache / "chains" / name
            store.blocks = StoredBlocks(self.storage, copies, offline=self.offline)
            store.summaries = SignedSummaries(store, self.private_keys)
        return store

    @cached_property
    def private_keys(self) -> PrivateKeys:
        """Private keys of datasets, wherever they are."""
        from odfbuild.store.keys import PrivateKeys

        return PrivateKeys(self.keys)

    # --- Projections ---

    def projection(self, alias: str) -> Projection | None:
        """What the chain of `alias` says at its head; `None` when there is no such dataset."""
        name = self.find(alias)
        if name is None:
            return None
        with self._mutex:
            self._projections.load()
        head = self._head_text(name)
        return self._project(name, head) if head is not None else None

    def projections(self, aliases: Iterable[str] | None = None) -> dict[str, Projection]:
        """Projections by alias, of all datasets or of those `aliases` that exist, sorted.

        Raises `IntegrityError` for a damaged chain, E0381 for one that is there twice, E0620 for
        aliases that differ only in case; `Errors` for several.
        """
        heads = self.heads()
        if aliases is None:
            return dict(self.projections_at(heads))
        wanted = {alias.lower() for alias in aliases}
        heads = {alias: head for alias, head in heads.items() if alias.lower() in wanted}
        states, faults = self._project_all(heads)
        faults |= not_apart({name: state.dataset_id.key for name, state in states.items()})
        faults |= same_but_for_case(heads)
        raise_any(faults)
        return states

    def readable(self) -> Mapping[str, Projection]:
        """Projections of all datasets whose chains can be read."""
        found = self.projections_at(self.heads())
        return found.without(found.faults())

    def projections_at(self, heads: Mapping[str, bytes]) -> Projections:
        """Projections of all datasets at those `heads`, which `heads` gave.

        Nothing is read before one is looked at, which raises what is wrong with its chain.
        """
        return Projections(heads, self._project, self._read_chains)

    def _read_chains(self, heads: Mapping[str, bytes]) -> dict[str, OdfbuildError]:
        """Project the chains whose projections at these `heads` are not known; what is wrong."""
        with self._mutex:
            self._projections.load()
            self._projections.keep_only(heads)
        unknown = {a: h for a, h in heads.items() if not self._projections.has(a, h)}
        _, faults = self._project_all(unknown)
        keys = self._projections.identities()
        faults |= not_apart({a: keys[a] for a in keys if a not in faults})
        return faults | same_but_for_case(heads)

    def _project_all(
        self, heads: Mapping[str, bytes]
    ) -> tuple[dict[str, Projection], dict[str, OdfbuildError]]:
        """The projections of chains that can be read, and what is wrong with the others."""
        with self._mutex:
            self._projections.load()
        result: dict[str, Projection] = {}
        faults: dict[str, OdfbuildError] = {}
        with paused_collector():
            for alias in sorted(heads):
                try:
                    result[alias] = self._project(alias, heads[alias])
                except OdfbuildError as error:
                    faults[alias] = error
        with self._mutex:
            self._projections.save()
        return result, faults

    def resolve(self, dataset_id: DatasetId) -> str | None:
        """Alias of the dataset with that identity; `None` when it has no chain here."""
        with self._mutex:
            alias = self._by_id.get(dataset_id)
        if alias is not None:
            projection = self.projection(alias)
            if projection is not None and projection.dataset_id == dataset_id:
                return alias
        states, _ = self._project_all(self.heads())
        found = {projection.dataset_id: name for name, projection in states.items()}
        with self._mutex:
            self._by_id = found
        return found.get(dataset_id)

    def _project(self, alias: str, text: bytes) -> Projection:
        known = self._projections.get(alias, text)
        if known is None:
            with self._mutex:
                store = self._store(alias)
            head = parse_head(text, alias, f"{store.folder}/refs/{self._references[0]}")
            known = project(store, head, self._nearest(store, head, alias))
            with self._mutex:
                self._projections.put(alias, text, known)
        return known

    def _nearest(self, store: DatasetStore, head: Multihash, alias: str) -> Projection | None:
        """A projection from which that at `head` can be reached with few blocks."""
        latest = self._projections.latest(alias)
        if store.summaries is None:
            return latest
        said = store.summaries.known(head)
        return said.projection if said and (said.head == head or latest is None) else latest

    def committed(self, alias: str, state: Projection | None) -> Committed:
        """The records of a dataset up to the head of `state`."""
        store = self.dataset(alias)
        head = state.head if state else None
        return Committed(store, head, self._side_cars / store.name)

    def side_cars(self, alias: str) -> Path:
        """The folder for the side-cars of a dataset."""
        return self._side_cars / self.dataset(alias).name

    # --- Working ---

    def claim(self, aliases: Iterable[str], waiting: Waiting = NOT_WAITING) -> Claim:
        """Claim datasets for this process, those that nobody else holds after `waiting` for them.

        Works for datasets that do not exist yet, too. Use as a context manager.
        """
        prepare_cache_folder(self.cache)
        return claim_within(self.cache / "locks", aliases, waiting)

    def holders(self, aliases: Iterable[str]) -> list[LockHolder]:
        """Other processes that work on any of these datasets now."""
        return holders(self.cache / "locks", aliases)

    def forget_claim(self, alias: str) -> None:
        """Let a dataset be claimed again, whoever holds it; see `claims.forget`."""
        forget(self.cache / "locks", alias)

    def create(
        self,
        alias: str,
        kind: DatasetKind,
        events: Sequence[MetadataEvent],
        system_time: Timestamp,
        *,
        objects: Sequence[tuple[Path, Multihash]] = (),
        checkpoints: Sequence[tuple[Path, Multihash]] = (),
        identity: tuple[DatasetId, bytes] | None = None,
    ) -> DatasetStore:
        """Create a dataset with a fresh `identity`: Seed and `events`, visible in one step.

        `identity` is one of `keys.new_pair`, where it is known before. `objects` are staged data
        files, `checkpoints` staged checkpoint files; both are taken over. What an earlier creation
        left unfinished is cleared away first. `StaleHeadError` E0701 when the dataset exists or is
        just being created, `ChainError` when an event breaks a rule; nothing is left behind then.
        """
        from odfbuild.store.creation import create_dataset

        store = self._made(str(DatasetAlias.parse(alias)))
        dataset_id = create_dataset(
            self.state, self.keys, store, kind, events, system_time, objects, checkpoints, identity
        )
        with self._mutex:
            self._stores[alias] = store
            self._by_id[dataset_id] = alias
        return store

    def delete(self, alias: str, head: Multihash, dataset_id: DatasetId) -> Deleted:
        """Put a dataset into the bin, which `gc` empties; objects in shared storage stay.

        `StaleHeadError` E0701 when its head is not `head`; nothing is changed then.
        """
        from odfbuild.store.deleted import delete_dataset

        deleted = delete_dataset(self.state, self.dataset(alias), head, dataset_id)
        self._forget_stores()
        return deleted

    def deleted(self) -> list[Deleted]:
        """Datasets in the bin, the newest last."""
        from odfbuild.store.deleted import deleted_datasets

        return deleted_datasets(self.state)

    def restore(self, deleted: Deleted) -> None:
        """Take a dataset out of the bin; `PlanError` E0393 when its name is in use."""
        from odfbuild.store.deleted import restore_dataset

        restore_dataset(self.state, deleted)
        self._forget_stores()

    def rename(self, old: str, new: str) -> None:
        """Give the dataset `old` the alias `new`; nothing when that was done already.

        Its identity and history stay the same. `StaleHeadError` E0701 when both names are in use,
        or none is; `ChainError` when the alias cannot be used.
        """
        from odfbuild.store.creation import rename_dataset

        rename_dataset(self.state, old, new)
        self._forget_stores()

    def _forget_stores(self) -> None:
        with self._mutex:
            self._stores.clear()
            self._by_id.clear()
