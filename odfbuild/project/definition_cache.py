"""Decoded definitions of files that have not changed.

Disposable: a file counts as unchanged while its size and time of modification are the same, unless
it was written so recently that the clock could not tell. Templates also depend on variables and on
the files that they may include. What is kept of a definition is its document as plain values, which
cost little to keep; it is decoded again when it is looked at, and most never are.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import time
from typing import TYPE_CHECKING, Any

from odfbuild.project.model import Config, Definition
from odfbuild.store.disposable import RACY_NS, code_stamp, read_disposable, write_disposable
from odfbuild.store.frozen import equality

if TYPE_CHECKING:
    from odfbuild.project.definitions import Decoded

_SAME_BYTES = 2
"""The newest form of `marshal` whose bytes do not tell which values are shared in memory."""


class KeptDefinition(Definition):
    """A definition from the cache: equal to the one kept, thawed where it is looked at."""

    __slots__ = ("_kept",)

    _kept: tuple[str, tuple[str, ...], bytes, bytes]

    @classmethod
    def of(cls, file: str, plain: tuple[Any, ...]) -> KeptDefinition:
        """From the plain values of an entry."""
        self = cls.__new__(cls)
        put = object.__setattr__
        put(self, "file", file)
        put(self, "document", plain[0])
        put(self, "instance", plain[1])
        put(self, "_kept", plain[2:])
        return self

    @property
    def name(self) -> str:
        """See `Definition.name`."""
        return self._kept[0]

    @property
    def inputs(self) -> tuple[str, ...]:
        """See `Definition.inputs`."""
        return self._kept[1]

    @property
    def key(self) -> bytes:
        """See `Definition.key`."""
        return self._kept[2]

    def __getattr__(self, name: str) -> Any:
        # Only called for a slot that is not filled yet.
        if name != "snapshot":
            raise AttributeError(name)
        from odfbuild.project.definitions import snapshot_of

        snapshot = snapshot_of(marshal.loads(self._kept[3]))
        object.__setattr__(self, "snapshot", snapshot)
        return snapshot

    __eq__ = equality(Definition)
    __hash__ = Definition.__hash__


class DefinitionCache:
    """What was decoded last time; `save` keeps what was used this time."""

    def __init__(self, config: Config) -> None:
        self._file = config.cache / "definitions.bin"
        self._stamp = _stamp(config)
        # By path of a file: size and time of modification, name in messages, definitions.
        self._known: dict[str, tuple[Any, ...]] = read_disposable(self._file, self._stamp) or {}
        self._used: dict[str, tuple[Any, ...]] = {}
        self._changed = False

    def get(self, path: str) -> tuple[Definition, ...] | None:
        """Definitions of a file, if it is as it was when they were decoded."""
        entry = self._known.get(path)
        if entry is None or entry[0] != _mark(path):
            return None
        self._used[path] = entry
        return tuple([KeptDefinition.of(entry[1], plain) for plain in entry[2]])

    def put(self, path: str, found: tuple[Decoded, ...]) -> tuple[Definition, ...]:
        """Remember what a file defines, and give it back with its keys."""
        self._changed = True
        mark = _mark(path)
        if not found or time.time_ns() - mark[0] <= RACY_NS:
            return tuple([each.definition for each in found])
        file = found[0].definition.file
        plain = tuple(map(_plain, found))
        self._used[path] = (mark, file, plain)
        kept = tuple([KeptDefinition.of(file, each) for each in plain])
        for each, now in zip(found, kept, strict=True):
            object.__setattr__(now, "snapshot", each.definition.snapshot)
        return kept

    def save(self) -> None:
        """Write the cache if it changed; a failure to do so costs only time."""
        if self._changed or len(self._used) != len(self._known):
            write_disposable(self._file, self._stamp, self._used)


def _plain(found: Decoded) -> tuple[Any, ...]:
    definition = found.definition
    frozen = marshal.dumps(found.data, _SAME_BYTES)
    place = f"{definition.file}\n{definition.document}\n{definition.instance}\n"
    key = hashlib.blake2b(place.encode() + frozen, digest_size=16).digest()
    name, inputs = definition.name, definition.inputs
    return (definition.document, definition.instance, name, inputs, key, frozen)


def _stamp(config: Config) -> bytes:
    """Changes with everything but the files of definitions themselves."""
    parts = [repr(config.vars)]
    for folder in ("macros", "templates"):
        base = config.root / folder
        for path in sorted(base.rglob("*")) if base.is_dir() else ():
            if path.is_file():
                parts.append(f"{path}:{_mark(str(path))}")
    environment = hashlib.sha256("\n".join(parts).encode()).digest()
    return b"odfbuild definitions 3\n" + code_stamp() + environment


def _mark(path: str) -> tuple[int, int]:
    found = os.stat(path)  # noqa: PTH116  # twice as fast as Path, for thousands of files
    return found.st_mtime_ns, found.st_size
