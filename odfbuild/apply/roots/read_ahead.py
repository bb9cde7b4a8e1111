"""Read the first files of many roots in one job, before their turn.

For a file of ten records a Spark job of its own costs more than all else that is done with it.
Roots whose definitions differ in the place of the source only are read together, the next ones
while those before are committed. What was read counts if the file is still the same when the turn
of its dataset comes; what is wrong with one is found, and told, when it is read alone.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from odfbuild.apply.ingest import fetch_context, task_of
from odfbuild.apply.roots.planned_files import as_planned
from odfbuild.apply.transaction import Transaction
from odfbuild.engine.contract import Engine, EngineResult, IngestTask, in_one_job
from odfbuild.fallbacks import falling_back
from odfbuild.ingest.fetch import Fetched, fetch
from odfbuild.ingest.fetch.sftp_address import is_elsewhere
from odfbuild.ingest.read_marks import FileMark, look_at
from odfbuild.ingest.resume import polling_state
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import (
    DatasetKind,
    FetchStepFilesGlob,
    SetPollingSource,
)
from odfbuild.plan.model import Action, DatasetPlan
from odfbuild.project.model import Config
from odfbuild.store.workspace import Workspace

_FILES = 64
"""How many files one job reads."""
_BYTES = 256 << 10
"""The size of the largest file that a job reads with others: larger ones gain nothing by it."""


class Ahead(NamedTuple):
    """The first file of a root, how it is read for `transaction`, and what came of that."""

    transaction: Transaction
    fetched: Fetched
    looked: FileMark | None
    task: IngestTask
    result: EngineResult | None = None


class ReadAhead:
    """Reads the roots among `items`, so many at a time as there are files of one job.

    `begin` gives a transaction with the definition of a root, `scratch` is a folder for files.
    """

    def __init__(
        self,
        items: Iterable[DatasetPlan],
        begin: Callable[[DatasetPlan, Projection | None], Transaction],
        workspace: Workspace,
        get_engine: Callable[[], Engine],
        config: Config,
        scratch: Path,
        is_stopped: Callable[[], bool],
    ) -> None:
        self._begin, self._get_engine, self._is_stopped = begin, get_engine, is_stopped
        self._workspace, self._config, self._scratch = workspace, config, scratch
        kinds: dict[str, deque[DatasetPlan]] = {}
        for item in items:
            kind = _kind(item, workspace, config)
            if kind is not None:
                kinds.setdefault(kind, deque()).append(item)
        self._waiting = {
            item.name: kind for kind in kinds.values() if len(kind) > 1 for item in kind
        }
        self._read: dict[str, Future[Mapping[str, Ahead]]] = {}
        self._newest: Future[Mapping[str, Ahead]] | None = None
        self._lock = Lock()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="read-ahead")

    def take(self, name: str) -> Ahead | None:
        """What was read of a dataset, whose turn has come; `None`: it is to be read alone."""
        with self._lock:
            while name in self._waiting:
                self._read_more(self._waiting[name])
            found = self._read.pop(name, None)
            if found is not None and found is self._newest and self._waiting:
                self._read_more(next(iter(self._waiting.values())))
        return found.result().get(name) if found is not None else None

    def stop(self) -> None:
        """Read no more."""
        self._pool.shutdown(cancel_futures=True)

    def _read_more(self, kind: deque[DatasetPlan]) -> None:
        items = [kind.popleft() for _ in range(min(_FILES, len(kind)))]
        self._newest = self._pool.submit(self._read_together, items)
        for item in items:
            del self._waiting[item.name]
            self._read[item.name] = self._newest

    def _read_together(self, items: Sequence[DatasetPlan]) -> Mapping[str, Ahead]:
        if self._is_stopped():
            return {}
        folder = Path(tempfile.mkdtemp(prefix="ahead-", dir=self._scratch))
        found: dict[str, Ahead] = {}
        # Whatever it is comes again, and is told, when the dataset is worked on alone.
        with falling_back(__name__, "the roots of a job are read one by one"):
            engine = self._get_engine()
            begun = [each for item in items if (each := self._fetched(item, folder)) is not None]
            for batch in _in_batches(begun):
                results = in_one_job(engine, [each.task for each in batch])
                for each, result in zip(batch, results, strict=True):
                    if result is not None:
                        found[each.task.dataset] = each._replace(result=result)
        shutil.rmtree(folder, ignore_errors=True)
        return found

    def _fetched(self, item: DatasetPlan, folder: Path) -> Ahead | None:
        """The first file of a root and how it is to be read; `None` where it is read alone."""
        with falling_back(__name__, f"'{item.name}' is read when its turn comes"):
            config = self._config
            transaction = self._begin(item, self._workspace.projection(item.name))
            source = transaction.state.polling_source
            head = transaction.base.head if transaction.base else None
            if source is None or head != item.expected_head:
                return None
            context = fetch_context(transaction, config, folder)
            files = fetch(source.fetch, polling_state(transaction.state), context)
            for fetched in as_planned(item, source.fetch, files):
                if fetched.file is None or fetched.file.stat().st_size > _BYTES:
                    return None  # before all of it is looked at
                looked = look_at(source.fetch, fetched)
                scratch = Path(tempfile.mkdtemp(dir=folder))
                task = task_of(transaction, fetched, scratch, config)
                return Ahead(transaction, fetched, looked, task) if task is not None else None
        return None


def _kind(item: DatasetPlan, workspace: Workspace, config: Config) -> str | None:
    """The same text for roots whose files may be read in one job; `None` for what is read alone."""
    rewritten = {Action.DELETE, Action.REBUILD} & {*item.actions}
    if item.kind is not DatasetKind.Root or not {Action.RUN, Action.POLL} & {*item.actions}:
        return None
    if rewritten or item.refusal or item.renamed_from or item.promoted:
        return None
    base = workspace.projection(item.name) if item.expected_head else None
    changed = [e.after for e in item.changes if isinstance(e.after, SetPollingSource)]
    source = changed[-1] if changed else base.polling_source if base else None
    if source is None or source.prepare or not isinstance(source.fetch, FetchStepFilesGlob):
        return None
    if is_elsewhere(source.fetch.path):
        return None
    if base and not source.merge.KEEPS_ALL:
        return None
    policies = config.ingest.policies(item.name)
    return repr((source.read, source.preprocess, source.merge, base is None, policies))


def _in_batches(begun: Sequence[Ahead]) -> Iterator[Sequence[Ahead]]:
    """Those that differ from the first in their files only, as many as are small together."""
    batch: list[Ahead] = []
    size = 0
    for each in begun:
        bytes = each.task.file.stat().st_size
        if not begun[0].task.is_like(each.task):
            continue
        if size + bytes > _BYTES:
            yield batch
            batch, size = [], 0
        batch.append(each)
        size += bytes
    if batch:
        yield batch
