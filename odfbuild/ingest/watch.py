"""What probing a source read, so that the next plan can tell whether it changed.

A watch says which files matched, and size and times of those that would be read. Looking again
costs a listing and a few `stat`s; nothing is opened.
"""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import replace

from odfbuild.ingest.content import FileMark, mark_of
from odfbuild.ingest.facts import SourceFacts
from odfbuild.ingest.fetch.files_glob import matching_files
from odfbuild.ingest.fetch.sftp_address import is_elsewhere
from odfbuild.odf.model import FetchStepFilesGlob, FetchStepUrl, SetPollingSource
from odfbuild.store.disposable import RACY_NS
from odfbuild.values import Value


class Watch(Value):
    """A pattern, what stands for the names that match it, and files with their marks.

    `marks` stands for how files look that were read already; `None`: nobody knows how they were.
    """

    pattern: str | None = None
    names: bytes = b""
    files: tuple[tuple[str, FileMark | None], ...] = ()
    marks: bytes | None = None


_LOOKED_AT = 1000
"""Files of a source, the last ones by name, that are looked at again for each plan."""

NOTHING_TO_WATCH = Watch()
"""No source, or one about which planning learns nothing but from its definition."""


def look(
    source: SetPollingSource,
    root: str,
    listed: list[str] | None = None,
    *,
    closely: bool = False,
) -> Watch:
    """What there is to see of a source, to be asked for before it is probed.

    `listed` are the files that match its pattern, if that is known already; `closely` looks also at
    those that were read.
    """
    step = source.fetch
    if isinstance(step, FetchStepFilesGlob) and not is_elsewhere(step.path):
        if listed is None:
            listed = matching_files(step.path, root)
        marks = _marks(listed) if closely else None
        return Watch(step.path, _names(listed), marks=marks)
    if isinstance(step, FetchStepUrl) and step.url.startswith("file:") and "${{" not in step.url:
        from pathlib import Path

        from odfbuild.ingest.fetch.local_paths import local_path

        path = local_path(step.url, Path(root))
        return Watch(files=((path, mark_of(path)),))
    return NOTHING_TO_WATCH


def completed(seen: Watch, facts: SourceFacts, root: str) -> Watch | None:
    """`seen` with the files that `facts` are about; `None` when one of them is too new to trust.

    A file may change within a tick of its clock, and would look the same afterwards.
    """
    files = seen.files
    if seen.pattern is not None:
        paths = [os.path.join(root, name) for name in facts.files]  # noqa: PTH118
        files = tuple((path, mark_of(path)) for path in paths)
    latest = time.time_ns() - RACY_NS
    if any(mark is not None and mark[0] > latest for _, mark in files):
        return None
    return replace(seen, files=files)


def looks_the_same(seen: Watch, root: str) -> bool:
    """Whether everything that was seen is as it was."""
    if seen.pattern is not None:
        listed = matching_files(seen.pattern, root)
        if _names(listed) != seen.names:
            return False
        if seen.marks is not None and _marks(listed) != seen.marks:
            return False
    return all(mark_of(path) == mark for path, mark in seen.files)


def _names(files: list[str]) -> bytes:
    names = "\n".join(sorted(files) if len(files) > 1 else files)
    told = names.encode("utf-8", "surrogateescape")
    return told if len(files) < 2 else hashlib.blake2b(told, digest_size=16).digest()


def _marks(files: list[str]) -> bytes:
    marks = [mark_of(path) for path in sorted(files)[-_LOOKED_AT:]]
    return hashlib.blake2b(repr(marks).encode(), digest_size=16).digest()
