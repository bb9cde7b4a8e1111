"""One dataset on disk: blocks, objects and a head that moves by compare-and-swap.

Layout: `blocks/<hash>`, `data/<hash>`, `checkpoints/<hash>`, `refs/head` (hash text, no newline),
`info/alias`, and `refs/<branch>` of branches (see `branches`). A commit goes data object →
checkpoint object → blocks → head; before the last step nothing is visible, after it everything is.
With `chains: storage` new blocks lie in the storage (`stored_blocks`), and a summary follows each
reference (`summaries`). Blocks that the folder has are read from it in either case.
Sources: Open Data Fabric, "Dataset Layout"; reference behaviour, write order and atomicity.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from odfbuild.errors import ChainError, Code, EnvironmentProblem, IntegrityError
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.branches import Limit, info_file
from odfbuild.store.files import (
    PENDING,
    UnfitFile,
    folder_lock,
    is_file_inside,
    look_new,
    make_folder,
    move_files,
    read_inside,
    size_of,
    stage,
    sync,
    write_file,
)
from odfbuild.store.references import References
from odfbuild.store.storage import ObjectKind

if TYPE_CHECKING:
    from odfbuild.odf.chain.state import ChainState
    from odfbuild.odf.identity import DatasetId
    from odfbuild.odf.model import MetadataBlock, MetadataEvent
    from odfbuild.odf.stewardship import Signed
    from odfbuild.store.outside import BlocksElsewhere, Summaries
    from odfbuild.store.personal import Personal
    from odfbuild.store.stewardship import Withdrawn
    from odfbuild.store.storage import Storage

FOLDERS = ("blocks", "refs", "data", "checkpoints", "info")

MARKER = f"{PENDING}creation"
"""Names the identity of a dataset whose creation is not finished, in its folder."""

_BLOCK_PREFIX = bytes.fromhex("1620")
_TRANSFERS = 8
"""Objects that are fetched at once."""


class Elsewhere(Protocol):
    """Where datasets are published. Only `fetch` opens connections."""

    def owner(self, store: DatasetStore) -> str | None:
        """The reference of a dataset that belongs to others; `None`: it is this project's own."""

    def has(self, store: DatasetStore) -> bool:
        """Whether a dataset is published, so that its objects can be fetched."""

    def fetch(self, store: DatasetStore, kind: ObjectKind, hashes: Sequence[Multihash]) -> None:
        """Bring objects of a published dataset into its folder; `RepositoryError` if they lack."""


