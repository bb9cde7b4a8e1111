"""Verify integrity: heads, blocks, links, rules, and all objects.

Reads all files, never the cache. Finds all damage it can: behind a broken block the chain is taken
up again at the one block that can precede it. Changes nothing; what is wrong is returned. Sources:
Open Data Fabric, "Metadata Chain"; reference behaviour, "verify".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.errors import (
    ChainError,
    Code,
    EnvironmentProblem,
    IntegrityError,
    RepositoryError,
)
from odfbuild.inspect.verify.finding import Finding, fault
from odfbuild.odf.chain.step import Link
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import (
    AddData,
    DataSlice,
    ExecuteTransform,
    MetadataBlock,
    Seed,
    SetVocab,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.records.intact import (
    RESTORE,
    Damage,
    Fault,
    check_checkpoint,
    check_slice,
    damage_of,
)
from odfbuild.store.branches import HEAD
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.files import read_inside
from odfbuild.store.projections import IDENTITY_HELP, SAME_IDENTITY, same_but_for_case
from odfbuild.store.storage import ObjectKind
from odfbuild.store.summaries import summary_file

if TYPE_CHECKING:
    from odfbuild.inspect.verify.executors import Executors
    from odfbuild.store.workspace import Workspace

_RESTORE_BLOCK = (
    "restore the file: git checkout, or a backup; or remove the folder of the dataset and pull it "
    "again, if it is published"
)
_RENAME = "rename or remove one of the two folders"
_BROKEN_CHAIN = (
    "the program that wrote the chain broke its rules; "
    "go back to a head before this block (git checkout), or pull the dataset again"
)


def verify_integrity(
    workspace: Workspace,
    aliases: Iterable[str] | None = None,
    *,
    logical: bool = False,
    executors: Executors | None = None,
) -> tuple[Finding, ...]:
    """Everything that is wrong with these datasets (all of them by default), in order of alias.

    `logical` also recomputes the logical hash of every slice. Objects are read by several threads,
    and those that are only in the storage by `executors`, if there are any.
    """
    names = workspace.aliases() if aliases is None else list(aliases)
    findings: list[Finding] = []
    owners: dict[DatasetId, str] = {}
    twins = same_but_for_case(names)
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        pending = []
        for name in names:
            store = workspace.dataset(name)
            try:
                wrong, chain = read_chain(store)
                wrong += _copied(store, chain, owners)
                if name in twins:
                    wrong.append(_finding(store, "E0620", str(twins[name]), _RENAME))
                wrong += _fetch(store, chain)
            except Exception as error:  # whatever is wrong with one, the others are looked at
                findings.append(fault(workspace.cache, name, error))
                continue
            objects = _submit_objects(pool, store, chain, logical, executors)
            pending.append((name, wrong, objects))
        for name, wrong, objects in pending:
            findings += wrong
            try:
                found = [each for future in objects for each in future.result()]
            except EnvironmentProblem:
                raise  # it would stop the others, too
            except Exception as error:
                found = [fault(workspace.cache, name, error)]
            findings += sorted(found, key=lambda each: each.sequence_number or 0)
    return tuple(findings)


def _copied(
    store: DatasetStore, chain: Sequence[Link], owners: dict[DatasetId, str]
) -> Iterator[Finding]:
    """Whether another dataset has the identity of this one, by the `owners` seen so far."""
    seed = chain[0][1].event if chain else None
    if isinstance(seed, Seed):
        other = owners.setdefault(seed.dataset_id, store.name)
        if other != store.name:
            message = SAME_IDENTITY.format(other, store.name)
            yield _finding(store, "E0381", message, IDENTITY_HELP, path=store.path)


def read_chain(store: DatasetStore) -> tuple[list[Finding], list[Link]]:
    """What is wrong with head and blocks, and the readable blocks of the chain, oldest first."""
    try:
        head = store.head()
    except IntegrityError as error:
        path = store.path / "refs" / "head"
        return [_finding(store, error.code, error.message, _RESTORE_BLOCK, path=path)], []
    if head is None:
        message = f"'{store.name}' has no head: there is no such dataset"
        return [_finding(store, "E0804", message, "`odfbuild ls` lists them all")], []
    findings, intact = _check_files(store)
    if store.blocks is not None:
        findings += _read_stored(store, head, intact)
    chain: list[Link] = []
    broken = False
    current: Multihash | None = head
    after: MetadataBlock | None = None
    while current is not None:
        block = intact.get(current)
        if block is None:
            broken = True
            if not any(finding.block == current for finding in findings):
                findings.append(_missing(store, current, after))
            current, block = _preceding(intact, after, {hash for hash, _ in chain})
            if current is None or block is None:
                break
        chain.append((current, block))
        current, after = block.prev_block_hash, block
    chain.reverse()
    if not broken:
        findings += _replay(store, chain)
        findings += _check_summary(store, chain)
    return findings, chain


def _check_files(store: DatasetStore) -> tuple[list[Finding], dict[Multihash, MetadataBlock]]:
    """Every file of `blocks/`: its bytes hash to its name, and it is a block."""
    from odfbuild.odf.flatbuffers.form import decode_block

    findings: list[Finding] = []
    intact: dict[Multihash, MetadataBlock] = {}
    folder = store.path / "blocks"
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        name = Multihash.of_file(path.name)
        if name is None:
            continue  # no chain can refer to it
        try:
            data = read_inside(str(path))
        except FileNotFoundError:  # a link that leads elsewhere
            data = b""
        actual = Multihash.sha3_256(data)
        try:
            block = decode_block(data)
        except ValueError as error:
            block, reason = None, str(error)
        if actual != name:
            findings.append(
                _finding(
                    store,
                    "E0801",
                    f"block {name} does not match its hash: its bytes hash to {actual}",
                    _RESTORE_BLOCK,
                    block=name,
                    number=block.sequence_number if block else None,
                    path=path,
                )
            )
        elif block is None:
            findings.append(
                _finding(
                    store,
                    "E0803",
                    f"block {name} was written like this, but cannot be read: {reason}",
                    _BROKEN_CHAIN,
                    block=name,
                    path=path,
                )
            )
        else:
            intact[name] = block
    return findings, intact


def _read_stored(
    store: DatasetStore, head: Multihash, intact: dict[Multihash, MetadataBlock]
) -> list[Finding]:
    """Take the blocks of the chain that are in the storage among those that are intact."""
    current: Multihash | None = head
    while current is not None:
        if current not in intact:
            try:
                data = store.read_raw(current, recent=False)
                intact[current] = store.decode(current, data)
            except IntegrityError as error:
                if error.code == Code.BLOCK_MISSING:
                    return []  # what lacks is told with the block that refers to it
                return [
                    _finding(
                        store,
                        error.code,
                        error.message,
                        error.help or _RESTORE_BLOCK,
                        block=current,
                        path=store.block_path(current),
                    )
                ]
        current = intact[current].prev_block_hash
    return []


def _check_summary(store: DatasetStore, chain: list[Link]) -> list[Finding]:
    """Whether the summary that lies beside the head is what the blocks amount to."""
    from odfbuild.odf.chain.summary import ChainSummary

    if store.summaries is None:
        return []
    reference = store.branch if store.branch and store.branch_head(store.branch) else HEAD
    try:
        found = store.summaries.read(reference)
    except IntegrityError as error:
        return [_finding(store, error.code, error.message, error.help or "")]
    if found is None:
        return []
    hashes = [hash for hash, _ in chain]
    said = found.summary
    known = chain[: hashes.index(said.head) + 1] if said.head in hashes else []
    if known and ChainSummary.of(None, known) == said:
        return []
    return [
        _finding(
            store,
            "E0673",
            f"the summary of '{store.name}' is not what its blocks amount to",
            "run `odfbuild chains move --to storage`, which writes it again; whoever wrote this "
            "one has the private key of the dataset, or nobody signed it",
            path=summary_file(store.folder, reference),
        )
    ]


def _missing(store: DatasetStore, block: Multihash, after: MetadataBlock | None) -> Finding:
    referrer = "the head" if after is None else f"block number {after.sequence_number}"
    return _finding(
        store,
        Code.BLOCK_MISSING,
        f"block {block} is missing; {referrer} refers to it",
        _RESTORE_BLOCK,
        block=block,
        number=after.sequence_number - 1 if after else None,
        path=store.block_path(block),
    )


def _preceding(
    intact: dict[Multihash, MetadataBlock], after: MetadataBlock | None, seen: set[Multihash]
) -> tuple[Multihash | None, MetadataBlock | None]:
    """The block before the broken one, if the folder holds exactly one that it can be."""
    if after is None:
        number = max((b.sequence_number for b in intact.values()), default=-1)
    else:
        number = after.sequence_number - 2
    candidates = [
        (hash, block)
        for hash, block in intact.items()
        if block.sequence_number == number and hash not in seen
    ]
    return candidates[0] if len(candidates) == 1 else (None, None)


def _replay(store: DatasetStore, chain: list[Link]) -> list[Finding]:
    """Append the chain again in mind, with every rule; stops at the first block that breaks one."""
    from odfbuild.odf.chain.rules import check
    from odfbuild.odf.chain.state import advance

    state = None
    for hash, block in chain:
        try:
            check(state, block)
            state = advance(state, hash, block)
        except ChainError as error:
            return [
                _finding(
                    store,
                    error.code,
                    f"block {hash} breaks a rule of the chain: {error.message}",
                    _BROKEN_CHAIN,
                    block=hash,
                    number=block.sequence_number,
                    path=store.block_path(hash),
                )
            ]
    return []


def _fetch(store: DatasetStore, chain: list[Link]) -> list[Finding]:
    """Bring what a repository has of a dataset, all at once; why that was not possible."""
    if store.elsewhere is None or not store.elsewhere.has(store):
        return []
    wanted: dict[ObjectKind, list[Multihash]] = {"data": [], "checkpoints": []}
    for _, block in chain:
        if isinstance(event := block.event, AddData | ExecuteTransform):
            wanted["data"] += [event.new_data.physical_hash] if event.new_data else []
            checkpoint = event.new_checkpoint
            wanted["checkpoints"] += [checkpoint.physical_hash] if checkpoint else []
    withdrawn = store.withdrawn()
    try:
        for kind, hashes in wanted.items():
            store.bring_all(kind, [each for each in hashes if (kind, each) not in withdrawn])
    except (IntegrityError, RepositoryError) as error:
        return [_finding(store, error.code, error.message, error.help or RESTORE)]
    return []


def _submit_objects(
    pool: ThreadPoolExecutor,
    store: DatasetStore,
    chain: list[Link],
    logical: bool,
    executors: Executors | None,
) -> list[Future[list[Finding]]]:
    offset_column = "offset"
    tasks: list[Future[list[Finding]]] = []
    away: list[_Slice] = []
    fetched = store.elsewhere is not None and store.elsewhere.has(store)

    def submit(
        kind: ObjectKind, hash: Multihash, link: Link, check: Callable[[], Fault | None]
    ) -> None:
        if fetched and not store.object_path(kind, hash).exists():
            return  # told already, for all of them
        tasks.append(pool.submit(_check_object, store, kind, hash, link, check))

    for link in chain:
        event = link[1].event
        if isinstance(event, SetVocab):
            offset_column = event.offset_column or "offset"
        if not isinstance(event, AddData | ExecuteTransform):
            continue
        if (data := event.new_data) is not None:
            if executors is not None and not fetched and executors.has(store, data):
                away.append((link, data, offset_column))
            else:
                submit(
                    "data", data.physical_hash, link, _check(store, data, offset_column, logical)
                )
        if (checkpoint := event.new_checkpoint) is not None:
            path = store.object_path("checkpoints", checkpoint.physical_hash)
            submit(
                "checkpoints",
                checkpoint.physical_hash,
                link,
                partial(check_checkpoint, path, checkpoint),
            )
    if executors is not None and away:
        tasks.append(pool.submit(_check_away, store, away, executors, logical))
    return tasks


_Slice = tuple[Link, DataSlice, str]
"""A slice, the block that refers to it, and the name of its column of offsets."""


def _check(
    store: DatasetStore, data: DataSlice, column: str, logical: bool
) -> Callable[[], Fault | None]:
    path = store.object_path("data", data.physical_hash)
    return partial(check_slice, path, data, column, logical=logical)


def _check_away(
    store: DatasetStore, slices: list[_Slice], executors: Executors, logical: bool
) -> list[Finding]:
    """Let executors check slices that are not here; those that they leave are brought here."""
    asked = [(data, column) for _, data, column in slices]
    damages = executors.checked(store, asked, logical=logical)
    if damages is None:
        damages = [
            damage_of(store, "data", data.physical_hash, _check(store, data, column, logical))
            for data, column in asked
        ]
    return [
        _damaged(store, "data", data.physical_hash, link, damage)
        for (link, data, _), damage in zip(slices, damages, strict=True)
        if damage is not None
    ]


def _check_object(
    store: DatasetStore,
    kind: ObjectKind,
    hash: Multihash,
    link: Link,
    check: Callable[[], Fault | None],
) -> list[Finding]:
    damage = damage_of(store, kind, hash, check)
    return [] if damage is None else [_damaged(store, kind, hash, link, damage)]


def _damaged(
    store: DatasetStore, kind: ObjectKind, hash: Multihash, link: Link, damage: Damage
) -> Finding:
    return _finding(
        store,
        damage.code,
        damage.message,
        damage.help,
        block=link[0],
        number=link[1].sequence_number,
        path=store.object_path(kind, hash),
    )


def _finding(
    store: DatasetStore,
    code: str,
    message: str,
    help: str,
    *,
    block: Multihash | None = None,
    number: int | None = None,
    path: Path | None = None,
) -> Finding:
    return Finding(
        dataset=store.name,
        code=code,
        message=message,
        help=help,
        block=block,
        sequence_number=number,
        path=path,
    )
