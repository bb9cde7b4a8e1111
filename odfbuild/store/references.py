"""References of datasets: files that name the newest block of a history.

`refs/head` is the one that peers see, `refs/<branch>` are those of branches (see `branches`). All
move by compare-and-swap.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from odfbuild.errors import EARLY_CHAIN, IntegrityError, StaleHeadError
from odfbuild.odf.identity import is_name
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.branches import HEAD, BranchInfo, Limit, references
from odfbuild.store.files import folder_lock, make_folder, read_inside, read_open, write_file


class References:
    """Those of the dataset in the folder `path`; `name` is used in messages.

    With a `branch` the head is that of the branch, once something was appended there; only that
    moves, and says whether it was computed under a `limit` and on which `git_branch` it was begun.
    """

    def __init__(
        self,
        path: Path | str,
        name: str | None = None,
        branch: str | None = None,
        limit: Limit | None = None,
        git_branch: str | None = None,
    ) -> None:
        self.folder = os.fspath(path)
        self.name = name or self.path.name
        self.branch = branch
        self.limit = limit
        self.git_branch = git_branch

    @cached_property
    def path(self) -> Path:
        """The folder; a plan of thousands of datasets does without."""
        return Path(self.folder)

    def head(self) -> Multihash | None:
        """The newest block, in the branch if that has one; `None`: not (or not yet) a dataset.

        `IntegrityError` E0805 when the reference holds anything but a hash.
        """
        in_branch = self.branch and self.branch_head(self.branch)
        return in_branch or self.main_head()

    def main_head(self) -> Multihash | None:
        """The newest block outside of branches, which peers see; otherwise like `head`."""
        return self._reference(HEAD)

    def branch_head(self, branch: str) -> Multihash | None:
        """The newest block in a branch; `None` when the dataset was not changed there."""
        return self._reference(branch)

    def references(self) -> dict[str, Multihash]:
        """All that references name, by `head` or the name of the branch."""
        found = {name: self._reference(name) for name in references(self.folder)}
        return {name: block for name, block in found.items() if block is not None}

    def _reference(self, name: str) -> Multihash | None:
        file = f"{self.folder}/refs/{name}"
        try:
            text = read_inside(file)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return parse_head(text, self.name, file)

    def swap_head(self, expected: Multihash | None, new: Multihash) -> None:
        """Move the head from `expected` (`None`: there is none) to `new`, for everyone at once.

        In a branch only its own reference moves, which is made where there is none.
        `StaleHeadError` E0701 when the head is not `expected`; nothing is changed then.
        """
        refs = self.path / "refs"
        make_folder(refs)
        with folder_lock(refs):
            self.check_head(expected)
            self._before_move(new)
            if self.branch is not None:
                self._describe_branch(self.branch, expected)
            write_file(refs / (self.branch or HEAD), str(new).encode())
            self._moved(self.branch or HEAD, new)

    def _before_move(self, head: Multihash) -> None:
        """What has to be done before a reference names a block."""

    def _moved(self, reference: str, head: Multihash) -> None:
        """What follows when a reference was moved, before anybody else can move it."""

    def _describe_branch(self, branch: str, head: Multihash | None) -> None:
        """Write what is known of the branch, before what it names changes."""
        if self.branch_head(branch) is None:
            now = Timestamp.now()
            BranchInfo(base=head, created=now, limit=self.limit, git=self.git_branch).write(
                self.folder, branch
            )
        elif self.limit is not None:
            known = BranchInfo.read(self.folder, self.name, branch)
            if known.limit != self.limit:
                replace(known, limit=self.limit).write(self.folder, branch)

    def set_branch(
        self, branch: str, expected: Multihash | None, new: Multihash, info: BranchInfo
    ) -> None:
        """Move a branch that comes from elsewhere, with what is known of it there.

        `StaleHeadError` E0701 when it is not at `expected`; nothing is changed then.
        """
        refs = self.path / "refs"
        make_folder(refs)
        with folder_lock(refs):
            self._check(self.branch_head(branch), expected)
            self._before_move(new)
            info.write(self.folder, branch)
            write_file(refs / branch, str(new).encode())
            self._moved(branch, new)

    def check_head(self, expected: Multihash | None) -> None:
        """`StaleHeadError` E0701 unless the head is `expected`."""
        self._check(self.head(), expected)

    def _check(self, actual: Multihash | None, expected: Multihash | None) -> None:
        if actual != expected:
            raise StaleHeadError(
                f"'{self.name}' was changed by another writer in the meantime",
                code="E0701",
                dataset=self.name,
                notes=(
                    f"expected head: {expected or 'none'}",
                    f"actual head:   {actual or 'none'}",
                    "nothing was written to it",
                ),
                help="run `odfbuild plan` again, then apply",
            )


def children(folder: str, branch: str | None) -> Iterator[tuple[str, bytes | None, bool]]:
    """The folders in a folder, each with the text of its reference, and whether of the branch."""
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except (FileNotFoundError, NotADirectoryError):
        return
    try:
        with os.scandir(opened) as entries:
            names = [entry.name for entry in entries if is_name(entry.name) and entry.is_dir()]
        for name in names:
            # From the open folder: the kernel need not find it again for each of thousands.
            if branch and os.access(f"{name}/refs/{branch}", os.F_OK, dir_fd=opened):
                text = reference_text(f"{folder}/{name}", branch)
                if text is not None:
                    yield name, text, True
                    continue
            try:
                head = os.open(f"{name}/refs/head", os.O_RDONLY | os.O_NOFOLLOW, dir_fd=opened)
            except OSError:
                yield name, reference_text(f"{folder}/{name}", HEAD), False
                continue
            try:
                yield name, read_open(head), False
            finally:
                os.close(head)
    finally:
        os.close(opened)


def folders(folder: Path) -> list[str]:
    """Names of the folders in it that a dataset or an account may have."""
    try:
        with os.scandir(folder) as entries:
            return [e.name for e in entries if is_name(e.name) and e.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return []


def reference_text(folder: str, name: str) -> bytes | None:
    """What a reference of the dataset in `folder` holds; `None`: it has none of that name."""
    try:
        return read_inside(f"{folder}/refs/{name}")
    except (FileNotFoundError, NotADirectoryError):
        return None


_EARLY_HEAD = re.compile(rb"[0-9a-f]{64}\s*")


def parse_head(text: bytes, name: str, file: str) -> Multihash:
    """The hash in a head file; `IntegrityError` E0805 for anything else, also a newline."""
    try:
        head = Multihash.parse(text.decode("ascii"))
    except ValueError:
        head = None
    if _EARLY_HEAD.fullmatch(text):
        raise IntegrityError(
            f"the chain of '{name}' is of Open Data Fabric 0.15 or before, which odfbuild cannot "
            "read",
            code="E0830",
            dataset=name,
            notes=(f"file: {file}", "its head is a plain SHA3-256, as chains had it then"),
            help=EARLY_CHAIN,
        )
    if head is None or str(head).encode() != text:
        raise IntegrityError(
            f"the head of '{name}' does not hold the hash of a block",
            code="E0805",
            dataset=name,
            notes=(f"file: {file}", f"content: {text[:100]!r}"),
            help="restore that file (git checkout, or a backup): it holds the hash of the newest "
            "block and nothing else",
        )
    return head