class DatasetStore(References):
    """The dataset in the folder `path`, which need not exist yet; `name` is used in messages.

    With a `storage`, objects go there too, and those that are not in the folder come from there;
    what it does not have either comes from `elsewhere`. With `blocks`, new ones go there instead of
    the folder, and `summaries` follow references. `References` says what a `branch` does.
    """

    def __init__(
        self,
        path: Path | str,
        name: str | None = None,
        storage: Storage | None = None,
        elsewhere: Elsewhere | None = None,
        branch: str | None = None,
        limit: Limit | None = None,
        git_branch: str | None = None,
    ) -> None:
        super().__init__(path, name, branch, limit, git_branch)
        self.storage = storage
        self.elsewhere = elsewhere
        self.blocks: BlocksElsewhere | None = None
        self.summaries: Summaries | None = None
        self.personal: Personal | None = None
        self._rules: tuple[Multihash, ChainState] | None = None
        self._decoded: dict[Multihash, MetadataBlock] = {}
        self._stated: tuple[tuple[int, int, int], tuple[Signed, ...]] | None = None
        self._withdrawn: tuple[Multihash, tuple[Signed, ...], Withdrawn] | None = None

    def __repr__(self) -> str:
        return f"DatasetStore({str(self.path)!r})"

    # --- Reading ---

    def block_path(self, block: Multihash) -> Path:
        """Where a block is kept, or a copy of it."""
        file = self.path / "blocks" / str(block)
        return file if self.blocks is None or file.exists() else self.blocks.folder / file.name

    def has_block(self, block: Multihash) -> bool:
        """Whether a block is there, of this history or of an earlier one."""
        return self._block(block) is not None

    def object_path(self, kind: ObjectKind, hash: Multihash) -> Path:
        """Where a data or checkpoint object is kept, whether or not it is there."""
        return self.path / kind / str(hash)

    def has_object(self, kind: ObjectKind, hash: Multihash) -> bool:
        """Whether an object lies in this folder.

        `IntegrityError` E0832 when there is something under its name that is no regular file of the
        repository: whoever reads a device or a pipe may never come to its end.
        """
        path = self.object_path(kind, hash)
        try:
            return is_file_inside(path)
        except UnfitFile as error:
            raise IntegrityError(
                f"{'data' if kind == 'data' else 'checkpoint'} object {hash} of '{self.name}' "
                f"{error}",
                code="E0832",
                dataset=self.name,
                notes=(f"file: {path}",),
                help="remove it, and restore the object: from a backup, from the clone that has "
                "it, or by `odfbuild pull`",
            ) from None

    def statements(self) -> tuple[Signed, ...]:
        """What its owner said of records that are no longer there, the oldest first.

        `PersonalDataError` E1624 or E1625 where that cannot be read, or is forged.
        """
        try:
            found = os.stat(f"{self.folder}/info/statements")  # noqa: PTH116  # of every dataset
        except (FileNotFoundError, NotADirectoryError):
            return ()
        state = (found.st_mtime_ns, found.st_size, found.st_ino)
        if self._stated is None or self._stated[0] != state:
            from odfbuild.store.stewardship import statements_of

            head = self.main_head() or self.head()
            said = statements_of(self.folder, self.name, self.identity(head)) if head else ()
            self._stated = (state, said)
        return self._stated[1]

    def add_statements(self, more: Iterable[Signed]) -> int:
        """Keep further statements, whose signatures were checked; how many of them are new."""
        from odfbuild.store.stewardship import add_statements

        return add_statements(self.path, self.name, more)

    def withdrawn(self) -> Withdrawn:
        """The objects of its history that its owner withdrew, and by which statement."""
        said = self.statements()
        head = self.head() if said else None
        if head is None:
            return {}
        if self._withdrawn is None or self._withdrawn[:2] != (head, said):
            from odfbuild.store.stewardship import withdrawn_objects

            self._withdrawn = (head, said, withdrawn_objects(self.walk(head), said))
        return self._withdrawn[2]

    def bring(self, kind: ObjectKind, hash: Multihash) -> Path:
        """An object as a file of this folder, fetched from where else it is.

        That is the storage, or a repository. `IntegrityError` E0811 when none has it, E0813 when
        the storage has other bytes, E0832 as `has_object`; errors of the repository as they are;
        `PersonalDataError` E1630 when it was withdrawn.
        """
        path = self.object_path(kind, hash)
        if self.has_object(kind, hash):
            return path
        if (by := self.withdrawn().get((kind, hash))) is not None:
            from odfbuild.store.stewardship import refuse_withdrawn

            refuse_withdrawn(self.name, kind, hash, by)
        if self._stored(kind, hash):
            return path
        if self.elsewhere is not None and self.elsewhere.has(self):
            self.elsewhere.fetch(self, kind, [hash])
            return path
        raise IntegrityError(
            f"{'data' if kind == 'data' else 'checkpoint'} object {hash} of '{self.name}' is "
            "missing",
            code=Code.OBJECT_MISSING,
            dataset=self.name,
            notes=(
                f"file: {path}",
                f"storage: {self.storage.address if self.storage else 'none'}",
            ),
            help="Git has the chains, not the data: name a `storage` in odfbuild.yaml and run "
            "`odfbuild storage push` where the data is, or list the dataset under `publish` and "
            "run `odfbuild push` there"
            if self.storage is None
            else "run `odfbuild storage push` where the data is",
        )

    def _stored(self, kind: ObjectKind, hash: Multihash) -> bool:
        return self.storage is not None and self.storage.get(
            kind, hash, self.object_path(kind, hash)
        )

    @property
    def keeps_all(self) -> bool:
        """Whether all objects have to lie in its folder, because they are nowhere else."""
        return self.storage is None and not (self.elsewhere and self.elsewhere.has(self))

    def bring_all(self, kind: ObjectKind, hashes: Iterable[Multihash]) -> tuple[Path, ...]:
        """Objects as `bring` gives them, in the same order; several at a time are fetched."""
        wanted = list(hashes)
        missing = self._missing(kind, wanted)
        if missing and self.storage is not None:
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(_TRANSFERS, thread_name_prefix="storage") as pool:
                list(pool.map(lambda each: self._stored(kind, each), missing))
            missing = self._missing(kind, missing)
        if missing and self.elsewhere is not None and self.elsewhere.has(self):
            self.elsewhere.fetch(self, kind, missing)
        return tuple(self.bring(kind, each) for each in wanted)

    def _missing(self, kind: ObjectKind, hashes: Iterable[Multihash]) -> list[Multihash]:
        each_once = dict.fromkeys(hashes)
        missing = [each for each in each_once if not self.has_object(kind, each)]
        withdrawn = self.withdrawn() if missing else {}
        return [each for each in missing if (kind, each) not in withdrawn]

    def stored(self, kind: ObjectKind | Literal["blocks"]) -> Iterator[Multihash]:
        """What lies in a folder of the dataset, part of its history or not, sorted by name."""
        folder = self.path / kind
        names = os.listdir(folder) if folder.is_dir() else ()  # noqa: PTH208
        found = {each for name in names if (each := Multihash.of_file(name)) is not None}
        if kind == "blocks" and self.blocks is not None:
            found.update(self.blocks.here())
        yield from sorted(found)

    def read_raw(self, block: Multihash, *, recent: bool = True) -> bytes:
        """The bytes of a block as they were committed, checked against their hash.

        Where nothing else has it, a summary may, unless `recent` is false.
        Raises `IntegrityError`: E0801 when the bytes differ, E0802 when there is no such block.
        `EnvironmentProblem` E0914 when it is in the storage, and that cannot be used.
        """
        data = self._block(block, recent=recent)
        if data is None:
            raise self._damage(
                Code.BLOCK_MISSING, f"block {block} of '{self.name}' is missing", block
            )
        if _BLOCK_PREFIX + hashlib.sha3_256(data).digest() != block.binary:
            found = Multihash.sha3_256(data)
            raise self._damage(
                "E0801",
                f"block {block} of '{self.name}' is not what was committed",
                block,
                f"its bytes hash to {found}",
            )
        return data

    def _block(self, block: Multihash, *, recent: bool = True) -> bytes | None:
        if self.blocks is not None and (found := self.blocks.opened(block)) is not None:
            return found
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            return read_inside(f"{self.folder}/blocks/{block}")
        if self.blocks is None:
            return None
        data, failure = None, None
        try:
            data = self.blocks.read(block) or self.blocks.search(block, self.references().values())
        except EnvironmentProblem as error:
            failure = EnvironmentProblem(
                f"blocks of '{self.name}' cannot be read: {error.message}",
                code="E0914",
                dataset=self.name,
                notes=(f"block: {block}", "with `chains: storage` Git has heads only"),
                help=error.help,
            )
        if data is None and recent and self.summaries is not None:
            data = self.summaries.recent(block)
        if data is None and failure is not None:
            raise failure
        return data

    def read_block(self, block: Multihash) -> MetadataBlock:
        """A block, checked against its hash; `IntegrityError` as `read_raw`, or E0803."""
        return self.decode(block, self.read_raw(block))

    def decode(self, block: Multihash, data: bytes, brief: Container[type] = ()) -> MetadataBlock:
        """The block in `data`, bytes that `read_raw` gave; `IntegrityError` E0803 if unreadable.

        Data events of a class in `brief` are read in part only (see `decode_block`).
        """
        from odfbuild.odf.flatbuffers.reader import decode_block

        try:
            return decode_block(data, brief)
        except ValueError as error:
            raise self._damage(
                "E0803",
                f"block {block} of '{self.name}' cannot be read: {error}",
                block,
                "its bytes match its hash, so it was written like this",
            ) from error

    def walk(
        self, head: Multihash, tail: Multihash | None = None
    ) -> Iterator[tuple[Multihash, MetadataBlock]]:
        """Blocks of `(tail, head]`, newest first; down to the seed without `tail`.

        `ChainError` E0610 when the seed is reached and `tail` was not met.
        """
        current: Multihash | None = head
        while current is not None and current != tail:
            block = self.read_block(current)
            yield current, block
            current = block.prev_block_hash
        if current is None and tail is not None:
            raise ChainError(
                f"block {tail} is not in the history of '{self.name}' before {head}",
                code="E0610",
                dataset=self.name,
                notes=("the history of this dataset was rewritten, or another chain was meant",),
                help=f"compare with `odfbuild log {self.name}`",
            )

    def seed(self, head: Multihash) -> Multihash:
        """The first block of the history that ends with `head`."""
        return self.summary(head)[0][0][0]

    def identity(self, head: Multihash) -> DatasetId:
        """The identity that the history which ends with `head` begins with."""
        from odfbuild.odf.model import Seed

        said = self.summaries.known(head) if self.summaries is not None else None
        if said is not None and said.head == head:
            return said.projection.dataset_id
        event = self.read_block(self.seed(head)).event
        if not isinstance(event, Seed):
            raise AssertionError("a chain begins with its seed")
        return event.dataset_id

    def summary(
        self, head: Multihash, tail: Multihash | None = None
    ) -> tuple[list[tuple[Multihash, MetadataBlock]], bool]:
        """Blocks of `(tail, head]`, oldest first, and whether `tail` was met; else from the seed.

        For what only the newest block of each kind decides: of data blocks that have a newer one of
        the same kind, only offsets, size and watermark are read. Hashes are checked.
        """
        blocks: list[tuple[Multihash, MetadataBlock]] = []
        seen: set[type] = set()
        current: Multihash | None = head
        while current is not None and current != tail:
            block = self._decoded.get(current)
            if block is None:
                block = self.decode(current, self.read_raw(current), seen)
            seen.add(type(block.event))
            blocks.append((current, block))
            current = block.prev_block_hash
        blocks.reverse()
        return blocks, current is not None

    @contextlib.contextmanager
    def knowing(self, links: Iterable[tuple[Multihash, MetadataBlock]]) -> Iterator[None]:
        """Meanwhile blocks that somebody has read just now are not read again for a summary."""
        self._decoded = dict(links)
        try:
            yield
        finally:
            self._decoded = {}

    # --- Writing, in the order of a commit ---

    def put_object(self, kind: ObjectKind, staged: Path, hash: Multihash) -> None:
        """Take over the file `staged`, whose bytes have that hash. It is gone afterwards.

        An object that is there already, with the same size, is left alone. The storage has it
        first: once a block refers to it, every clone can get it.
        """
        self.put_objects(kind, [(staged, hash)])

    def put_objects(self, kind: ObjectKind, objects: Iterable[tuple[Path, Multihash]]) -> None:
        """Take over several files like `put_object`, all of one kind."""
        moves: dict[Path, Path] = {}
        for staged, hash in objects:
            if self.storage is not None:
                self.storage.put(kind, hash, staged)
            target = self.object_path(kind, hash)
            if size_of(target) == staged.stat().st_size:
                look_new(target)
                staged.unlink()
            else:
                moves[staged] = target
        if moves:
            make_folder(self.path / kind)
            move_files(moves, self.path / kind)

    def put_block(self, data: bytes) -> Multihash:
        """Store the bytes of a block, its own or a peer's; returns the hash. No head moves."""
        return self.put_blocks([data])[0]

    def put_blocks(self, blocks: Sequence[bytes]) -> list[Multihash]:
        """Store several blocks like `put_block`, oldest first; returns their hashes."""
        hashes = [Multihash.sha3_256(data) for data in blocks]
        if self.blocks is not None:
            self.blocks.put(blocks)
            return hashes
        folder = self.path / "blocks"
        make_folder(folder)
        moves = {}
        for hash, data in zip(hashes, blocks, strict=True):
            target = folder / str(hash)
            if self._holds(target, data):
                look_new(target)
            else:
                moves[stage(folder, data, durable=False)] = target
        move_files(moves, folder)
        return hashes

    def delete_branch(self, branch: str, expected: Multihash, *, keep_key: bool = False) -> None:
        """Remove the reference of a branch and what is known of it; blocks stay until `gc`.

        `StaleHeadError` E0701 when it is not at `expected`; nothing is changed then. A dataset that
        is nowhere else is left as an unfinished creation, for the next one or `gc` to clear away,
        with its private key unless `keep_key`.
        """
        with folder_lock(self.path), folder_lock(self.path / "refs"):
            self._check(self.branch_head(branch), expected)
            if set(self.references()) == {branch}:
                identity = "" if keep_key else self.identity(expected).multibase
                write_file(self.path / MARKER, identity.encode())
            (self.path / "refs" / branch).unlink()
            sync(self.path / "refs")
            info_file(self.folder, branch).unlink(missing_ok=True)
            if self.summaries is not None:
                self.summaries.remove(branch)

    def _before_move(self, head: Multihash) -> None:
        if self.blocks is not None:
            self.blocks.anchor(head, self.read_raw(head))

    def _moved(self, reference: str, head: Multihash) -> None:
        if self.summaries is not None:
            self.summaries.follow(reference, head)

    def append(
        self,
        expected_head: Multihash | None,
        events: Sequence[MetadataEvent],
        system_time: Timestamp,
        *,
        onto: Multihash | None = None,
    ) -> Multihash:
        """Append events in one step: all of them are visible afterwards, or none. Returns the head.

        All get the same `system_time`. With `onto` the chain goes on from that older block, and
        those behind it are no longer part of it. Raises `ChainError` when an event breaks a rule of
        the chain (nothing is written then) and `StaleHeadError` when the head is not
        `expected_head`.
        """
        self.check_head(expected_head)
        head = onto or expected_head
        blocks, state = self.prepare(head, events, system_time)
        if blocks:
            head = self.put_blocks(blocks)[-1]
        if head is None:
            raise ValueError("a chain cannot begin without events")
        if head != expected_head:
            self.swap_head(expected_head, head)
            self._rules = (head, state) if state is not None else None
        return head

    def prepare(
        self,
        head: Multihash | None,
        events: Sequence[MetadataEvent],
        system_time: Timestamp,
    ) -> tuple[list[bytes], ChainState | None]:
        """The blocks that `append` would store, oldest first, and the rules' new state.

        `ChainError` when an event breaks a rule. Writes nothing.
        """
        from odfbuild.odf.chain.rules import check
        from odfbuild.odf.chain.state import advance
        from odfbuild.odf.flatbuffers.form import encode_block
        from odfbuild.odf.model import MetadataBlock

        state = self.rule_state(head)
        number = 0 if state is None else state.sequence_number + 1
        blocks = []
        for event in events:
            block = MetadataBlock(
                system_time=system_time,
                prev_block_hash=head,
                sequence_number=number,
                event=event,
            )
            try:
                check(state, block)
            except ChainError as error:
                raise error.changed(dataset=self.name) from None
            data = encode_block(block)
            head = Multihash.sha3_256(data)
            state = advance(state, head, block)
            blocks.append(data)
            number += 1
        return blocks, state

    def rule_state(self, head: Multihash | None) -> ChainState | None:
        """What the chain rules need to know of the history up to `head`; `None` before the seed.

        The state of the last head is kept, so that appending again reads only what is new.
        """
        from odfbuild.odf.chain.state import advance

        known, state = self._rules or (None, None)
        if head is None:
            return None
        if state is None and self.summaries is not None:
            said = self.summaries.known(head)
            known, state = (said.head, said.state) if said else (None, None)
        blocks, met = self.summary(head, known)
        if not met:
            state = None
        for hash, block in blocks:
            state = advance(state, hash, block)
        if state is not None:
            self._rules = (head, state)
        return state

    # --- Helpers ---

    def _holds(self, target: Path, data: bytes) -> bool:
        try:
            return read_inside(str(target)) == data
        except FileNotFoundError:
            return False

    def _damage(self, code: str, message: str, block: Multihash, *notes: str) -> IntegrityError:
        help = "restore that file (git checkout, or a backup)"
        if self.blocks is not None:
            notes = (*notes, f"storage: {self.blocks.address}")
            help = (
                "check that this is the storage to which the chain was written; run `odfbuild "
                "chains move --to git`, and then `--to storage`, in a clone that has a copy"
            )
        return IntegrityError(
            message,
            code=code,
            dataset=self.name,
            notes=(*notes, f"file: {self.block_path(block)}"),
            help=f"{help}, or remove the folder of the dataset and pull it again, if it is "
            f"published; `odfbuild verify {self.name}` lists all damage",
        )
