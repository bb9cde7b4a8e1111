"""The files of the cache in which a plan finds the decisions of the last one.

Another release, another configuration or another engine begins with none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from odfbuild.engine.release import engine_version
from odfbuild.plan.lineage import Lineages
from odfbuild.plan.memory import LAYOUT, Memory
from odfbuild.project.model import Config
from odfbuild.store.disposable import code_stamp, read_disposable, write_disposable
from odfbuild.store.kept import Kept
from odfbuild.values import dataclass


@contextmanager
def remembered(config: Config, heads: Mapping[str, bytes]) -> Iterator[Memory]:
    """The decisions of the last plan; those of this one are kept unless it fails."""
    file = config.cache / "decisions.bin"
    settings = hashlib.sha256(repr(config).encode()).digest()
    stamp = b"odfbuild decisions 3\n" + code_stamp() + LAYOUT + settings
    stamp += engine_version().encode()
    lineages = _Lineages(config.cache / "lineages.bin")
    decisions = Kept(file, stamp)
    memory = Memory(
        decisions.entries,
        {name.lower(): text for name, text in heads.items()},
        Lineages(lineages.load),
    )
    yield memory
    if memory.is_changed:
        decisions.save(memory.kept)
    if memory.lineages.is_changed:
        lineages.save(memory.lineages.kept)


@dataclass(frozen=True, slots=True)
class _Lineages:
    """The file of what was told about columns of queries; opened only when something is asked."""

    file: Path

    def load(self) -> Mapping[str, Any] | None:
        found: Mapping[str, Any] | None = read_disposable(self.file, self._stamp())
        return found

    def save(self, kept: Mapping[str, Any]) -> None:
        write_disposable(self.file, self._stamp(), dict(kept))

    def _stamp(self) -> bytes:
        from importlib.metadata import version

        return b"odfbuild lineages 1\n" + code_stamp() + version("sqlglot").encode()
