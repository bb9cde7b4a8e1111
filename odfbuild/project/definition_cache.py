"""Decoded definitions of files that have not changed.

A disposable blob: a file counts as unchanged while its size and time of modification are the same,
unless it was written so recently that the clock could not tell. Templates also depend on variables
and on the files that they may include.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import sys
import time
from pathlib import Path
from typing import Any

from odfbuild import __version__
from odfbuild.project.model import Config, Definition

_RACY_NS = 2_000_000_000
"""Changes within this time after a file was written may not show in its time of modification."""


class DefinitionCache:
    """What was decoded last time; `save` keeps what was used this time."""

    def __init__(self, config: Config) -> None:
        self._file = config.cache / "definitions"
        self._stamp = self._environment(config)
        self._known: dict[str, tuple[Any, tuple[Definition, ...]]] = self._load()
        self._used: dict[str, tuple[Any, tuple[Definition, ...]]] = {}
        self._changed = False

    def get(self, path: str) -> tuple[Definition, ...] | None:
        """Definitions of a file, if it is as it was when they were decoded."""
        entry = self._known.get(path)
        if entry is None or entry[0] != _mark(path):
            return None
        self._used[path] = entry
        return entry[1]

    def put(self, path: str, definitions: tuple[Definition, ...]) -> None:
        """Remember the definitions of a file."""
        self._changed = True
        mark = _mark(path)
        if time.time_ns() - mark[0] > _RACY_NS:
            self._used[path] = (mark, definitions)

    def save(self) -> None:
        """Write the cache if it changed; a failure to do so costs only time."""
        if not self._changed and len(self._used) == len(self._known):
            return
        try:
            prepare_cache_folder(self._file.parent)
            staged = self._file.with_suffix(f".{os.getpid()}")
            staged.write_bytes(_dump(self._stamp, self._used))
            staged.replace(self._file)
        except OSError:
            return

    def _load(self) -> dict[str, Any]:
        try:
            return _load(self._file.read_bytes(), self._stamp)
        except Exception:  # a cache that cannot be read is no cache
            return {}

    def _environment(self, config: Config) -> str:
        parts = [__version__, repr(config.vars)]
        for folder in ("macros", "templates"):
            base = config.root / folder
            for path in sorted(base.rglob("*")) if base.is_dir() else ():
                if path.is_file():
                    parts.append(f"{path}:{_mark(str(path))}")
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _dump(stamp: str, entries: dict[str, Any]) -> bytes:
    """A header, which tells whether the rest can be used, then the entries."""
    body = io.BytesIO()
    pickler = _Pickler(body, protocol=5)
    pickler.dump(entries)
    layouts = {_key(cls): names for cls, names in pickler.layouts.items()}
    return pickle.dumps((stamp, layouts), protocol=5) + body.getvalue()


def _load(data: bytes, stamp: str) -> dict[str, Any]:
    file = io.BytesIO(data)
    written, layouts = _Unpickler(file).load()
    if written != stamp:
        return {}
    for key, names in layouts.items():
        module, _, name = key.rpartition(".")
        if _names(getattr(sys.modules[module], name)) != names:
            return {}
    entries: dict[str, Any] = _Unpickler(file).load()
    return entries


class _Pickler(pickle.Pickler):
    """Writes frozen objects as their class and values, which reads back three times as fast."""

    def __init__(self, file: io.BytesIO, protocol: int) -> None:
        super().__init__(file, protocol)
        self.layouts: dict[type, tuple[str, ...]] = {}

    def reducer_override(self, value: Any) -> Any:
        """How to make a dataclass again; everything else as usual."""
        cls = type(value)
        if not hasattr(cls, "__dataclass_fields__"):
            return NotImplemented
        names = self.layouts.get(cls)
        if names is None:
            names = self.layouts[cls] = _names(cls)
        return _restore, (cls, *[getattr(value, name) for name in names])


def _names(cls: Any) -> tuple[str, ...]:
    """Fields of a class in order. `KIND` and the like belong to the class, not to its objects."""
    return tuple(
        name
        for name, field in cls.__dataclass_fields__.items()
        if "ClassVar" not in str(field.type)
    )


def _key(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


_setters: dict[type, list[Any]] = {}


def _restore(cls: type, *values: Any) -> Any:
    """An object of a frozen class with slots, made without its constructor."""
    setters = _setters.get(cls)
    if setters is None:
        setters = [getattr(cls, name).__set__ for name in _names(cls)]
        _setters[cls] = setters
    made: Any = object.__new__(cls)
    for put, value in zip(setters, values, strict=True):
        put(made, value)
    return made


class _Unpickler(pickle.Unpickler):
    """Makes nothing but the values that definitions consist of.

    A cache may come with a checkout from somewhere else; it must not be able to run code.
    """

    def find_class(self, module: str, name: str) -> Any:
        """The class of a protocol object or definition; refuses everything else."""
        if (module, name) == (__name__, _restore.__name__):
            return _restore
        if module in _TRUSTED or module.startswith("odfbuild.odf.model."):
            found = getattr(sys.modules[module], name)
            if isinstance(found, type):
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is not part of a definition")


_TRUSTED = (
    "odfbuild.odf.model",
    "odfbuild.odf.identity",
    "odfbuild.odf.multihash",
    "odfbuild.odf.timestamp",
    "odfbuild.project.model",
)


def _mark(path: str) -> tuple[int, int]:
    found = os.stat(path)  # noqa: PTH116  # twice as fast as Path, for thousands of files
    return found.st_mtime_ns, found.st_size


def prepare_cache_folder(folder: Path) -> None:
    """Create `.odfbuild/` so that Git and backups leave it alone."""
    if folder.is_dir():
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    (folder / "CACHEDIR.TAG").write_text(
        "Signature: 8a477f597d28d172789f06886806bc55\n"
        "# This folder is a cache of odfbuild and may be deleted at any time.\n",
        encoding="utf-8",
    )
