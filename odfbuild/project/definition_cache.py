"""Decoded definitions of files that have not changed.

Disposable: a file counts as unchanged while its size and the times of its modification and of its
change are the same, unless it was written so recently that the clock could not tell. Templates also
depend on variables and on the files that they may include. What a definition says is decoded when
it is looked at, and most never are.
"""

from __future__ import annotations

import hashlib
import os
import time

from msgspec import Raw

from odfbuild.odf.model import DatasetSnapshot
from odfbuild.project.model import Config, Definition
from odfbuild.store.disposable import (
    RACY_NS,
    code_stamp,
    packed,
    read_disposable,
    write_disposable,
)
from odfbuild.values import Value


class _Entry(Value):
    """What is kept of a definition: what planning asks all of them for, and what it says."""

    document: int
    instance: str | None
    name: str
    folded: str
    inputs: tuple[str, ...]
    engines: tuple[str, ...]
    windowed: bool
    key: bytes
    content: Raw

    @classmethod
    def of(cls, definition: Definition) -> _Entry:
        """Raises `OverflowError` where it holds numbers of more than 64 bits."""
        content = packed(definition.snapshot)
        place = f"{definition.file}\n{definition.document}\n{definition.instance}\n"
        return cls(
            definition.document,
            definition.instance,
            definition.name,
            definition.folded,
            definition.inputs,
            definition.engines,
            # What reads nothing has no windows; most of its time would go into looking.
            bool(definition.inputs) and definition.windowed,
            hashlib.blake2b(place.encode() + content, digest_size=16).digest(),
            Raw(content),
        )

    def definition(self, file: str, content: DatasetSnapshot | None = None) -> Definition:
        """The definition, of a file that is called `file` in messages; `content`: if known."""
        made = Definition(
            content=content or self.content,
            file=file,
            document=self.document,
            instance=self.instance,
            key=self.key,
        )
        vars(made).update(
            name=self.name,
            folded=self.folded,
            inputs=self.inputs,
            engines=self.engines,
            windowed=self.windowed,
        )
        return made


class _File(Value):
    """What tells that a file changed, its name in messages, and its definitions.

    So does the mark of the file with its query, if there is one.
    """

    mark: tuple[int, int, int]
    query: tuple[int, int, int] | None
    name: str
    definitions: tuple[_Entry, ...]


class DefinitionCache:
    """What was decoded last time, by path of a file; `save` keeps what was used this time."""

    def __init__(self, config: Config) -> None:
        self._file = config.cache / "definitions.bin"
        self._stamp = _stamp(config)
        self._known = read_disposable(self._file, self._stamp, dict[str, _File]) or {}
        self._used: dict[str, _File] = {}
        self._is_new = False

    def get(self, path: str, query: str | None = None) -> tuple[Definition, ...] | None:
        """Definitions of a file, if it and that with its `query` are as when they were decoded."""
        known = self._known.get(path)
        if known is None or known.mark != _mark(path):
            return None
        if (known.query or query) and known.query != (query and _mark(query)):
            return None
        self._used[path] = known
        return tuple([each.definition(known.name) for each in known.definitions])

    def put(
        self, path: str, found: tuple[Definition, ...], query: str | None = None
    ) -> tuple[Definition, ...]:
        """Remember what a file defines, and give it back with its keys."""
        mark = _mark(path)
        of_query = None if query is None else _mark(query)
        newest = max(mark[0], of_query[0] if of_query else 0)
        if not found or time.time_ns() - newest <= RACY_NS:
            return found
        try:
            entries = tuple(map(_Entry.of, found))
        except OverflowError:
            return found
        name = found[0].file
        self._used[path] = _File(mark, of_query, name, entries)
        self._is_new = True
        return tuple(
            [entry.definition(name, e.snapshot) for e, entry in zip(found, entries, strict=True)]
        )

    def save(self) -> None:
        """Write the cache if it changed; a failure to do so costs only time."""
        if self._is_new or len(self._used) != len(self._known):
            write_disposable(self._file, self._stamp, self._used)


def _stamp(config: Config) -> bytes:
    """Changes with everything but the files of definitions themselves."""
    parts = [repr(config.vars)]
    for folder in ("macros", "templates"):
        base = config.root / folder
        for path in sorted(base.rglob("*")) if base.is_dir() else ():
            if path.is_file():
                parts.append(f"{path}:{_mark(str(path))}")
    environment = hashlib.sha256("\n".join(parts).encode()).digest()
    return b"odfbuild definitions 8\n" + code_stamp() + environment


def _mark(path: str) -> tuple[int, int, int]:
    found = os.stat(path)  # noqa: PTH116  # twice as fast as Path, for thousands of files
    # A copy may keep the time of modification; nobody can set that of the change.
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size
