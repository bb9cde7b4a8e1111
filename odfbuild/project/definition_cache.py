"""Decoded definitions of files that have not changed.

Disposable: a file counts as unchanged while its size and the times of its modification and of its
change are the same, unless it was written so recently that the clock could not tell. Templates also
depend on variables and on the files that they may include. What is kept of a definition is its
document as plain values, which cost little to keep; it is read and decoded again when it is looked
at, and most never are.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from odfbuild.project.model import Config, Definition
from odfbuild.store.disposable import RACY_NS, Buffer, Kept, code_stamp
from odfbuild.store.kept_objects import Deferred, setters

if TYPE_CHECKING:
    from odfbuild.odf.model import DatasetSnapshot
    from odfbuild.project.definitions import Decoded


class _Entry(NamedTuple):
    """The plain values of a definition; its document lies from `start` to `end`."""

    document: int
    instance: str | None
    name: str
    folded: str
    inputs: tuple[str, ...]
    engines: tuple[str, ...]
    windowed: bool
    key: bytes
    start: int
    end: int


_entry_of = tuple.__new__
"""Makes an entry of its values in a third of the time that `_make` takes."""

_SAME_BYTES = 2
"""The newest form of `marshal` whose bytes do not tell which values are shared in memory."""


class KeptDefinition(Deferred, Definition):
    """A definition from the cache: equal to the one kept, loaded where it is looked at."""

    # As slots, these cost a third of what the properties do that they stand for.
    __slots__ = ("_cache", "_entry", "engines", "folded", "inputs", "key", "name", "windowed")

    _entry: _Entry
    _cache: Kept
    MAKERS = {
        "document": lambda kept: kept._entry.document,
        "engines": lambda kept: kept._entry.engines,
        "windowed": lambda kept: kept._entry.windowed,
        "instance": lambda kept: kept._entry.instance,
        "snapshot": lambda kept: kept._loaded(),
    }

    @classmethod
    def of(cls, file: str, entry: _Entry, cache: Kept | None) -> KeptDefinition:
        """From an entry of `cache`, which has the bytes of its document."""
        self = cls.__new__(cls)
        _put_name(self, entry.name)
        _put_folded(self, entry.folded)
        _put_inputs(self, entry.inputs)
        _put_key(self, entry.key)
        _put_entry(self, entry)
        _put_file(self, file)
        _put_cache(self, cache)
        return self

    def _loaded(self) -> DatasetSnapshot:
        from odfbuild.project.definitions import snapshot_of

        return snapshot_of(marshal.loads(self._cache.part(self._entry.start, self._entry.end)))


(_put_file,) = setters(Definition, "file")
_put_cache, _put_entry, _, _put_folded, _put_inputs, _put_key, _put_name, _ = setters(
    KeptDefinition, *KeptDefinition.__slots__
)


class DefinitionCache:
    """What was decoded last time; `save` keeps what was used this time."""

    def __init__(self, config: Config) -> None:
        # By path of a file: what tells that it changed, name in messages, definitions.
        self._cache = Kept(config.cache / "definitions.bin", _stamp(config))
        self._known = self._cache.entries
        self._used: dict[str, tuple[Any, ...]] = {}
        self._new: list[bytes] = []
        self._end = self._cache.size

    def get(self, path: str) -> tuple[Definition, ...] | None:
        """Definitions of a file, if it is as it was when they were decoded."""
        entry = self._known.get(path)
        if entry is None or entry[0] != _mark(path):
            return None
        self._used[path] = entry
        _, file, plain = entry
        return tuple(
            [KeptDefinition.of(file, _entry_of(_Entry, each), self._cache) for each in plain]
        )

    def put(self, path: str, found: tuple[Decoded, ...]) -> tuple[Definition, ...]:
        """Remember what a file defines, and give it back with its keys."""
        mark = _mark(path)
        if not found or time.time_ns() - mark[0] <= RACY_NS:
            return tuple([each.definition for each in found])
        file = found[0].definition.file
        entries, kept = [], []
        for each in found:
            document = marshal.dumps(each.data, _SAME_BYTES)
            entry = _entry(each.definition, document, self._end)
            entries.append(tuple(entry))
            self._new.append(document)
            self._end = entry.end
            now = KeptDefinition.of(file, entry, None)
            object.__setattr__(now, "snapshot", each.definition.snapshot)
            kept.append(now)
        self._used[path] = (mark, file, tuple(entries))
        return tuple(kept)

    def save(self) -> None:
        """Write the cache if it changed; a failure to do so costs only time."""
        if self._new or len(self._used) != len(self._known):
            self._cache.save(self._used, self._new, self._moved)

    def _moved(self, entries: Mapping[str, Any]) -> tuple[dict[str, Any], list[Buffer]]:
        """Entries and documents, one document after the other."""
        new = memoryview(b"".join(self._new))
        first = self._cache.size
        moved: dict[str, Any] = {}
        parts: list[Buffer] = []
        size = 0
        for path, (mark, file, found) in entries.items():
            places = []
            for each in found:
                *values, start, end = each
                if start < first:
                    parts.append(self._cache.part(start, end))
                else:
                    parts.append(new[start - first : end - first])
                places.append((*values, size, size + end - start))
                size += end - start
            moved[path] = (mark, file, tuple(places))
        return moved, parts


def _entry(definition: Definition, document: bytes, start: int) -> _Entry:
    """What is kept of a definition whose document lies at `start` of those that are kept."""
    place = f"{definition.file}\n{definition.document}\n{definition.instance}\n"
    return _Entry(
        definition.document,
        definition.instance,
        definition.name,
        definition.folded,
        definition.inputs,
        definition.engines,
        # What reads nothing has no windows; most of its time would go into looking.
        bool(definition.inputs) and definition.windowed,
        hashlib.blake2b(place.encode() + document, digest_size=16).digest(),
        start,
        start + len(document),
    )


def _stamp(config: Config) -> bytes:
    """Changes with everything but the files of definitions themselves."""
    parts = [repr(config.vars)]
    for folder in ("macros", "templates"):
        base = config.root / folder
        for path in sorted(base.rglob("*")) if base.is_dir() else ():
            if path.is_file():
                parts.append(f"{path}:{_mark(str(path))}")
    environment = hashlib.sha256("\n".join(parts).encode()).digest()
    return b"odfbuild definitions 6\n" + code_stamp() + environment


def _mark(path: str) -> tuple[int, int, int]:
    found = os.stat(path)  # noqa: PTH116  # twice as fast as Path, for thousands of files
    # A copy may keep the time of modification; nobody can set that of the change.
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size
