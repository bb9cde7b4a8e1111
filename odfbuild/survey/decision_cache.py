"""The cache files with the decisions of the last plan.

It is empty for another release, configuration or engine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from odfbuild.engine.release import engine_version
from odfbuild.plan.columns.lineages import Lineages
from odfbuild.plan.graph.build import Inputs
from odfbuild.plan.memory import Entry, Memory
from odfbuild.plan.model import Action, Plan
from odfbuild.plan.right_queries import RightQueries
from odfbuild.project.git.repository import notes_state
from odfbuild.project.model import Config
from odfbuild.sql.answers import Answers, remembering
from odfbuild.store.branches import branch_cache
from odfbuild.store.disposable import code_stamp, packed, read_disposable, write_disposable
from odfbuild.survey.accepted_texts import AcceptedTexts
from odfbuild.values import Value


@contextmanager
def remembered(config: Config, heads: Mapping[str, bytes]) -> Iterator[Memory]:
    """The decisions of the last plan; those of this one are kept unless it fails."""
    settings = hashlib.sha256(repr(config.on_head).encode()).digest()
    stamp = b"odfbuild decisions 4\n" + code_stamp() + settings
    stamp += engine_version().encode()
    lineages = _Answers(config.cache / "lineages.bin")
    queries = right_queries_file(config)
    right = RightQueries(queries.load, AcceptedTexts(config.cache, engine_version()))
    shared = config.cache / "decisions.bin"
    file = _own(config, "decisions.bin") or shared
    form = dict[str, Entry]
    entries = read_disposable(file, stamp, form) or read_disposable(shared, stamp, form)
    memory = Memory(
        entries or {},
        {name.lower(): text for name, text in heads.items()},
        Lineages(lineages.load),
        right,
    )
    modes = _Answers(config.cache / "query_modes.bin")
    answers = Answers(modes.load)
    with remembering(answers):
        yield memory
    if answers.is_changed:
        modes.save(answers.kept)
    if memory.is_changed:
        write_disposable(file, stamp, memory.kept)
    if memory.lineages.is_changed:
        lineages.save(memory.lineages.kept)
    if right.is_changed:
        queries.save(right.kept)


@contextmanager
def remembered_lineages(config: Config) -> Iterator[Lineages]:
    """The lineages that pages show, as told before; those told now are kept, too."""
    answers = _Answers(config.cache / "page_lineages.bin")
    lineages = Lineages(answers.load)
    yield lineages
    if lineages.is_changed:
        answers.save(lineages.kept)


def _own(config: Config, name: str) -> Path | None:
    """The file of a branch for what differs there: so that of the head stays as it is."""
    return None if config.branch is None else branch_cache(config.cache, config.branch) / name


class KnownOrder:
    """The order of the datasets of the last plan, and what each of them read."""

    def __init__(self, config: Config) -> None:
        self._shared = config.cache / "order.bin"
        self._file = _own(config, "order.bin") or self._shared

    def get(self, inputs: Inputs) -> tuple[str, ...] | None:
        """The order of these datasets, if it was found before."""
        for file in dict.fromkeys((self._shared, self._file)):
            found = read_disposable(file, self._stamp(inputs))
            if found is not None:
                return tuple(found)
        return None

    def put(self, inputs: Inputs, order: tuple[str, ...]) -> None:
        """Keep an order that is not kept yet."""
        if self.get(inputs) is None:
            write_disposable(self._file, self._stamp(inputs), list(order))

    @staticmethod
    def _stamp(inputs: Inputs) -> bytes:
        return b"odfbuild order 1\n" + hashlib.sha256(repr(inputs).encode()).digest()


class NoDrift(Value):
    """That a plan found no drift of what notes in Git tell: by all that this follows from."""

    file: Path
    seen: bytes

    @classmethod
    def of(cls, plan: Plan, heads: Mapping[str, bytes], config: Config) -> NoDrift | None:
        """Of a plan made at these `heads`; `None` when what notes there are is not known."""
        notes = notes_state(config.root)
        if notes is None:
            return None
        changed = [each.name for each in plan.datasets if Action.APPEND in each.actions]
        named = [(each.name, each.renamed_from) for each in plan.datasets]
        facts = (config.qualified_name, notes, sorted(heads.items()), named, changed)
        file = _own(config, "no-drift.bin") or config.cache / "no-drift.bin"
        return cls(file, hashlib.sha256(packed(facts)).digest())

    @property
    def is_known(self) -> bool:
        """Whether the last plan that looked found none for the same reasons."""
        return bool(read_disposable(self.file, self._stamp) == self.seen)

    def remember(self) -> None:
        """Spare the next plan the search."""
        write_disposable(self.file, self._stamp, self.seen)

    @property
    def _stamp(self) -> bytes:
        return b"odfbuild no drift 1\n" + code_stamp()


class _Answers(Value):
    """A file of what was told about queries; opened only when something is asked."""

    file: Path

    def load(self) -> Mapping[str, Any] | None:
        found: Mapping[str, Any] | None = read_disposable(self.file, self._stamp())
        return found

    def save(self, kept: Mapping[str, Any]) -> None:
        write_disposable(self.file, self._stamp(), dict(kept))

    def _stamp(self) -> bytes:
        from importlib.metadata import version

        return b"odfbuild answers 1\n" + code_stamp() + version("sqlglot").encode()


def right_queries_file(config: Config) -> _Answers:
    """Where it is kept which queries are right."""
    return _Answers(config.cache / "right_queries.bin")
