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
from typing import TYPE_CHECKING, Any

from odfbuild.project.model import Config, Definition
from odfbuild.store.disposable import RACY_NS, Buffer, code_stamp
from odfbuild.store.frozen import equality, setters
from odfbuild.store.incremental_cache import Kept

if TYPE_CHECKING:
    from odfbuild.project.definitions import Decoded

_DOCUMENT, _INSTANCE, _NAME, _FOLDED, _INPUTS, _ENGINES, _WINDOWED, _KEY, _START, _END = range(10)
"""Positions in the plain values of a definition; the last two say where its document lies."""

_SAME_BYTES = 2
"""The newest form of `marshal` whose bytes do not tell which values are shared in memory."""


class KeptDefinition(Definition):
    """A definition from the cache: equal to the one kept, thawed where it is looked at."""

    # As slots, these cost a third of what the properties do that they stand for.
    __slots__ = ("_cache", "_plain", "engines", "folded", "inputs", "key", "name", "windowed")

    _plain: tuple[Any, ...]
    _cache: Kept

    @classmethod
    def of(cls, file: str, plain: tuple[Any, ...], cache: Kept | None) -> KeptDefinition:
        """From the plain values of an entry of `cache`, which has the bytes of its document."""
        self = cls.__new__(cls)
        _put_name(self, plain[_NAME])
        _put_folded(self, plain[_FOLDED])
        _put_inputs(self, plain[_INPUTS])
        _put_key(self, plain[_KEY])
        _put_plain(self, plain)
        _put_file(self, file)
        _put_cache(self, cache)
        return self

    def __getattr__(self, name: str) -> Any:
        # Only called for slots that are not filled yet.
        if name == "document":
            value: Any = self._plain[_DOCUMENT]
        elif name == "engines":
            value = self._plain[_ENGINES]
        elif name == "windowed":
            value = self._plain[_WINDOWED]
        elif name == "instance":
            value = self._plain[_INSTANCE]
        elif name == "snapshot":
            from odfbuild.project.definitions import snapshot_of

            frozen = self._cache.part(self._plain[_START], self._plain[_END])
            value = snapshot_of(marshal.loads(frozen))
        else:
            raise AttributeError(name)
        object.__setattr__(self, name, value)
        return value

    __eq__ = equality(Definition)
    __hash__ = Definition.__hash__


(_put_file,) = setters(Definition, "file")
_put_cache, _put_plain, _, _put_folded, _put_inputs, _put_key, _put_name, _ = setters(
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
        if len(plain) == 1:
            return (KeptDefinition.of(file, plain[0], self._cache),)
        return tuple([KeptDefinition.of(file, each, self._cache) for each in plain])

    def put(self, path: str, found: tuple[Decoded, ...]) -> tuple[Definition, ...]:
        """Remember what a file defines, and give it back with its keys."""
        mark = _mark(path)
        if not found or time.time_ns() - mark[0] <= RACY_NS:
            return tuple([each.definition for each in found])
        file = found[0].definition.file
        entries, kept = [], []
        for each in found:
            frozen = marshal.dumps(each.data, _SAME_BYTES)
            entries.append(_entry(each.definition, frozen, self._end))
            self._new.append(frozen)
            self._end += len(frozen)
            now = KeptDefinition.of(file, entries[-1], None)
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
                start, end = each[_START:]
                if start < first:
                    parts.append(self._cache.part(start, end))
                else:
                    parts.append(new[start - first : end - first])
                places.append((*each[:_START], size, size + end - start))
                size += end - start
            moved[path] = (mark, file, tuple(places))
        return moved, parts


def _entry(definition: Definition, frozen: bytes, start: int) -> tuple[Any, ...]:
    """The plain values of a definition whose document lies at `start` of those that are frozen."""
    place = f"{definition.file}\n{definition.document}\n{definition.instance}\n"
    key = hashlib.blake2b(place.encode() + frozen, digest_size=16).digest()
    where = (definition.document, definition.instance)
    names = (definition.name, definition.folded, definition.inputs, definition.engines)
    return (*where, *names, definition.windowed, key, start, start + len(frozen))


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
