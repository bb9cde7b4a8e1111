"""Summaries of chains whose blocks are in the storage: `info/summaries/<reference>`.

Each is written when its reference was moved, so a process that is killed in between leaves one of
an older head: then the blocks behind that are read. A summary that nobody signed is not used, and
one that somebody else signed is an error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.errors import EnvironmentProblem, IntegrityError
from odfbuild.extras import require_cryptography
from odfbuild.fallbacks import fell_back
from odfbuild.odf.multihash import Multihash
from odfbuild.store.branches import HEAD
from odfbuild.store.files import make_folder, read_inside, write_file

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from odfbuild.odf.chain.summary import ChainSummary, SignedSummary
    from odfbuild.odf.identity import DatasetId
    from odfbuild.store.dataset import DatasetStore
    from odfbuild.store.keys import PrivateKeys

_RECENT, _MOST_RECENT = 3, 12
"""How many of the newest blocks a summary holds, and how many at most to reach one with data."""

FOLDER = "summaries"
"""The name in `info/`."""


def summary_file(folder: str | Path, reference: str) -> Path:
    """Where the summary of a reference of the dataset in `folder` lies."""
    return Path(folder) / "info" / FOLDER / reference


class SignedSummaries:
    """The summaries of the dataset in `store`, signed with its key where `keys` has it."""

    def __init__(self, store: DatasetStore, keys: PrivateKeys) -> None:
        self._store = store
        self._keys = keys

    def known(self, head: Multihash) -> ChainSummary | None:
        """A signed summary at that head, or at another one of the dataset; `None`: there is none.

        `IntegrityError` E0676 when one is damaged or forged.
        """
        older = None
        for _, found in self._signed():
            if found.head == head:
                return found
            older = older or found
        return older

    def _signed(self) -> Iterator[tuple[str, ChainSummary]]:
        for reference in dict.fromkeys((self._store.branch or HEAD, HEAD)):
            found = self.read(reference)
            if found is None or found.proof is None:
                continue
            require_cryptography("signed summaries of chains")
            if not found.holds:
                raise self._wrong(reference, "it is not signed with the dataset's key")
            yield reference, found.summary

    def read(self, reference: str) -> SignedSummary | None:
        """The summary of a reference, whose signature is not checked; `None`: there is none.

        One of another release counts as none. `IntegrityError` E0676 when it is damaged.
        """
        from odfbuild.odf.chain.summary import OtherRelease, SignedSummary

        try:
            return SignedSummary.parse(read_inside(str(self._file(reference))))
        except (FileNotFoundError, NotADirectoryError, OtherRelease):
            return None
        except ValueError as error:
            raise self._wrong(reference, str(error)) from None

    def follow(self, reference: str, head: Multihash) -> None:
        """Write the summary at `head`, to which a reference was moved."""
        from odfbuild.odf.chain.summary import ChainSummary, SignedSummary

        before = self._trusted(head)
        if before is not None and before.head == head:
            now = before
        else:
            blocks, met = self._store.summary(head, before.head if before is not None else None)
            now = ChainSummary.of(before if met else None, blocks)
        key = self._key(now.projection.dataset_id)
        signed = SignedSummary.sign(now, key, self._newest(head))
        file = self._file(reference)
        make_folder(file.parent)
        write_file(file, signed.encode())

    def _key(self, dataset_id: DatasetId) -> Ed25519PrivateKey | None:
        """The key of the dataset, if it can be had: the head was moved already."""
        try:
            return self._keys.key(dataset_id)
        except EnvironmentProblem as error:
            fell_back(__name__, f"the summary of '{self._store.name}' is not signed", error)
            return None

    def recent(self, block: Multihash) -> bytes | None:
        """The bytes of a block that a summary holds, which may be others."""
        for reference in dict.fromkeys((self._store.branch or HEAD, HEAD)):
            with contextlib.suppress(IntegrityError):
                found = self.read(reference)
                for each in found.recent if found is not None else ():
                    if Multihash.sha3_256(each) == block:
                        return each
        return None

    def _newest(self, head: Multihash) -> tuple[bytes, ...]:
        """The newest blocks, and what lies between them and the newest one with data.

        A plan looks at these for datasets downstream.
        """
        from odfbuild.odf.model import AddData, ExecuteTransform

        found: list[bytes] = []
        has_data = False
        for hash, block in islice(self._store.walk(head), _MOST_RECENT):
            found.append(self._store.read_raw(hash))
            has_data = has_data or isinstance(block.event, AddData | ExecuteTransform)
            if has_data and len(found) >= _RECENT:
                break
        return tuple(found)

    def _trusted(self, head: Multihash) -> ChainSummary | None:
        """What `known` gives; a damaged or forged one is about to be replaced."""
        try:
            return self.known(head)
        except IntegrityError:
            return None

    def remove(self, reference: str) -> None:
        """Remove the summary of a reference."""
        self._file(reference).unlink(missing_ok=True)

    def _file(self, reference: str) -> Path:
        return summary_file(self._store.folder, reference)

    def _wrong(self, reference: str, why: str) -> IntegrityError:
        file = self._file(reference)
        return IntegrityError(
            f"the summary of the chain of '{self._store.name}' cannot be trusted: {why}",
            code="E0676",
            dataset=self._store.name,
            notes=(f"file: {file}",),
            help="restore that file (git checkout), or remove it: then all blocks are read; "
            f"`odfbuild verify {self._store.name}` compares it with the blocks",
        )
